/**
 * What this page knows about the daemon: sessions, open requests, the connection. Filled by the change stream.
 *
 * Components read the stores; only this module writes them.
 */

import type { Ask, Session } from "jackfield-client";
import { createSignal } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { connectStream, type SendToStream } from "../api/stream/connect";
import type { LastList } from "./last-list";
import type { AnsweredAsk, ConnectionState, LogEvent, StreamMessage } from "../api/stream/messages";
import { RowTable } from "./row-table";

/** Receives the events of a followed session; `gone` when it was deleted. */
export interface LogFollower {
  onEvents(events: LogEvent[]): void;
  /** The log has events up to this one. */
  onPosition(last: number): void;
  onGone(): void;
}

const [connection, setConnection] = createSignal<ConnectionState>({ status: "connecting" });
const [isListComplete, setListComplete] = createSignal(false);
const sessions = new RowTable<Session>();
const sessionRows = sessions.byId;
/** A number that changes with each change of `sessionRows`. */
export const listVersion = sessions.version;
/** All known sessions. */
export const allSessions = sessions.all;
const [openAsks, setOpenAsks] = createStore<Ask[]>([]);
const [lastAnswered, setLastAnswered] = createSignal<AnsweredAsk[]>([]);
const [storedListAt, setStoredListAt] = createSignal<number | undefined>();
const followers = new Map<string, Set<LogFollower>>();
let send: SendToStream = () => {};

/** The state of the connection to the daemon. */
export { connection };
/** Whether `sessionRows` has all sessions. */
export { isListComplete };
/** When the shown list was stored (Unix ms), if it is the stored one because there is no connection. */
export { storedListAt };
/** All known sessions by id. */
export { sessionRows };
/** Open requests to the user, the oldest first. */
export { openAsks };
/** The requests that were answered last, here or elsewhere. */
export { lastAnswered };

/** Connects the page to the daemon. Called once, when the application starts. */
export function startStream(): void {
  send = connectStream(receive);
}

/** Shows the list that was stored in this browser, until the daemon sends the current one. */
export function showStoredList({ savedAt, sessions: stored }: LastList): void {
  if (isListComplete()) return;
  sessions.replace(byId(stored));
  setStoredListAt(savedAt);
}

/** Connects now instead of at the next attempt. */
export const reconnect = (): void => send({ type: "connect" });

/** Calls the follower with all events after this one, possibly with a gap before the first; returns the end of it. */
export function followLog(sessionId: string, after: number, follower: LogFollower): () => void {
  const all = followers.get(sessionId) ?? new Set();
  followers.set(sessionId, all.add(follower));
  send({ type: "follow", sessionId, after });
  return () => {
    all.delete(follower);
    if (all.size > 0 || followers.get(sessionId) !== all) return;
    followers.delete(sessionId);
    send({ type: "unfollow", sessionId });
  };
}

const byId = (rows: readonly Session[]): [string, Session][] => rows.map((it) => [it.sessionId, it]);
const byAge = (a: Ask, b: Ask): number => a.since.localeCompare(b.since);
const isSameAsk = (a: { sessionId: string; ask: number }, b: typeof a): boolean =>
  a.sessionId === b.sessionId && a.ask === b.ask;

function receive(message: StreamMessage): void {
  switch (message.type) {
    case "connection":
      setConnection(message.state);
      break;
    case "snapshot":
      sessions.replace(byId(message.sessions));
      setOpenAsks(reconcile(message.asks.toSorted(byAge)));
      setListComplete(message.complete);
      setStoredListAt(undefined);
      break;
    case "sessions":
      sessions.update(byId(message.sessions), message.removed);
      break;
    case "asks": {
      const isClosed = (it: Ask): boolean => message.answered.some((answer) => isSameAsk(it, answer));
      const isUpdated = (it: Ask): boolean => message.asks.some((other) => isSameAsk(it, other));
      const kept = openAsks.filter((it) => !isClosed(it) && !isUpdated(it));
      setOpenAsks(reconcile([...kept, ...message.asks.filter((it) => !isClosed(it))].toSorted(byAge)));
      if (message.answered.length > 0) setLastAnswered(message.answered);
      break;
    }
    case "log":
      for (const it of followers.get(message.sessionId) ?? []) it.onEvents(message.events);
      break;
    case "position":
      for (const it of followers.get(message.sessionId) ?? []) it.onPosition(message.last);
      break;
    case "gone":
      for (const it of followers.get(message.sessionId) ?? []) it.onGone();
  }
}
