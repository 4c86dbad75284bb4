/** Builds `src/early.ts`, writes the files of each page into it, and puts it first into the document. */

import { createHash } from "node:crypto";

/** @param {string} source @returns {import("vite").Plugin} */
export function earlyScript(source) {
  return {
    name: "console-early-script",
    apply: "build",
    config: () => ({ build: { rollupOptions: { input: { early: source } } } }),
    generateBundle: {
      // After the plugins of Vite, which write the document.
      order: "post",
      handler(_, bundle) {
        const script = Object.values(bundle).find((it) => it.type === "chunk" && it.facadeModuleId === source);
        const document = bundle["index.html"];
        if (script?.type !== "chunk" || document?.type !== "asset") throw new Error("the early script was not built");
        if (script.imports.length > 0) throw new Error(`the early script imports ${script.imports}`);
        const code = `(() => {\nconst PAGE_FILES = ${JSON.stringify(pageFiles(bundle))};\n${script.code}})();\n`;
        const hash = createHash("sha256").update(code).digest("base64url").slice(0, 8);
        const fileName = `assets/early-${hash}.js`;
        delete bundle[script.fileName];
        this.emitFile({ type: "asset", fileName, source: code });
        document.source = String(document.source).replace("</title>", `</title>\n    <script src="/console/${fileName}"></script>`);
      },
    },
  };
}

/**
 * The files of each page that are not part of the first load.
 * @param {import("vite").Rollup.OutputBundle} bundle
 */
function pageFiles(bundle) {
  const chunks = Object.values(bundle).filter((it) => it.type === "chunk");
  const initial = new Set(chunks.filter((it) => it.isEntry && it.facadeModuleId?.endsWith("index.html")).flatMap((it) => filesOf(bundle, it.fileName)));
  /** @param {string} folder */
  const filesOfFolder = (folder) => {
    const found = chunks.find((it) => it.facadeModuleId?.endsWith(`/src/pages/${folder}/index.tsx`));
    if (!found) throw new Error(`there is no page ${folder}`);
    return filesOf(bundle, found.fileName).filter((it) => !initial.has(it));
  };
  // The composer is loaded by itself, but shown at once.
  const session = new Set([...filesOfFolder("session"), ...filesOfFolder("session/composer")]);
  return { "": filesOfFolder("sessions"), sessions: [...session], inbox: filesOfFolder("inbox") };
}

/**
 * A chunk, what it imports at once, and their style sheets.
 * @param {import("vite").Rollup.OutputBundle} bundle
 * @param {string} name
 */
function filesOf(bundle, name) {
  /** @type {Set<string>} */
  const files = new Set();
  const add = (/** @type {string} */ it) => {
    const chunk = bundle[it];
    if (chunk?.type !== "chunk" || files.has(it)) return;
    files.add(it);
    for (const css of chunk.viteMetadata?.importedCss ?? []) files.add(css);
    chunk.imports.forEach(add);
  };
  add(name);
  return [...files];
}
