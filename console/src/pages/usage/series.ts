/** Usage by day as a series for the plot, and the order of groups in the table. */

import type { Grouping, UsageGroup, UsageSum } from "../../api/usage";

const DAY_MS = 86_400_000;

/** What the plot shows: tokens, or the cost in one currency. Costs in different currencies are never added. */
export type Measure = { kind: "tokens" } | { kind: "cost"; currency: string };

/** Text of a measure for a choice on the page. */
export const measureLabel = (measure: Measure): string => (measure.kind === "tokens" ? "Tokens" : `Cost in ${measure.currency}`);

/** Tokens, and each currency that was reported. */
export const measuresOf = (sum: UsageSum): Measure[] => [
  { kind: "tokens" },
  ...sum.costs.map((it): Measure => ({ kind: "cost", currency: it.currency })),
];

export const valueOf = (sum: UsageSum, measure: Measure): number | null =>
  measure.kind === "tokens"
    ? (sum.tokens.total ?? null)
    : (sum.costs.find((it) => it.currency === measure.currency)?.amount ?? null);

export interface DaySeries {
  /** The beginning of each day in Unix seconds, UTC. */
  days: number[];
  /** `null` where no turn reported the measure. */
  values: (number | null)[];
}

/** One value for each of the last days up to today, also for those without a turn. */
export function toDaySeries(groups: readonly UsageGroup[], measure: Measure, dayCount: number, now: number): DaySeries {
  const byDay = new Map(groups.map((it) => [it.name, valueOf(it, measure)]));
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const starts = Array.from({ length: dayCount }, (_, index) => today - (dayCount - 1 - index) * DAY_MS);
  const values = starts.map((it) => byDay.get(dayName(it)) ?? null);
  return { days: starts.map((it) => it / 1_000), values };
}

/** `2026-11-18` in UTC. */
export const dayName = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Days from the last to the first, other groups by their tokens; unknown tokens come last. */
export function sortGroups(groups: readonly UsageGroup[], by: Grouping): UsageGroup[] {
  if (by === "day") return groups.toSorted((a, b) => b.name.localeCompare(a.name));
  return groups.toSorted((a, b) => (b.tokens.total ?? -1) - (a.tokens.total ?? -1) || a.name.localeCompare(b.name));
}
