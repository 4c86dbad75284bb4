/**
 * Folds the events of a log, in order, into the items of a transcript.
 *
 * Appending an event costs the same for a short and a long transcript. When older events are loaded, the whole window
 * is folded again (`foldWindow`), because they may begin a message or a tool call of which the window has the rest.
 */

import type { LogEvent } from "../api/stream/messages";
import {
  addPart,
  contentPart,
  frameParams,
  listMember,
  member,
  numberMember,
  partsText,
  stringMember,
  type AgentItem,
  type AskItem,
  type Item,
  type Json,
  type NoticeItem,
  type PlanEntry,
  type ToolItem,
  type UserItem,
} from "./item";
import { eventNotice } from "./notice";
import { hasEnded, mergeToolDescription, mergeToolUpdate, newToolCall, toolCallId } from "./tool-call";
import { parseCost, turnEnd, type RunningTurn } from "./turn-end";

export class Transcript {
  readonly items: Item[] = [];
  /** Where the items are that events change after others have followed. */
  readonly #calls = new Map<string, number>();
  readonly #asks = new Map<number, number>();
  readonly #optionNames = new Map<string, { name: string; kind: string }>();
  /** The calls of permission requests: some agents describe a call only there. */
  readonly #requestedCalls = new Map<string, Json | undefined>();
  readonly #openCalls = new Set<number>();
  #plan: number | undefined;
  #turn: RunningTurn | undefined;
  /** The text of the prompt that the agent has not repeated yet: some agents send it back. */
  #prompt = "";
  #echo: LogEvent[] = [];
  /** The cost of the session at the last report; unknown if the beginning of the log is not loaded. */
  #sessionCost: number | undefined;
  /** The item of each event that changed an earlier item. */
  readonly #itemOfUpdate = new Map<number, number>();

  append(event: LogEvent): void {
    switch (event.is) {
      case "said":
        return this.#onSaid(event);
      case "prompted":
        return this.#onPrompted(event);
      case "ended":
        return this.#onEnded(event);
      case "asked":
        return this.#onAsked(event);
      case "answered":
        return this.#onAnswered(event);
      case "learned": {
        const index = this.#asks.get(numberMember(event, "ask") ?? -1);
        if (index !== undefined) this.#update<AskItem>(index, event, (it) => ({ ...it, isAlways: true }));
        return;
      }
      case "gone":
        this.#endOpenCalls(event);
        break;
      case "opened":
        this.#sessionCost = 0;
        break;
    }
    const notice = eventNotice(event);
    if (notice) this.#push(notice);
  }

