/**
 * Compresses the built console and writes the table of its files for the daemon.
 *
 *   node write-assets.mjs DIST CRATE           fails if the files in CRATE are not those of DIST
 *   node write-assets.mjs DIST CRATE --write   writes them
 *
 * Compressed files are compared by their content: another version of zlib may compress differently.
 */

import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

const [dist = "", crate = "", mode] = process.argv.slice(2);

/** The first load of a page, compressed, must stay below this. */
const INITIAL_BYTES_MAX = 150_000;
const TOTAL_BYTES_MAX = 1_000_000;

/** @type {Record<string, string>} */
const CONTENT_TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

/** @param {string} dir @returns {string[]} */
const listFiles = (dir) => {
  const paths = readdirSync(dir, { recursive: true, encoding: "utf8" }).map((it) => join(dir, it));
  return paths.filter((it) => statSync(it, { throwIfNoEntry: false })?.isFile()).map((it) => relative(dir, it)).sort();
};

/** @param {string} path */
const tableRow = (path) => {
  const type = CONTENT_TYPES[extname(path)];
  if (!type) throw new Error(`${path}: no content type is known for this extension`);
  return `    ConsoleAsset {
        path: "${path}",
        content_type: "${type}",
        is_immutable: ${path.startsWith("assets/")},
        gzip: include_bytes!("../../console/${path}.gz"),
    },
`;
};

/** The scripts and styles that `index.html` loads, and the scripts that these import at once. @param {string} html */
const initialFiles = (html) => {
  const found = new Set([...html.matchAll(/(?:src|href)="\/console\/(assets\/[^"]+\.(?:js|css))"/g)].map((it) => it[1] ?? ""));
  for (const path of found) {
    const text = path.endsWith(".js") ? readFileSync(join(dist, path), "utf8") : "";
    for (const it of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) found.add(`assets/${it[1]}`);
  }
  return found;
};

const paths = listFiles(dist);
const table = `//! The files of the console, written by \`scripts/build-console.sh --write\`.

use super::ConsoleAsset;

pub(super) static ASSETS: &[ConsoleAsset] = &[
${paths.map(tableRow).join("")}];
`;
const tablePath = join(crate, "src/console/asset_table.rs");
const folder = join(crate, "console");
const packed = new Map(paths.map((it) => [it, gzipSync(readFileSync(join(dist, it)), { level: 9 })]));

const initial = [...initialFiles(readFileSync(join(dist, "index.html"), "utf8"))];
const bytes = (/** @type {string[]} */ of) => of.reduce((sum, it) => sum + (packed.get(it)?.length ?? 0), 0);
console.log(`console: ${paths.length} files, ${bytes(paths)} bytes compressed, ${bytes(initial)} of them at the first load`);
if (bytes(initial) > INITIAL_BYTES_MAX) throw new Error(`the first load is larger than ${INITIAL_BYTES_MAX} bytes: ${initial}`);
if (bytes(paths) > TOTAL_BYTES_MAX) throw new Error(`the console is larger than ${TOTAL_BYTES_MAX} bytes`);

if (mode === "--write") {
  rmSync(folder, { recursive: true, force: true });
  for (const [path, data] of packed) {
    const file = join(folder, `${path}.gz`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, data);
  }
  mkdirSync(dirname(tablePath), { recursive: true });
  writeFileSync(tablePath, table);
} else {
  const stale = paths.filter((path) => {
    try {
      return !gunzipSync(readFileSync(join(folder, `${path}.gz`))).equals(readFileSync(join(dist, path)));
    } catch {
      return true;
    }
  });
  const isStale = stale.length > 0 || readFileSync(tablePath, "utf8") !== table || listFiles(folder).length !== paths.length;
  if (isStale) {
    console.error(`the committed console is not what console/ builds (${stale.join(", ") || "the table"}): run scripts/build-console.sh --write`);
    process.exit(1);
  }
}
