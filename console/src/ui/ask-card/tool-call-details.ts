/** What the log knows about the tool call of a permission request: its text and diffs, which are not in the request row. */

import type { Ask } from "jackfield-client";
import { readLog } from "../../api/log";
import type { LogEvent } from "../../api/stream/messages";
import { frameParams, member, type ToolItem } from "../../transcript/item";
import { mergeToolUpdate, newToolCall, toolCallId } from "../../transcript/tool-call";

/** An open request is near the end of the log; further back than this it is not searched. */
const PAGES_MAX = 5;
const PAGE_EVENTS = 200;

/** Reads the log backwards to the request, and to the tool call that it belongs to. */
export async function loadToolCall(ask: Ask): Promise<ToolItem> {
  let events: LogEvent[] = [];
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const first = events[0]?.seq;
    const page = await readLog(ask.sessionId, { limit: PAGE_EVENTS, ...(first !== undefined && { before: first }) });
    events = [...page.events, ...events];
    if (!page.hasBefore || events.some((it) => isStartOf(it, ask))) break;
  }
  return mergeToolCall(events, ask);
}

const isRequest = (event: LogEvent, ask: Ask): boolean => event.is === "asked" && event["ask"] === ask.ask;
const isOfCall = (update: unknown, ask: Ask): boolean => ask.toolCallId != null && toolCallId(update) === ask.toolCallId;
const updateOf = (event: LogEvent): unknown => (event.is === "said" ? member(frameParams(event), "update") : undefined);

/** The first event of the tool call; of a request without one, the request itself. */
const isStartOf = (event: LogEvent, ask: Ask): boolean =>
  ask.toolCallId == null ? isRequest(event, ask) : isOfCall(updateOf(event), ask) && member(updateOf(event), "sessionUpdate") === "tool_call";

/** The tool call with its updates up to the request, which may replace its content. */
export function mergeToolCall(events: LogEvent[], ask: Ask): ToolItem {
  let call = newToolCall(ask.toolCallId ?? "", 0, 0, 0);
  for (const event of events) {
    const update = isRequest(event, ask) ? member(frameParams(event), "toolCall") : updateOf(event);
    if (isRequest(event, ask) || isOfCall(update, ask)) call = mergeToolUpdate(call, update, event.at);
  }
  return call;
}
