/** The turns of a session as spans of time. */

import type { TokenCounts } from "./usage";
import type { Cost } from "../ui/format";
import { api } from "./client";

export type SpanKind = "queue" | "model" | "thinking" | "text" | "tool" | "ask";

export interface TimelineSpan {
  kind: SpanKind;
  /** The title of a tool call or of a request to the user. */
  title?: string | null;
  /** After the start of the turn; the time in the queue is before it. */
  startMs: number;
  durationMs: number;
  /** The event in which the span begins. */
  seq: number;
}

export interface TimelineTurn {
  turn: number;
  /** The client that sent the prompt. */
  by: string;
  /** Unix milliseconds. */
  startedAt: number;
  /** Absent while the turn is running. */
  endedAt?: number | null;
  outcome?: string | null;
  queuedMs: number;
  spans: TimelineSpan[];
  usage?: { tokens?: TokenCounts | null; cost?: Cost | null } | null;
}

export interface TimelinePage {
  turns: TimelineTurn[];
  /** Whether there are earlier turns. */
  hasBefore: boolean;
}

/** Up to `limit` turns in ascending order: the last ones, or those before a turn. */
export const readTimeline = (sessionId: string, limit: number, before?: number): Promise<TimelinePage> =>
  api.sessions.timeline(sessionId, { limit, ...(before === undefined ? {} : { before }) });
