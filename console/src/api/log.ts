/** Reads pages of a session's log, and searches in it. */

import { requestJson } from "./request";
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

export const readLog = (sessionId: string, query: LogQuery): Promise<LogPage> =>
  requestJson("GET", `/api/sessions/${encodeURIComponent(sessionId)}/log`, { query: { ...query } });

/** Searches the whole session for a text. */
export const findInLog = (
  sessionId: string,
  query: { text: string; before?: number; limit?: number },
  signal: AbortSignal,
): Promise<LogMatches> => requestJson("GET", `/api/sessions/${encodeURIComponent(sessionId)}/find`, { query, signal });
