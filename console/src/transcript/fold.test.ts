/** Tests of the items that events become. */

import { describe, expect, test } from "vitest";
import type { LogEvent } from "../api/stream/messages";
import { foldWindow, Transcript } from "./fold";
import { partsText, type AgentItem, type AskItem, type Item, type ToolItem, type TurnEndItem } from "./item";
import { recordedLog, recordings } from "./recorded";
import { toolDiffs, toolOutput } from "./tool-call";

let seq = 0;
const event = (is: string, members: Record<string, unknown> = {}): LogEvent => {
  seq += 1;
  return { seq, at: seq * 1000, is, ...members };
};
const update = (sessionUpdate: string, members: Record<string, unknown>): LogEvent =>
  event("said", { turn: 1, frame: { method: "session/update", params: { update: { sessionUpdate, ...members } } } });
const text = (it: string, kind = "agent_message_chunk"): LogEvent => update(kind, { content: { type: "text", text: it } });
const prompted = (it: string, turn = 1): LogEvent =>
  event("prompted", { turn, by: "zed", frame: { params: { prompt: [{ type: "text", text: it }] } } });
const fold = (events: LogEvent[]): Item[] => foldWindow(events, []).items;
const kinds = (items: Item[]): string => items.map((it) => it.kind).join(" ");

describe("messages", () => {
  test("chunks are joined until something else comes", () => {
    const call = update("tool_call", { toolCallId: "1", title: "ls" });
    const items = fold([text("a"), text("b"), text("why", "agent_thought_chunk"), text("c"), call, text("d")]);
    expect(kinds(items)).toBe("message thought message tool message");
    expect(partsText((items[0] as AgentItem).parts)).toBe("ab");
  });

  test("a message with another id is another message", () => {
    const chunk = (messageId: string): LogEvent =>
      update("agent_message_chunk", { messageId, content: { type: "text", text: "x" } });
    expect(fold([chunk("1"), chunk("1"), chunk("2")])).toHaveLength(2);
  });

  test("the prompt that the agent repeats is shown once", () => {
    const echo = (it: string): LogEvent => text(it, "user_message_chunk");
    expect(kinds(fold([prompted("Do it"), echo("Do "), echo("it"), text("Yes")]))).toBe("user message");
    expect(kinds(fold([prompted("Do it"), echo("Do "), echo("that"), text("Yes")]))).toBe("user user message");
    expect(kinds(fold([prompted("Do it"), echo("Do it"), echo("More")]))).toBe("user user");
  });
});

describe("tool calls", () => {
  test("updates are merged at the place of the call, and a repeated id in a new turn is a new call", () => {
    const call = (turn: number): LogEvent => ({ ...update("tool_call", { toolCallId: "1", title: "ls" }), turn });
    const items = fold([
      call(1),
      text("meanwhile"),
      update("tool_call_update", { toolCallId: "1", status: "completed", rawOutput: "a.txt" }),
      prompted("again", 2),
      call(2),
    ]);
    expect(kinds(items)).toBe("tool message user tool");
    const [first, last] = [items[0] as ToolItem, items[3] as ToolItem];
    expect([first.status, toolOutput(first), last.status]).toEqual(["done", "a.txt", "pending"]);
    expect((first.endedAt ?? 0) - first.at).toBe(2000);
  });

  test("a call without a result is unfinished when the turn ends", () => {
    const ended = event("ended", { turn: 1, how: "stopped", answer: { stopReason: "end_turn" } });
    const [call] = fold([update("tool_call", { toolCallId: "1", status: "in_progress" }), ended]);
    expect((call as ToolItem).status).toBe("unfinished");
  });

  test("a call that only its permission request describes has that title", () => {
    const asked = event("asked", { ask: 1, frame: { params: { toolCall: { toolCallId: "1", title: "rm x", kind: "delete" } } } });
    const [, call] = fold([asked, update("tool_call_update", { toolCallId: "1", status: "completed" })]);
    expect(call).toMatchObject({ kind: "tool", title: "rm x", toolKind: "delete", status: "done" });
  });

  test("an answer is added to its request, with the name of the option", () => {
    const options = [{ optionId: "1", name: "Yes", kind: "allow_once" }];
    const asked = event("asked", { ask: 4, frame: { params: { toolCall: { toolCallId: "1", title: "rm x" }, options } } });
    const answered = event("answered", { ask: 4, by: "zed", answer: { result: { outcome: { optionId: "1" } } } });
    const [item] = fold([asked, answered, event("learned", { ask: 4 })]) as AskItem[];
    expect(item).toMatchObject({ title: "rm x", isAlways: true, answer: { by: "zed", choice: "Yes", optionKind: "allow_once" } });
    expect(kinds(fold([answered]))).toBe("notice");
  });
});

