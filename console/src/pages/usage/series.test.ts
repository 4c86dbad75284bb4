import { expect, test } from "vitest";
import type { UsageGroup } from "../../api/usage";
import { measuresOf, sortGroups, toDaySeries } from "./series";

const group = (name: string, total: number | null, costs: UsageGroup["costs"] = []): UsageGroup => ({
  name, sessions: 1, turns: 1, known: total === null ? 0 : 1, tokens: { total }, costs,
});
const NOW = Date.UTC(2026, 10, 18, 15);

test("days without turns are in the series without a value", () => {
  const groups = [group("2026-11-16", 100), group("2026-11-18", 50), group("2026-10-01", 9)];
  const { days, values } = toDaySeries(groups, { kind: "tokens" }, 4, NOW);
  expect(values).toEqual([null, 100, null, 50]);
  expect(days[3]).toBe(Date.UTC(2026, 10, 18) / 1_000);
});

test("each currency is a measure of its own", () => {
  const costs = [{ amount: 1, currency: "USD" }, { amount: 2, currency: "EUR" }];
  expect(measuresOf(group("sum", 1, costs))).toHaveLength(3);
  expect(toDaySeries([group("2026-11-18", 1, costs)], { kind: "cost", currency: "EUR" }, 1, NOW).values).toEqual([2]);
});

test("groups are sorted by tokens, unknown ones last, and days from the last", () => {
  const groups = [group("a", null), group("b", 5), group("c", 7)];
  expect(sortGroups(groups, "agent").map((it) => it.name)).toEqual(["c", "b", "a"]);
  expect(sortGroups([group("2026-11-16", 9), group("2026-11-17", 1)], "day").map((it) => it.name)).toEqual(["2026-11-17", "2026-11-16"]);
});
