/** Tokens and cost over all sessions, as far as agents report them. */

import type { Cost } from "../ui/format";
import { api } from "./client";

export const GROUPINGS = ["day", "agent", "model", "project"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** What is not reported is absent or `null`, and not zero. */
export interface TokenCounts {
  input?: number | null;
  output?: number | null;
  thought?: number | null;
  cachedRead?: number | null;
  cachedWrite?: number | null;
  total?: number | null;
}

export interface UsageSum {
  sessions: number;
  turns: number;
  /** The number of turns with known tokens. */
  known: number;
  tokens: TokenCounts;
  /** One per currency. */
  costs: Cost[];
}

export interface UsageGroup extends UsageSum {
  /** The day (`2026-11-18`, in UTC), agent, model or directory. */
  name: string;
}

export interface UsageReport {
  by: Grouping;
  groups: UsageGroup[];
  sum: UsageSum;
}

export const readUsage = (by: Grouping, days: number): Promise<UsageReport> =>
  api.usage({ by, since: `${days}d` });
