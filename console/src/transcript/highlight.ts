/** Highlighting of code. The highlighter and each language are loaded when they are first needed. */

import type { HighlighterCore } from "shiki/core";
import type { TextPiece } from "./text-pieces";

type LoadLanguage = () => Promise<{ default: unknown }>;

/** The languages, by the names that agents use. */
const LANGUAGES: Record<string, LoadLanguage> = {
  c: () => import("shiki/langs/c.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  shellscript: () => import("shiki/langs/shellscript.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
};

const ALIASES: Record<string, string> = {
  bash: "shellscript",
  cc: "c",
  cpp: "c",
  "c++": "c",
  dockerfile: "docker",
  golang: "go",
  h: "c",
  js: "javascript",
  jsonc: "json",
  jsonl: "json",
  jsx: "tsx",
  kt: "kotlin",
  mjs: "javascript",
  patch: "diff",
  py: "python",
  rs: "rust",
  sh: "shellscript",
  shell: "shellscript",
  svg: "xml",
  ts: "typescript",
  yml: "yaml",
  zsh: "shellscript",
};

/** Longer code is not highlighted: it would block the page. */
const CHARS_MAX = 12_000;
const LINE_CHARS_MAX = 1000;

let highlighter: Promise<HighlighterCore> | undefined;

/** The pieces of highlighted code; `undefined` if the language is unknown or the code too long. */
export async function highlightCode(code: string, name: string): Promise<TextPiece[] | undefined> {
  const language = ALIASES[name] ?? name;
  const load = Object.hasOwn(LANGUAGES, language) ? LANGUAGES[language] : undefined;
  if (!load || code.length > CHARS_MAX) return undefined;
  highlighter ??= import("./highlighter").then((it) => it.createHighlighter());
  const loaded = await highlighter;
  if (!loaded.getLoadedLanguages().includes(language)) {
    await loaded.loadLanguage((await load()).default as Parameters<HighlighterCore["loadLanguage"]>[0]);
  }
  const { tokens } = loaded.codeToTokens(code, { lang: language, theme: "css-variables", tokenizeMaxLineLength: LINE_CHARS_MAX });
  return tokens.flatMap((line, index) => {
    const pieces = line.map((it): TextPiece => ({ text: it.content, classes: colorClass(it.color ?? "") }));
    return index === 0 ? pieces : [{ text: "\n", classes: "" }, ...pieces];
  });
}

/** The class of a color of the theme: `var(--shiki-token-keyword)` is `code-keyword`. */
const colorClass = (color: string): string => {
  const name = /--shiki-token-([\w-]+)/.exec(color)?.[1];
  return name === undefined ? "" : `code-${name}`;
};

/** The language of a file, by its name. */
export const languageOfPath = (path: string): string => /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
