/**
 * Starts what a page needs while the browser still loads the application: the code of the page and its first request.
 *
 * `scripts/early-script-plugin.mjs` puts this script first into the document. It imports nothing, so that it is built as
 * a classic script, which runs as soon as it is there.
 */

/** The scripts and style sheets of each page, relative to `/console/`, by the first part of its path. The build fills it in. */
declare const PAGE_FILES: Record<string, string[]>;

const [, page = "", id = "", tab = ""] = /^\/console\/([^/]*)(?:\/([^/]+))?(?:\/([^/]+))?\/?$/.exec(location.pathname) ?? [];

for (const file of PAGE_FILES[page] ?? []) {
  const link = document.createElement("link");
  const isScript = file.endsWith(".js");
  link.rel = isScript ? "modulepreload" : "preload";
  if (!isScript) link.as = "style";
  link.crossOrigin = "";
  link.href = `/console/${file}`;
  document.head.append(link);
}

/** The first request of the page. A link to an event needs other events. */
function firstRequest(): string | undefined {
  if (page === "") return "/api/sessions?limit=100";
  return page === "sessions" && tab === "" && !location.search.includes("event=") ? `/api/sessions/${id}/log?limit=250` : undefined;
}

const path = firstRequest();
if (path !== undefined) {
  const response = fetch(path);
  // Who takes the response handles the error.
  response.catch(() => {});
  Object.assign(globalThis, { earlyResponse: { path: path.replace(/\?.*/, ""), response } });
}
