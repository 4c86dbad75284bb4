/** The turns of a session as spans of time. */

import type { SessionTurns } from "jackfield-client";
import { api } from "./client";

export type TimelineTurn = SessionTurns["turns"][number];
export type TimelineSpan = TimelineTurn["spans"][number];
export type SpanKind = TimelineSpan["kind"];

/** Up to `limit` turns in ascending order: the last ones, or those before a turn. */
export const readTimeline = (sessionId: string, limit: number, before?: number): Promise<SessionTurns> =>
  api.sessions.timeline(sessionId, { limit, ...(before === undefined ? {} : { before }) });
