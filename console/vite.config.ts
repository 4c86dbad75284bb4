/** Builds the console below `/console/`; in development it forwards the API to a running daemon. */

import { fileURLToPath } from "node:url";
import solid from "vite-plugin-solid";
import { defineConfig } from "vitest/config";
import { earlyScript } from "./scripts/early-script-plugin.mjs";
import { serviceWorker } from "./scripts/service-worker-plugin.mjs";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** `JACKFIELD_URL` and `JACKFIELD_TOKEN` name the daemon for `npm run dev`. */
const daemon = process.env["JACKFIELD_URL"] ?? "http://127.0.0.1:7456";
const token = process.env["JACKFIELD_TOKEN"];

export default defineConfig({
  base: "/console/",
  plugins: [solid(), earlyScript(here("src/early.ts")), serviceWorker(here("src/sw.ts"))],
  resolve: {
    alias: [
      { find: "jackfield-client", replacement: here("../clients/typescript/src/index.ts") },
      // Creates templates with a Trusted Types policy, also those of libraries.
      { find: /^solid-js\/web$/, replacement: here("src/solid-web.ts") },
    ],
  },
  build: {
    target: "es2022",
    outDir: here("../target/console/dist"),
    emptyOutDir: true,
    // Pictures and fonts are files: the content security policy permits no data URLs in style sheets.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: {
    proxy: {
      "/api": {
        target: daemon,
        changeOrigin: true,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        // The daemon refuses foreign origins, and this server is one.
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
