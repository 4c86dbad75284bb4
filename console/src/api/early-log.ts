/** Reads the end of the log of the session in the address, before the code of its page is loaded. */

import type { LogPage } from "jackfield-client";

/** The number of events of the first page of a log. */
export const FIRST_EVENTS = 250;

let early: { path: string; page: Promise<Response> } | undefined;

const logPath = (sessionId: string): string => `/api/sessions/${encodeURIComponent(sessionId)}/log?limit=${FIRST_EVENTS}`;

/** Called once, when the application starts. A link to an event needs other events. */
export function startEarlyLog(): void {
  const id = /^\/console\/sessions\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  if (id === undefined || location.search !== "") return;
  const path = logPath(decodeURIComponent(id));
  early = { path, page: fetch(path) };
  early.page.catch(() => {});
}

/** The page that was read early, once; nothing if it was not or if that failed. */
export async function takeEarlyLog(sessionId: string): Promise<LogPage | undefined> {
  if (early?.path !== logPath(sessionId)) return undefined;
  const { page } = early;
  early = undefined;
  const response = await page.catch(() => undefined);
  return response?.ok ? ((await response.json()) as LogPage) : undefined;
}
