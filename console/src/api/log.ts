/** Reads pages of a session's log. */

import type { LogPage } from "jackfield-client";
import { api } from "./client";

/** A range of the log: the last events, or those before or after one. */
export interface LogQuery {
  before?: number;
  after?: number;
  limit?: number;
}

export const readLog = (sessionId: string, query: LogQuery): Promise<LogPage> =>
  api.sessions.log(sessionId, query);