test("a turn costs the increase of the session's cost, if the log is known from its beginning", () => {
  const opened = event("opened", { agent: "a", cwd: "/" });
  const turn = (number: number, amount: number): LogEvent[] => [
    prompted("x", number),
    update("usage_update", { used: 10, size: 100, cost: { amount, currency: "USD" } }),
    event("ended", { turn: number, how: "stopped", answer: { stopReason: "end_turn", usage: { inputTokens: 3 } } }),
  ];
  const events = [opened, ...turn(1, 0.25), ...turn(2, 0.75)];
  const ends = (items: Item[]): TurnEndItem[] => items.filter((it) => it.kind === "turn-end");
  expect(ends(fold(events)).map((it) => it.cost?.amount)).toEqual([0.25, 0.5]);
  expect(ends(fold(events.slice(1))).map((it) => it.cost?.amount)).toEqual([undefined, 0.5]);
  expect(ends(fold(events))[0]).toMatchObject({ durationMs: 2000, tokens: { input: 3 }, context: { used: 10, size: 100 } });
});

test("a plan is shown once per turn in its last state", () => {
  const plan = (status: string): LogEvent => update("plan", { entries: [{ content: "look", status }] });
  const items = fold([prompted("x"), plan("pending"), text("Go"), plan("completed")]);
  expect(kinds(items)).toBe("user plan message");
  expect(items[1]).toMatchObject({ entries: [{ content: "look", status: "completed" }] });
});

describe("windows", () => {
  test("loading the beginning of a message keeps its key, also when more is loaded", () => {
    const events = [prompted("x"), ...Array.from({ length: 9 }, (_, index) => text(String(index)))];
    let items = foldWindow(events.slice(7), []).items;
    const { key } = items[0] as Item;
    for (const start of [4, 2, 0]) {
      items = foldWindow(events.slice(start), items).items;
      expect(items.at(-1)?.key).toBe(key);
    }
    expect(partsText((items.at(-1) as AgentItem).parts)).toBe("012345678");
  });

  test("items that do not change keep their reference", () => {
    const events = [prompted("x"), text("a"), update("tool_call", { toolCallId: "1", rawInput: { a: 1 } }), text("b")];
    const before = foldWindow(events.slice(1), []).items;
    expect(foldWindow(events, before).items.slice(1)).toEqual(before);
    expect(foldWindow(events, before).items[2]).toBe(before[1]);
  });

  test("an event is found in the item that it changed", () => {
    const events = [prompted("x"), update("tool_call", { toolCallId: "1" }), text("a"), text("b")];
    const result = update("tool_call_update", { toolCallId: "1", status: "completed" });
    const transcript = foldWindow([...events, result], []);
    const index = (at: number): number => transcript.indexOfEvent((events[at] as LogEvent).seq);
    expect([index(0), index(1), index(3), transcript.indexOfEvent(result.seq)]).toEqual([0, 1, 2, 1]);
  });
});

describe.each(recordings())("recording of %s", (name) => {
  const events = recordedLog(name);

  test("is the same when it is folded at once, event by event, and from pages that are prepended", () => {
    const whole = fold(events);
    const stepwise = new Transcript();
    for (const it of events) stepwise.append(it);
    expect(stepwise.items).toEqual(whole);
    let items: Item[] = [];
    for (let start = events.length; start > 0; start -= 7) {
      items = foldWindow(events.slice(Math.max(0, start - 7)), items).items;
    }
    const withoutKeys = (all: Item[]): object[] => all.map(({ key, ...rest }) => rest);
    expect(withoutKeys(items)).toEqual(withoutKeys(whole));
    expect(new Set(items.map((it) => it.key)).size).toBe(items.length);
  });

  test("has all texts of the agent, and each tool call once", () => {
    const items = fold(events);
    const said = JSON.stringify(events.filter((it) => it.is === "said"));
    const ids = new Set(said.match(/"toolCallId":"[^"]+"/g));
    const calls = items.filter((it): it is ToolItem => it.kind === "tool");
    expect(new Set(calls.map((it) => it.callId)).size).toBe(ids.size);
    for (const it of calls) for (const diff of toolDiffs(it)) expect(diff.path).not.toBe("");
  });
});
