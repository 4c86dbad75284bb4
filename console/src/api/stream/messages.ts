/** The messages between pages and the change stream, which runs in a worker that all pages of the browser share. */

import type { Ask, Session } from "jackfield-client";

/** An event of a session's log; `is` names its kind. See docs/http.md for all kinds. */
export interface LogEvent {
  seq: number;
  /** Unix time in milliseconds. */
  at: number;
  is: string;
  [member: string]: unknown;
}

export interface AskId {
  sessionId: string;
  ask: number;
}

/** How a request was answered. */
export interface AnsweredAsk extends AskId {
  /** The client that answered, or the rule. */
  by?: string;
  option?: string;
}

/** The state of the connection to the daemon. */
export type ConnectionState =
  | { status: "connecting" }
  | { status: "live" }
  /** It tries again by itself at `retryAt` (Unix ms). */
  | { status: "lost"; why: string; since: number; retryAt: number }
  /** The login is missing, expired or revoked. */
  | { status: "signed-out" };

/** From the change stream to a page. */
export type StreamMessage =
  | { type: "connection"; state: ConnectionState }
  /** All rows that the stream knows; `complete` if these are all rows of the daemon. */
  | { type: "snapshot"; sessions: Session[]; asks: Ask[]; complete: boolean }
  | { type: "sessions"; sessions: Session[]; removed: string[] }
  | { type: "asks"; asks: Ask[]; answered: AnsweredAsk[] }
  /** New events of a followed session, in order. The page requests what is missing before the first one. */
  | { type: "log"; sessionId: string; events: LogEvent[] }
  /** The followed session has events up to this one; sent to a page that has fewer. */
  | { type: "position"; sessionId: string; last: number }
  /** A followed session was deleted. */
  | { type: "gone"; sessionId: string };

/** From a page to the change stream. */
export type PageMessage =
  /** Follow a session after this event; of several pages, the earliest position counts. */
  | { type: "follow"; sessionId: string; after: number }
  | { type: "unfollow"; sessionId: string }
  /** Connect now: the network is back, the page is visible again, or the user has signed in. */
  | { type: "connect" }
  /** The page is closed. */
  | { type: "close" };
