/**
 * The items of a transcript, folded from the events of a session's log.
 *
 * An item is never changed: a new event replaces it by a copy with the same key. So components compare references.
 */

import type { LogEvent } from "../api/stream/messages";
import type { Cost } from "../ui/format";

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json | undefined };

interface ItemBase {
  /** Stays the same while the item grows, also when its beginning is loaded later. */
  key: string;
  /** The first event of the item: its permalink. */
  seq: number;
  /** The time of the first event, in Unix milliseconds. */
  at: number;
}

/** A piece of a message. Pieces of text that follow each other are joined. */
export type MessagePart =
  | { type: "text"; text: string }
  | { type: "image"; mimeType: string; data: string }
  /** A file or page that is named, not contained. */
  | { type: "link"; uri: string; name: string }
  /** A file that is contained, as text. */
  | { type: "file"; uri: string; text: string }
  /** Content that the console does not draw, such as audio. */
  | { type: "other"; name: string };

/** What the user has said: a prompt, or a message that the agent repeats. */
export interface UserItem extends ItemBase {
  kind: "user";
  turn: number;
  /** The client that sent it; empty if the agent repeats it. */
  by: string;
  parts: MessagePart[];
}

export interface AgentItem extends ItemBase {
  kind: "message" | "thought";
  /** The agent's id of the message; empty if it gives none. */
  messageId: string;
  parts: MessagePart[];
  /** The time of its last event. */
  endedAt: number;
  /** It came after the end of its turn. */
  isLate: boolean;
}

export type ToolStatus = "pending" | "running" | "done" | "failed" | "cancelled" | "unfinished";

export interface ToolContent {
  type: string;
  [member: string]: Json | undefined;
}

/** A tool call with all of its updates. */
export interface ToolItem extends ItemBase {
  kind: "tool";
  turn: number;
  callId: string;
  /** The agent's title; empty if it gave none. */
  title: string;
  /** `read`, `edit`, `execute`, …; empty if the agent does not say. */
  toolKind: string;
  status: ToolStatus;
  input: Json | undefined;
  rawOutput: Json | undefined;
  content: ToolContent[];
  /** Terminal output that is sent outside of the content. */
  terminalOutput: string;
  locations: { path: string; line?: number }[];
  /** The call whose sub-agent makes this one. */
  parentId: string;
  endedAt: number | undefined;
}

export interface PlanEntry {
  content: string;
  status: string;
  priority: string;
}

/** The plan of a turn in its last state. */
export interface PlanItem extends ItemBase {
  kind: "plan";
  turn: number;
  entries: PlanEntry[];
}

export interface AskAnswer {
  by: string;
  /** The chosen option as the agent names it, or why there is none. */
  choice: string;
  /** `allow_once`, `reject_once`, …; empty if it is no option. */
  optionKind: string;
  at: number;
}

/** A request of the agent to the user. */
export interface AskItem extends ItemBase {
  kind: "ask";
  ask: number;
  /** The tool call that needs permission; empty for a form. */
  callId: string;
  title: string;
  /** Why the policy decided, or did not decide. */
  why: string;
  answer: AskAnswer | undefined;
  /** The answer counts for all similar requests. */
  isAlways: boolean;
}

export interface TokenCounts {
  input?: number;
  output?: number;
  thought?: number;
  cachedRead?: number;
  cachedWrite?: number;
  total?: number;
}

export interface TurnEndItem extends ItemBase {
  kind: "turn-end";
  turn: number;
  outcome: "completed" | "cancelled" | "failed" | "interrupted";
  /** The stop reason if it is an unusual one, or the error; empty otherwise. */
  detail: string;
  durationMs: number | undefined;
  tokens: TokenCounts | undefined;
  cost: Cost | undefined;
  context: { used: number; size?: number } | undefined;
}

/** A sentence about the session. */
export interface NoticeItem extends ItemBase {
  kind: "notice";
  level: "info" | "warning" | "error";
  text: string;
  /** Longer text, such as the last lines on stderr. */
  detail: string;
}

export type Item = UserItem | AgentItem | ToolItem | PlanItem | AskItem | TurnEndItem | NoticeItem;

/** The member of an object, or `undefined`. Frames of agents have any shape. */
export function member(value: unknown, name: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return (value as Record<string, Json | undefined>)[name];
}

export function stringMember(value: unknown, name: string): string {
  const found = member(value, name);
  return typeof found === "string" ? found : "";
}

export function numberMember(value: unknown, name: string): number | undefined {
  const found = member(value, name);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

export function listMember(value: unknown, name: string): Json[] {
  const found = member(value, name);
  return Array.isArray(found) ? found : [];
}

/** The parameters of the message in an event. */
export const frameParams = (event: LogEvent): Json | undefined => member(member(event, "frame"), "params");

/** A content block of ACP as a part of a message. */
export function contentPart(block: unknown): MessagePart {
  const uri = stringMember(block, "uri");
  switch (stringMember(block, "type")) {
    case "text":
      return { type: "text", text: stringMember(block, "text") };
    case "image":
      return { type: "image", mimeType: stringMember(block, "mimeType"), data: stringMember(block, "data") };
    case "resource_link":
      return { type: "link", uri, name: stringMember(block, "title") || stringMember(block, "name") || uri };
    case "resource": {
      const resource = member(block, "resource");
      return { type: "file", uri: stringMember(resource, "uri"), text: stringMember(resource, "text") };
    }
    default:
      return { type: "other", name: stringMember(block, "type") || "content" };
  }
}

/** Adds a part; text is joined with the text before it. */
export function addPart(parts: MessagePart[], part: MessagePart): MessagePart[] {
  const last = parts.at(-1);
  if (last?.type !== "text" || part.type !== "text") return [...parts, part];
  return [...parts.slice(0, -1), { type: "text", text: last.text + part.text }];
}

export const partsText = (parts: MessagePart[]): string =>
  parts.map((it) => (it.type === "text" ? it.text : "")).join("");
