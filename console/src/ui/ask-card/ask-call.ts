/** What a permission request is about, as the policy of the daemon reads it. Not the words of the agent. */

import type { Ask } from "jackfield-client";

export interface AskCall {
  /** `execute`, `edit`, `read`, … */
  kind: string | undefined;
  cwd: string | undefined;
  /** Why no rule answered the request. */
  why: string | undefined;
  /** What an answer "always" would permit. */
  always: string | undefined;
  /** The tool that the agent names. */
  tool: string | undefined;
  /** The daemon has read only a part of the request, because it is too large. */
  isCut: boolean;
  commands: string[];
  mcp: string[];
  paths: string[];
  folders: string[];
  /** Texts whose meaning the policy does not know. */
  unknown: string[];
}

const KINDS: Record<string, string> = {
  read: "Read",
  edit: "Change a file",
  delete: "Delete",
  move: "Move a file",
  search: "Search",
  execute: "Run a command",
  think: "Think",
  fetch: "Fetch from the network",
  switch_mode: "Switch the mode",
  other: "Use a tool",
};

const text = (it: unknown): string | undefined => (typeof it === "string" && it !== "" ? it : undefined);
const texts = (it: unknown): string[] => (Array.isArray(it) ? it.filter((one) => typeof one === "string") : []);

export function readCall(ask: Ask): AskCall {
  const call = (ask.call ?? {}) as Record<string, unknown>;
  return {
    kind: text(call["kind"]) ?? text(ask.kind),
    cwd: text(call["cwd"]),
    why: text(call["why"]),
    always: text(call["always"]),
    tool: text(call["tool"]),
    isCut: call["isCut"] === true,
    commands: texts(call["commands"]),
    mcp: texts(call["mcp"]),
    paths: texts(call["paths"]),
    folders: texts(call["folders"]),
    unknown: texts(call["unknown"]),
  };
}

/** What the agent wants, in a few words of ours. */
export function describeKind(ask: Ask): string {
  if (ask.url) return "Open a page";
  if (ask.method === "elicitation/create") return "Question";
  const kind = readCall(ask).kind;
  return (kind !== undefined && KINDS[kind]) || "Permission";
}

/** The beginning of a long text, and how much is missing. */
export const cutText = (it: string, charsMax: number): string =>
  it.length <= charsMax ? it : `${it.slice(0, charsMax)}… (${it.length - charsMax} more characters)`;

/** Whether one of the options applies to more than this request. */
export const hasPermanentOption = (ask: Ask): boolean => ask.options.some((it) => it.kind.endsWith("_always"));
