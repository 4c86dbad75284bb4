/** Tool calls: merging the updates of a call, and what it has put out. Agents send every member early, late or never. */

import {
  contentPart,
  listMember,
  member,
  numberMember,
  stringMember,
  type Json,
  type MessagePart,
  type ToolContent,
  type ToolItem,
  type ToolStatus,
} from "./item";

const STATUSES: Record<string, ToolStatus> = {
  pending: "pending",
  in_progress: "running",
  completed: "done",
  complete: "done",
  succeeded: "done",
  success: "done",
  failed: "failed",
  failure: "failed",
  error: "failed",
  rejected: "failed",
  cancelled: "cancelled",
  canceled: "cancelled",
};

export const hasEnded = (status: ToolStatus): boolean => status !== "pending" && status !== "running";

/** The id of a call; an id that is not text is compared by its JSON. */
export function toolCallId(update: unknown): string {
  const id = member(update, "toolCallId");
  return typeof id === "string" ? id : id === undefined || id === null ? "" : JSON.stringify(id);
}

/** A call of which nothing is known yet. */
export const newToolCall = (callId: string, turn: number, seq: number, at: number): ToolItem => ({
  kind: "tool",
  key: `tool-${seq}`,
  seq,
  at,
  turn,
  callId,
  title: "",
  toolKind: "",
  status: "pending",
  input: undefined,
  rawOutput: undefined,
  content: [],
  terminalOutput: "",
  locations: [],
  parentId: "",
  endedAt: undefined,
});

/** Merges a `tool_call` or `tool_call_update`. */
export function mergeToolUpdate(call: ToolItem, update: unknown, at: number): ToolItem {
  const merged = mergeToolDescription(call, update);
  const meta = member(update, "_meta");
  const content = member(update, "content");
  if (Array.isArray(content)) merged.content = content as unknown as ToolContent[];
  merged.rawOutput = member(update, "rawOutput") ?? merged.rawOutput;
  for (const name of ["terminal_output", "terminal_output_delta"]) {
    merged.terminalOutput += stringMember(member(meta, name), "data");
  }
  merged.parentId ||=
    stringMember(member(meta, "jackfield"), "parentToolCallId") ||
    stringMember(member(meta, "claudeCode"), "parentToolUseId");
  const status = STATUSES[stringMember(update, "status")];
  if (status) merged.status = status;
  merged.endedAt = hasEnded(merged.status) ? (merged.endedAt ?? at) : undefined;
  return merged;
}

/** Merges what the call is, without its progress: a permission request has a status of its own. */
export function mergeToolDescription(call: ToolItem, update: unknown): ToolItem {
  const locations = listMember(update, "locations").map((it) => {
    const line = numberMember(it, "line");
    return { path: stringMember(it, "path"), ...(line === undefined ? {} : { line }) };
  });
  return {
    ...call,
    title: stringMember(update, "title") || stringMember(update, "name") || call.title,
    toolKind: stringMember(update, "kind") || call.toolKind,
    input: mergeInput(call.input, member(update, "rawInput")),
    locations: locations.length > 0 ? locations : call.locations,
  };
}

function mergeInput(known: Json | undefined, added: Json | undefined): Json | undefined {
  if (added === undefined || added === null || added === "") return known;
  const isObject = (it: Json | undefined): it is Record<string, Json> =>
    typeof it === "object" && it !== null && !Array.isArray(it);
  return isObject(known) && isObject(added) ? { ...known, ...added } : added;
}

export interface FileDiff {
  path: string;
  /** Empty for a new file. */
  oldText: string;
  newText: string;
  isNew: boolean;
}

export function toolDiffs(call: ToolItem): FileDiff[] {
  return call.content
    .filter((it) => it.type === "diff")
    .map((it) => ({
      path: stringMember(it, "path"),
      oldText: stringMember(it, "oldText"),
      newText: stringMember(it, "newText"),
      isNew: typeof member(it, "oldText") !== "string",
    }));
}

/** The parts of the content that are not text: images, links, files. */
export function toolMedia(call: ToolItem): MessagePart[] {
  const parts = call.content.filter((it) => it.type === "content").map((it) => contentPart(member(it, "content")));
  return parts.filter((it) => it.type !== "text");
}

/** What the call has put out: the text of its content, else its raw output, else terminal output. */
export function toolOutput(call: ToolItem): string {
  const texts = call.content.map((it) => blockText(member(it, "content"))).filter((it) => it !== "");
  return texts.join("\n") || rawText(call.rawOutput) || call.terminalOutput || rawJson(call);
}

const FENCED = /^\s*(`{3,})(?:console|text|shell|sh|ansi)?\n([\s\S]*?)\n?\1\s*$/;

/** Output of a command that the agent has put into a code block as a whole: its colors are those of a terminal. */
export function fencedOutput(output: string): string | undefined {
  const [, fence = "", text] = FENCED.exec(output) ?? [];
  return text?.includes(fence) ? undefined : text;
}

function blockText(block: Json | undefined): string {
  if (typeof block === "string") return block;
  if (Array.isArray(block)) return block.map(blockText).join("");
  return stringMember(block, "text");
}

function rawText(raw: Json | undefined): string {
  const found = ["output", "stdout", "content", "result", "message"].map((name) => stringMember(raw, name));
  return blockText(raw) || (found.find((it) => it !== "") ?? "");
}

/** The raw output as JSON, if there is nothing better. */
function rawJson({ rawOutput, content }: ToolItem): string {
  if (rawOutput === undefined || rawOutput === null || content.length > 0) return "";
  const isEmpty = typeof rawOutput === "object" && Object.keys(rawOutput).length === 0;
  return isEmpty ? "" : JSON.stringify(rawOutput, null, 2);
}

/** The input in the form that a reader wants: the command, or the arguments as JSON. */
export function toolInput(call: ToolItem): { text: string; language: string } | undefined {
  const { input } = call;
  if (input === undefined || input === null || typeof input === "boolean") return undefined;
  if (typeof input !== "object") return { text: String(input), language: "" };
  const command = member(input, "command") ?? member(input, "cmd");
  if (typeof command === "string") return { text: command, language: "shellscript" };
  if (Array.isArray(command) && command.every((it) => typeof it === "string")) {
    return { text: command.join(" "), language: "shellscript" };
  }
  return Object.keys(input).length > 0 ? { text: JSON.stringify(input, null, 2), language: "json" } : undefined;
}
