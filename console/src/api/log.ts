/** Reads pages of a session's log, and searches in it. */

import { JackfieldError } from "jackfield-client";
import type { LogEvent } from "./stream/messages";

/** A range of the log: the last events, or those before or after one. */
export interface LogQuery {
  before?: number;
  after?: number;
  limit?: number;
}

export interface LogPage {
  /** In order. */
  events: LogEvent[];
  /** The last event of the session. */
  last: number;
  hasBefore: boolean;
  hasAfter: boolean;
}

export interface LogMatch {
  seq: number;
  at: number;
  part: "prompt" | "text" | "thought" | "tool";
  snippet: string;
  /** Where the text begins in the snippet. */
  offset: number;
}

export interface LogMatches {
  /** The newest first. */
  matches: LogMatch[];
  hasMore: boolean;
}

export const readLog = (sessionId: string, query: LogQuery, signal?: AbortSignal): Promise<LogPage> =>
  getJson(`/api/sessions/${encodeURIComponent(sessionId)}/log`, { ...query }, signal);

/** Searches the whole session for a text. */
export const findInLog = (
  sessionId: string,
  query: { text: string; before?: number; limit?: number },
  signal?: AbortSignal,
): Promise<LogMatches> => getJson(`/api/sessions/${encodeURIComponent(sessionId)}/find`, { ...query }, signal);

async function getJson<T>(path: string, query: Record<string, string | number>, signal?: AbortSignal): Promise<T> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const response = await fetch(url, { signal: signal ?? null });
  const body = (await response.json().catch(() => ({}))) as T & { error?: ConstructorParameters<typeof JackfieldError>[1] };
  if (response.ok) return body;
  const unknown = { code: "UPSTREAM_UNAVAILABLE", message: `the daemon answered ${response.status}` } as const;
  throw new JackfieldError(response.status, body.error ?? unknown);
}
