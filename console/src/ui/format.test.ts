import { expect, test } from "vitest";
import { formatAgo, formatCompact, formatCost, formatCosts, formatDuration, formatNumberOf } from "./format";

test("durations use the two largest units", () => {
  expect([0, 999, 1_000, 59_949, 59_950, 60_000, 192_000, 3_600_000, 7_500_000].map(formatDuration)).toEqual([
    "0 ms", "999 ms", "1.0 s", "59.9 s", "1 min", "1 min", "3 min 12 s", "1 h", "2 h 5 min",
  ]);
});

test("ages are now, minutes, hours or days", () => {
  const minute = 60_000;
  const ages = [0, 59_999, minute, 59 * minute, 60 * minute, 47 * 60 * minute, 48 * 60 * minute];
  expect(ages.map((age) => formatAgo(1e12 - age, 1e12))).toEqual(["now", "now", "1 min ago", "59 min ago", "1 h ago", "47 h ago", "2 d ago"]);
});

test("costs of different currencies are not added", () => {
  expect(formatCost({ amount: 0.04213, currency: "USD" })).toBe("0.0421 USD");
  expect(formatCosts([{ amount: 1234.5, currency: "USD" }, { amount: 0.5, currency: "EUR" }])).toBe("1,234.50 USD + 0.50 EUR");
});

test("counts are compact or with a noun", () => {
  expect(formatCompact(1_234_567)).toBe("1.2M");
  expect([formatNumberOf(1, "file"), formatNumberOf(1_200, "file")]).toEqual(["1 file", "1,200 files"]);
});
