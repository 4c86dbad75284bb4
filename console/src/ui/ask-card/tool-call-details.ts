/** What the log knows about the tool call of a permission request: its text and diffs, which are not in the request row. */

import type { Ask } from "jackfield-client";
import { requestJson } from "../../api/request";
import type { LogEvent } from "../../api/stream/messages";

export interface FileDiff {
  path: string;
  oldText: string;
  newText: string;
}

export interface ToolCallDetails {
  diffs: FileDiff[];
  texts: string[];
}

interface LogPage {
  events: LogEvent[];
  hasBefore: boolean;
}

type Json = Record<string, unknown>;

/** An open request is near the end of the log; further back than this it is not searched. */
const PAGES_MAX = 5;
const PAGE_EVENTS = 200;

const asObject = (it: unknown): Json => (typeof it === "object" && it !== null ? (it as Json) : {});

/** Reads the log backwards to the request, and to the tool call that it belongs to. */
export async function loadToolCallDetails(ask: Ask): Promise<ToolCallDetails> {
  let events: LogEvent[] = [];
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { limit: PAGE_EVENTS, before: events[0]?.seq };
    const page = await requestJson<LogPage>("GET", `/api/sessions/${encodeURIComponent(ask.sessionId)}/log`, { query });
    events = [...page.events, ...events];
    if (!page.hasBefore || events.some((it) => isStartOf(it, ask))) break;
  }
  return readDetails(events, ask);
}

/** The first event of the tool call; of a request without one, the request itself. */
const isStartOf = (event: LogEvent, ask: Ask): boolean =>
  ask.toolCallId == null ? isRequest(event, ask) : updateOf(event)["sessionUpdate"] === "tool_call" && isOfCall(updateOf(event), ask);

const isRequest = (event: LogEvent, ask: Ask): boolean => event.is === "asked" && event["ask"] === ask.ask;
const isOfCall = (call: Json, ask: Ask): boolean => ask.toolCallId != null && call["toolCallId"] === ask.toolCallId;
const paramsOf = (event: LogEvent): Json => asObject(asObject(event["frame"])["params"]);
const updateOf = (event: LogEvent): Json => (event.is === "said" ? asObject(paramsOf(event)["update"]) : {});

/** The content of the request, or the last content of its tool call before it. */
export function readDetails(events: LogEvent[], ask: Ask): ToolCallDetails {
  let content: unknown;
  for (const event of events) {
    const call = isRequest(event, ask) ? asObject(paramsOf(event)["toolCall"]) : updateOf(event);
    if ((isRequest(event, ask) || isOfCall(call, ask)) && Array.isArray(call["content"])) content = call["content"];
  }
  return readContent(content);
}

function readContent(content: unknown): ToolCallDetails {
  const details: ToolCallDetails = { diffs: [], texts: [] };
  for (const block of Array.isArray(content) ? content.map(asObject) : []) {
    const inner = asObject(block["content"]);
    if (block["type"] === "diff" && typeof block["newText"] === "string") {
      const oldText = typeof block["oldText"] === "string" ? block["oldText"] : "";
      details.diffs.push({ path: String(block["path"] ?? ""), oldText, newText: block["newText"] });
    } else if (block["type"] === "content" && typeof inner["text"] === "string") {
      details.texts.push(inner["text"]);
    }
  }
  return details;
}
