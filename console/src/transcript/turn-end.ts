/** How a turn ended, and what it has used. Only what the agent reports: unknown usage is not zero. */

import type { LogEvent } from "../api/stream/messages";
import type { Cost } from "../ui/format";
import { member, numberMember, stringMember, type Json, type TokenCounts, type TurnEndItem } from "./item";

/** The JSON-RPC error code of a cancelled request, as ACP defines it. */
const REQUEST_CANCELLED = -32800;

/** What is known about a turn before its end. */
export interface RunningTurn {
  turn: number;
  startedAt: number;
  cost: Cost | undefined;
  context: TurnEndItem["context"];
}

/** The item of an `ended` event. */
export function turnEnd(event: LogEvent, running: RunningTurn | undefined): TurnEndItem {
  const answer = member(event, "answer");
  const reason = stringMember(answer, "stopReason");
  const isCancelled =
    reason === "cancelled" ||
    numberMember(answer, "code") === REQUEST_CANCELLED ||
    stringMember(member(member(answer, "data"), "jackfield"), "code") === "cancelled";
  const how = stringMember(event, "how");
  const failed = how === "interrupted" ? "interrupted" : "failed";
  const outcome = isCancelled ? "cancelled" : how === "stopped" ? "completed" : failed;
  const usage = findUsage(answer);
  return {
    kind: "turn-end",
    key: `end-${event.seq}`,
    seq: event.seq,
    at: event.at,
    turn: numberMember(event, "turn") ?? 0,
    outcome,
    detail: outcome === "completed" ? (reason === "end_turn" ? "" : reason) : isCancelled ? "" : errorText(answer, how),
    durationMs: running && Math.max(0, event.at - running.startedAt),
    tokens: usage === undefined ? undefined : parseTokens(usage),
    cost: running?.cost ?? parseCost(member(usage, "cost")) ?? parseCost(jackfieldMeta(answer, "cost")),
    context: running?.context,
  };
}

const jackfieldMeta = (answer: Json | undefined, name: string): Json | undefined =>
  member(member(member(answer, "_meta"), "jackfield"), name);

/** "Internal error" alone does not help; agents put the cause in one of several members. */
function errorText(error: Json | undefined, how: string): string {
  const message = (stringMember(error, "message") || "an error without a message").replace(new RegExp(`^${how}: `), "");
  const data = member(error, "data");
  const members = ["details", "detail", "message", "error", "reason"].map((it) => stringMember(data, it));
  const cause = members.find((it) => it !== "") ?? (typeof data === "string" ? data : "");
  return cause === "" || message.includes(cause) ? message : `${message}: ${cause}`;
}

function findUsage(answer: Json | undefined): Json | undefined {
  const meta = member(answer, "_meta");
  const places = [
    member(answer, "usage"),
    member(meta, "usage"),
    member(member(meta, "quota"), "token_count"),
    member(meta, "tokenUsage"),
  ];
  return places.find((it) => typeof it === "object" && it !== null);
}

export function parseCost(cost: Json | undefined): Cost | undefined {
  const amount = numberMember(cost, "amount");
  if (amount === undefined || amount < 0) return undefined;
  return { amount, currency: (stringMember(cost, "currency") || "USD").slice(0, 8) };
}

/** The names of each count, as agents write them. */
const TOKEN_MEMBERS: Record<keyof TokenCounts, string[]> = {
  input: ["inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "input"],
  output: ["outputTokens", "output_tokens", "completionTokens", "completion_tokens", "output"],
  cachedRead: ["cachedReadTokens", "cachedInputTokens", "cache_read_input_tokens", "cached_input_tokens", "cacheRead"],
  cachedWrite: ["cachedWriteTokens", "cache_creation_input_tokens", "cacheWrite"],
  thought: ["thoughtTokens", "reasoning_output_tokens", "reasoning"],
  total: ["totalTokens", "total_tokens"],
};

function parseTokens(usage: Json): TokenCounts {
  const counts: TokenCounts = {};
  for (const [name, members] of Object.entries(TOKEN_MEMBERS) as [keyof TokenCounts, string[]][]) {
    const found = members.map((it) => numberMember(usage, it)).find((it) => it !== undefined);
    if (found !== undefined) counts[name] = found;
  }
  return counts;
}
