/** Reads pages of a session's log. Unlike the client, this module can be loaded without a page, in tests. */

import type { LogPage } from "jackfield-client";
import { requestJson } from "./request";

/** A range of the log: the last events, or those before or after one. */
export interface LogQuery {
  before?: number;
  after?: number;
  limit?: number;
}

export const readLog = (sessionId: string, query: LogQuery): Promise<LogPage> =>
  requestJson("GET", `/api/sessions/${encodeURIComponent(sessionId)}/log`, { query: { ...query } });
