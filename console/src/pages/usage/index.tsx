/** The page "Usage": tokens and cost of all sessions, only as far as agents report them. */

import { useSearchParams } from "@solidjs/router";
import { createMemo, createSignal, For, lazy, Show, Suspense, type JSX } from "solid-js";
import { GROUPINGS, readUsage, type Grouping, type UsageReport, type UsageSum } from "../../api/usage";
import { createReloading } from "../../state/reloading";
import { now } from "../../ui/clock";
import { formatCompact, formatCost, formatCosts, formatCount, formatNumberOf } from "../../ui/format";
import { Loaded } from "../../ui/loaded";
import "../../ui/page.css";
import { dayName, measureLabel, measuresOf, toDaySeries, type Measure } from "./series";
import { GROUPING_LABELS, UsageTable } from "./usage-table";
import "./usage.css";

const Plot = lazy(() => import("./plot"));
const PERIODS = [7, 30, 90];

export default function UsagePage(): JSX.Element {
  const [search, setSearch] = useSearchParams<{ by?: string; days?: string }>();
  const by = (): Grouping => GROUPINGS.find((it) => it === search.by) ?? "agent";
  const days = (): number => PERIODS.find((it) => String(it) === search.days) ?? 30;
  const [byDay, reloadDays] = createReloading(days, (it) => readUsage("day", it));
  const choice = () => (by() === "day" ? undefined : { by: by(), days: days() });
  const [grouped, reloadGroups] = createReloading(choice, (it) => readUsage(it.by, it.days));

  return (
    <div class="page usage">
      <div class="page-header">
        <h1>Usage</h1>
        <div class="usage-choices">
          <label>
            Period{" "}
            <select value={String(days())} onChange={(event) => setSearch({ days: event.currentTarget.value })}>
              <For each={PERIODS}>{(it) => <option value={String(it)}>{it} days</option>}</For>
            </select>
          </label>
          <label>
            By{" "}
            <select value={by()} onChange={(event) => setSearch({ by: event.currentTarget.value })}>
              <For each={GROUPINGS}>{(it) => <option value={it}>{GROUPING_LABELS[it]}</option>}</For>
            </select>
          </label>
        </div>
      </div>
      <Loaded resource={byDay} onRetry={reloadDays}>
        {(report) => (
          <Show when={report().sum.turns > 0} fallback={<p class="muted">No turns in the last {days()} days.</p>}>
            <UsageSummary sum={report().sum} />
            <UsagePlot report={report()} days={days()} />
            <Show when={by() !== "day"} fallback={<UsageTable report={report()} by="day" />}>
              <Loaded resource={grouped} onRetry={reloadGroups}>
                {(groups) => <UsageTable report={groups()} by={by()} />}
              </Loaded>
            </Show>
          </Show>
        )}
      </Loaded>
    </div>
  );
}

function UsageSummary(props: { sum: UsageSum }): JSX.Element {
  const total = () => props.sum.tokens.total;
  return (
    <div class="usage-summary">
      <p>
        <strong>{total() == null ? "unknown" : formatCompact(total() as number)}</strong> tokens
      </p>
      <p>
        <strong>{formatCosts(props.sum.costs) || "unknown"}</strong> cost
      </p>
      <p class="muted">
        {formatCount(props.sum.known)} of {formatNumberOf(props.sum.turns, "turn")} reported tokens, in{" "}
        {formatNumberOf(props.sum.sessions, "session")}. What an agent does not report is unknown and not counted.
      </p>
    </div>
  );
}

function UsagePlot(props: { report: UsageReport; days: number }): JSX.Element {
  const [index, setIndex] = createSignal(0);
  const measures = () => measuresOf(props.report.sum);
  const measure = (): Measure => measures()[index()] ?? { kind: "tokens" };
  // Redrawn when the day changes, not with each tick of the clock.
  const today = createMemo(() => dayName(now()));
  const series = createMemo(() => toDaySeries(props.report.groups, measure(), props.days, Date.parse(today())));
  const format = (value: number): string => {
    const it = measure();
    return it.kind === "tokens" ? formatCompact(value) : formatCost({ amount: value, currency: it.currency });
  };
  return (
    <>
      <Show when={measures().length > 1}>
        <div class="usage-measures" role="group" aria-label="Plot">
          <For each={measures()}>
            {(it, position) => (
              <button type="button" aria-pressed={index() === position()} onClick={() => setIndex(position())}>
                {measureLabel(it)}
              </button>
            )}
          </For>
        </div>
      </Show>
      <Suspense fallback={<div class="usage-plot-space" />}>
        <Plot series={series()} label={measureLabel(measure())} format={format} />
      </Suspense>
    </>
  );
}
