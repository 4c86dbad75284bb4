/** Tokens and cost over all sessions, as far as agents report them. */

import type { UsageTable } from "jackfield-client";
import { api } from "./client";

export type UsageReport = UsageTable;
export type Grouping = UsageReport["by"];
/** What is not reported is absent or `null`, and not zero. */
export type UsageSum = UsageReport["sum"];
export type UsageGroup = UsageReport["groups"][number];

export const GROUPINGS: readonly Grouping[] = ["day", "agent", "model", "project"];

export const readUsage = (by: Grouping, days: number): Promise<UsageReport> => api.usage({ by, since: `${days}d` });
