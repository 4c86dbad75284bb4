/** Builds `src/sw.ts` as `sw.js` and writes the list of files into it that it keeps for offline use. */

import { createHash } from "node:crypto";

/** Files beside the bundle that the shell needs, in `public/`. */
const PUBLIC_FILES = ["icon.svg", "icon-192.png", "manifest.webmanifest"];

/** @param {string} source @returns {import("vite").Plugin} */
export function serviceWorker(source) {
  return {
    name: "console-service-worker",
    apply: "build",
    config: (config) => ({
      build: {
        rollupOptions: {
          input: { index: `${config.root ?? process.cwd()}/index.html`, sw: source },
          output: { entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
        },
      },
    }),
    generateBundle: {
      // After the plugins of Vite, which know the style sheets of each chunk.
      order: "post",
      handler(_, bundle) {
        const worker = bundle["sw.js"];
        if (worker?.type !== "chunk") throw new Error("the service worker was not built");
        if (worker.imports.length > 0) throw new Error(`the service worker imports ${worker.imports}`);
        const files = [...shellFiles(bundle)].sort().concat(PUBLIC_FILES);
        const build = createHash("sha256").update(files.join("\n")).digest("hex").slice(0, 12);
        const values = `const CONSOLE_FILES = ${JSON.stringify(files)}, CONSOLE_BUILD = "${build}";\n`;
        worker.code = values + worker.code;
      },
    },
  };
}

/**
 * The first load, the shared worker, the early script, and each page with what it imports at once: not highlighters and plots.
 * @param {import("vite").Rollup.OutputBundle} bundle
 */
function shellFiles(bundle) {
  /** @type {Set<string>} */
  const files = new Set();
  const add = (/** @type {string} */ name) => {
    const chunk = bundle[name];
    if (chunk === undefined || files.has(name)) return;
    files.add(name);
    if (chunk.type !== "chunk") return;
    for (const it of chunk.viteMetadata?.importedCss ?? []) files.add(it);
    chunk.imports.forEach(add);
  };
  for (const [name, it] of Object.entries(bundle)) {
    const isShell = it.type === "chunk" ? it.isEntry || /\/src\/pages\/[a-z]+\/index\.tsx$/.test(it.facadeModuleId ?? "") : /shared-worker|early-/.test(name);
    if (isShell && name !== "sw.js") add(name);
  }
  return files;
}
