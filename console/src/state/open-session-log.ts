/** Opens the log of a session for a component: its items and its state, updated as often as they can be drawn. */

import { JackfieldError, type LogPage } from "jackfield-client";
import { createSignal, onCleanup, type Accessor } from "solid-js";
import { takeEarlyResponse } from "../api/early-response";
import { readLog, type LogQuery } from "../api/log";
import type { Item } from "../transcript/item";
import { followLog } from "./daemon";
import { FrameQueue } from "./frame-queue";
import { SessionLog, type LogPosition, type LogState } from "./session-log";

export interface OpenSessionLog {
  log: SessionLog;
  items: Accessor<readonly Item[]>;
  state: Accessor<LogState>;
}

export function openSessionLog(sessionId: string, position: LogPosition): OpenSessionLog {
  const isStatus = (error: unknown, test: (status: number) => boolean): boolean =>
    error instanceof JackfieldError && test(error.status);
  const source = {
    read: async (query: LogQuery) => {
      const isEnd = query.before === undefined && query.after === undefined;
      const path = `/api/sessions/${encodeURIComponent(sessionId)}/log`;
      return (isEnd ? await takeEarlyResponse<LogPage>(path) : undefined) ?? readLog(sessionId, query);
    },
    follow: followLog.bind(undefined, sessionId),
    isGone: (error: unknown) => isStatus(error, (it) => it === 404),
    // Everything but a request that the daemon refuses. After signing in again, reading goes on.
    canRetry: (error: unknown) => !isStatus(error, (it) => it >= 400 && it < 500 && it !== 401 && it !== 429),
  };
  const updates = new FrameQueue(() => publish());
  const log = new SessionLog(source, () => updates.request());
  const [items, setItems] = createSignal<readonly Item[]>([]);
  const [state, setState] = createSignal<LogState>(log.state);
  const publish = (): void => {
    setState(log.state);
    setItems([...log.items]);
  };
  void log.open(position).then(publish);
  onCleanup(() => log.close());
  return { log, items, state };
}