  /** The index of the item that contains this event, or of the one before it. */
  indexOfEvent(seq: number): number {
    const updated = this.#itemOfUpdate.get(seq);
    if (updated !== undefined) return updated;
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.items[middle] as Item).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  #push(item: Item): number {
    this.items.push(item);
    return this.items.length - 1;
  }

  #update<T extends Item>(index: number, event: LogEvent, change: (item: T) => T): void {
    this.items[index] = change(this.items[index] as T);
    if (index < this.items.length - 1) this.#itemOfUpdate.set(event.seq, index);
  }

  #onSaid(event: LogEvent): void {
    const update = member(frameParams(event), "update");
    switch (stringMember(update, "sessionUpdate")) {
      case "agent_message_chunk":
        return this.#addAgentText("message", event, update);
      case "agent_thought_chunk":
        return this.#addAgentText("thought", event, update);
      case "user_message_chunk":
        return this.#addEcho(event);
      case "tool_call":
        return this.#mergeCall(event, update, true);
      case "tool_call_update":
        return this.#mergeCall(event, update, false);
      case "plan":
        return this.#setPlan(event, update);
      case "usage_update":
        return this.#addUsage(update);
      case "current_mode_update":
        return this.#addNotice(event, `Mode: ${stringMember(update, "currentModeId")}`);
      case "session_info_update": {
        const meta = member(member(update, "_meta"), "jackfield");
        const notice = stringMember(meta, "notice");
        if (notice !== "") this.#addNotice(event, notice);
        const stderr = stringMember(meta, "stderr");
        if (stderr !== "") this.#addNotice(event, "The agent wrote to stderr", stderr);
      }
    }
  }

  #addNotice({ seq, at }: LogEvent, text: string, detail = ""): void {
    const notice: NoticeItem = { kind: "notice", key: `notice-${seq}`, seq, at, level: "info", text, detail };
    this.#push(notice);
  }

  #addAgentText(kind: "message" | "thought", event: LogEvent, update: Json | undefined): void {
    const messageId = stringMember(update, "messageId");
    const part = contentPart(member(update, "content"));
    const last = this.items.at(-1);
    if (last && last.kind === kind && (last as AgentItem).messageId === messageId) {
      const { parts, ...rest } = last as AgentItem;
      this.items[this.items.length - 1] = { ...rest, parts: addPart(parts, part), endedAt: event.at };
      return;
    }
    // Some agents begin each message with an empty chunk.
    if (part.type === "text" && part.text === "") return;
    const { seq, at } = event;
    const isLate = event["late"] === true;
    this.#push({ kind, key: `text-${seq}`, seq, at, messageId, parts: [part], endedAt: at, isLate });
  }

  /** A message of the user that the agent sends back. It is shown unless it is the prompt. */
  #addEcho(event: LogEvent): void {
    const chunk = contentPart(member(member(frameParams(event), "update"), "content"));
    if (chunk.type === "text" && chunk.text === "") return;
    this.#echo.push(event);
    const parts = this.#echo.map((it) => contentPart(member(member(frameParams(it), "update"), "content")));
    const [echo, prompt] = [partsText(parts).trim(), this.#prompt.trim()];
    if (!prompt.startsWith(echo)) for (const it of this.#echo) this.#addUserText(it);
    else if (echo !== prompt) return;
    this.#echo = [];
    this.#prompt = "";
  }

  #addUserText(event: LogEvent): void {
    const part = contentPart(member(member(frameParams(event), "update"), "content"));
    const last = this.items.at(-1);
    if (last?.kind === "user" && last.by === "") {
      this.items[this.items.length - 1] = { ...last, parts: addPart(last.parts, part) };
      return;
    }
    const { seq, at } = event;
    this.#push({ kind: "user", key: `text-${seq}`, seq, at, turn: this.#turn?.turn ?? 0, by: "", parts: [part] });
  }

  #onPrompted(event: LogEvent): void {
    const { seq, at } = event;
    const turn = numberMember(event, "turn") ?? 0;
    const parts = listMember(frameParams(event), "prompt").map(contentPart);
    const item: UserItem = { kind: "user", key: `prompt-${seq}`, seq, at, turn, by: stringMember(event, "by"), parts };
    this.#push(item);
    this.#prompt = partsText(parts);
    this.#echo = [];
    this.#plan = undefined;
    this.#turn = { turn, startedAt: at, cost: undefined, context: undefined };
  }

  #onEnded(event: LogEvent): void {
    this.#endOpenCalls(event);
    const isSame = this.#turn?.turn === numberMember(event, "turn");
    this.#push(turnEnd(event, isSame ? this.#turn : undefined));
    this.#turn = undefined;
    this.#plan = undefined;
  }

  /** Calls without a result get none when the turn has ended or the agent has exited. */
  #endOpenCalls(event: LogEvent): void {
    for (const index of this.#openCalls) {
      this.items[index] = { ...(this.items[index] as ToolItem), status: "unfinished", endedAt: event.at };
    }
    this.#openCalls.clear();
  }

  #mergeCall(event: LogEvent, update: Json | undefined, isMade: boolean): void {
    const index = this.#callIndex(event, toolCallId(update), isMade);
    this.#update<ToolItem>(index, event, (it) => mergeToolUpdate(it, update, event.at));
    if (hasEnded((this.items[index] as ToolItem).status)) this.#openCalls.delete(index);
    else this.#openCalls.add(index);
  }

  /** An id that a new turn uses again names a new call. */
  #callIndex(event: LogEvent, callId: string, isMade: boolean): number {
    const turn = numberMember(event, "turn") ?? this.#turn?.turn ?? 0;
    const known = this.#calls.get(callId);
    if (known !== undefined && !(isMade && (this.items[known] as ToolItem).turn !== turn)) return known;
    const call = newToolCall(callId, turn, event.seq, event.at);
    const index = this.#push(mergeToolDescription(call, this.#requestedCalls.get(callId)));
    this.#requestedCalls.delete(callId);
    this.#calls.set(callId, index);
    return index;
  }

  /** Agents send the whole plan again with each change. */
  #setPlan(event: LogEvent, update: Json | undefined): void {
    const entries: PlanEntry[] = listMember(update, "entries").map((it) => ({
      content: stringMember(it, "content"),
      status: stringMember(it, "status"),
      priority: stringMember(it, "priority"),
    }));
    const { seq, at } = event;
    if (this.#plan === undefined) {
      this.#plan = this.#push({ kind: "plan", key: `plan-${seq}`, seq, at, turn: this.#turn?.turn ?? 0, entries });
    } else {
      this.#update(this.#plan, event, (it) => ({ ...it, entries }));
    }
  }

  /** Agents report the cost of the session so far; that of the turn is the increase. */
  #addUsage(update: Json | undefined): void {
    const used = numberMember(update, "used");
    const size = numberMember(update, "size");
    if (this.#turn && used !== undefined) this.#turn.context = size === undefined ? { used } : { used, size };
    const cost = parseCost(member(update, "cost"));
    if (!cost) return;
    if (this.#turn && this.#sessionCost !== undefined) {
      const increase = Math.max(0, cost.amount - this.#sessionCost);
      this.#turn.cost = { ...cost, amount: (this.#turn.cost?.amount ?? 0) + increase };
    }
    this.#sessionCost = cost.amount;
  }

  #onAsked(event: LogEvent): void {
    const { seq, at } = event;
    const ask = numberMember(event, "ask") ?? 0;
    const params = frameParams(event);
    const call = member(params, "toolCall");
    const callId = typeof call === "object" && call !== null ? toolCallId(call) : "";
    for (const it of listMember(params, "options")) {
      const option = { name: stringMember(it, "name"), kind: stringMember(it, "kind") };
      this.#optionNames.set(`${ask}/${stringMember(it, "optionId")}`, option);
    }
    const index = this.#calls.get(callId);
    if (index !== undefined) this.#update<ToolItem>(index, event, (it) => mergeToolDescription(it, call));
    else if (callId !== "") this.#requestedCalls.set(callId, call);
    const known = index === undefined ? "" : (this.items[index] as ToolItem).title;
    const title = stringMember(params, "message") || stringMember(call, "title") || known;
    const why = stringMember(member(event, "decision"), "why");
    const item: AskItem = { kind: "ask", key: `ask-${seq}`, seq, at, ask, callId, title, why, answer: undefined, isAlways: false };
    this.#itemOfUpdate.delete(seq);
    this.#asks.set(ask, this.#push(item));
  }

  #onAnswered(event: LogEvent): void {
    const ask = numberMember(event, "ask") ?? 0;
    const result = member(member(event, "answer"), "result");
    const optionId = stringMember(member(result, "outcome"), "optionId");
    const option = this.#optionNames.get(`${ask}/${optionId}`);
    const choice =
      stringMember(member(event, "answer"), "void") ||
      option?.name ||
      optionId ||
      stringMember(result, "action") ||
      "no option chosen";
    const by = stringMember(event, "by");
    const index = this.#asks.get(ask);
    if (index === undefined) return this.#addNotice(event, `A request was answered by ${by}: ${choice}`);
    const answer = { by, choice, optionKind: option?.kind ?? "", at: event.at };
    this.#update<AskItem>(index, event, (it) => ({ ...it, answer }));
  }
}

