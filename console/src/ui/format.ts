/** Numbers, costs, durations and times as text. */

import type { Session } from "jackfield-client";

export type Cost = NonNullable<Session["cost"]>;

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** All digits: `1,234,567`. */
export const formatCount = (count: number): string => whole.format(count);

/** Three digits at most: `1.2M`. */
export const formatCompact = (count: number): string => compact.format(count);

/** `1 file`, `2 files`. */
export const formatNumberOf = (count: number, singular: string, plural = `${singular}s`): string =>
  `${formatCount(count)} ${count === 1 ? singular : plural}`;

/** As `jackfield usage` prints it: `0.0421 USD`. */
export const formatCost = ({ amount, currency }: Cost): string => {
  const digits = Math.abs(amount) < 1 ? 4 : 2;
  return `${amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits })} ${currency}`;
};

/** Costs of several currencies are listed and never added. */
export const formatCosts = (costs: readonly Cost[]): string => costs.map(formatCost).join(" + ");

/** `320 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`. */
export const formatDuration = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return joinUnits(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  return joinUnits(Math.floor(minutes / 60), "h", minutes % 60, "min");
};

const joinUnits = (large: number, largeUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;

/** `0 min`, `4 min`, `3 h`, `2 d`. */
export const formatAge = (at: number, now: number): string => {
  const minutes = Math.max(0, Math.floor((now - at) / 60_000));
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / (24 * 60))} d`;
};

/** `now`, `4 min ago`, `3 h ago`, `2 d ago`. */
export const formatAgo = (at: number, now: number): string => (now - at < 60_000 ? "now" : `${formatAge(at, now)} ago`);

/** Date and time in the time zone of the browser. */
export const formatDateTime = (at: number): string => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** The time of day in the time zone of the browser. */
export const formatClock = (at: number): string => new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
