/** Events for tests: recorded traffic of agents as the log of a session. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { LogEvent } from "../api/stream/messages";

interface RecordedMessage {
  t: number;
  dir: "client" | "agent";
  /** Missing in lines about the process. */
  msg?: { id?: number | string; method?: string; params?: unknown; result?: unknown; error?: unknown };
}

const FOLDER = join(import.meta.dirname, "../../../fixtures/recorded");

/** The names of all recordings. */
export const recordings = (): string[] =>
  readdirSync(FOLDER).filter((it) => existsSync(join(FOLDER, it, "main.jsonl")));

/** A recording as the events that the hub writes of it. */
export function recordedLog(name: string): LogEvent[] {
  const lines = readFileSync(join(FOLDER, name, "main.jsonl"), "utf8").trim().split("\n");
  const events: LogEvent[] = [];
  const prompts = new Map<unknown, number>();
  const asks = new Map<unknown, number>();
  let turn = 0;
  const add = (t: number, event: Omit<LogEvent, "seq" | "at">): void => {
    events.push({ seq: events.length + 1, at: 1_700_000_000_000 + t, ...event } as LogEvent);
  };
  add(0, { is: "opened", agent: name, argv: [], cwd: "/user/project", params: {}, agentSession: "1", setup: null });
  for (const { t, dir, msg } of lines.map((it) => JSON.parse(it) as RecordedMessage)) {
    if (!msg) continue;
    if (dir === "client" && msg.method === "session/prompt") {
      turn += 1;
      prompts.set(msg.id, turn);
      add(t, { is: "prompted", turn, by: "lab", frame: msg });
    } else if (dir === "agent" && msg.method === "session/update") {
      add(t, { is: "said", turn, frame: msg });
    } else if (dir === "agent" && msg.method === "session/request_permission") {
      asks.set(msg.id, asks.size + 1);
      add(t, { is: "asked", ask: asks.size, frame: msg });
    } else if (dir === "client" && msg.method === undefined && asks.has(msg.id)) {
      add(t, { is: "answered", ask: asks.get(msg.id), by: "lab", answer: { result: msg.result } });
    } else if (dir === "agent" && msg.method === undefined && prompts.has(msg.id)) {
      const how = msg.error === undefined ? "stopped" : "failed";
      add(t, { is: "ended", turn: prompts.get(msg.id), how, answer: msg.result ?? msg.error });
    }
  }
  return events;
}