/** Folds a window of events. Items that are the same as before keep their key and their reference. */
export function foldWindow(events: readonly LogEvent[], before: readonly Item[]): Transcript {
  const transcript = new Transcript();
  for (const it of events) transcript.append(it);
  keepKeys(transcript.items, before);
  return transcript;
}

/** A message whose beginning was loaded keeps its key, so that its place on the screen is kept. */
function keepKeys(items: Item[], before: readonly Item[]): void {
  const isText = (it: Item): boolean => it.key.startsWith("text-");
  const known = new Map(before.map((it) => [it.key, it]));
  const taken = new Set(items.map((it) => it.key));
  let next = 0;
  for (const [index, item] of items.entries()) {
    let old = known.get(item.key);
    if (!old && isText(item)) {
      const end = items[index + 1]?.seq ?? Infinity;
      while (next < before.length && (before[next] as Item).seq < item.seq) next += 1;
      const first = before[next];
      if (first && isText(first) && first.kind === item.kind && first.seq < end && !taken.has(first.key)) old = first;
    }
    if (!old) continue;
    const renamed = { ...item, key: old.key };
    items[index] = isSame(old, renamed) ? old : renamed;
  }
}

/** Whether two values are equal. What comes from the same event is the same object, so long texts are rarely compared. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((it) => isSame((a as Record<string, unknown>)[it], (b as Record<string, unknown>)[it]));
}
