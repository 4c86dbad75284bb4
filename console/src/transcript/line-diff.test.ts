/** Tests of the difference of two texts. */

import { expect, test } from "vitest";
import { countChanges, diffLines, type DiffRow } from "./line-diff";

const print = (rows: DiffRow[]): string[] =>
  rows.map((it) => {
    if (it.kind === "skipped") return `@${it.count}`;
    const sign = { same: " ", removed: "-", added: "+" }[it.kind];
    return sign + it.pieces.map(({ text, isChanged }) => (isChanged ? `[${text}]` : text)).join("");
  });

test("changed words are marked in lines that replace each other", () => {
  expect(print(diffLines("let x = 1;\nkeep\n", "let y = 1;\nkeep\n"))).toEqual(["-let [x] = 1;", "+let [y] = 1;", " keep"]);
});

test("a new file is all added, and distant lines are not shown", () => {
  expect(print(diffLines("", "a\nb\n"))).toEqual(["+a", "+b"]);
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const changed = lines.with(10, "other words entirely");
  const rows = diffLines(lines.join("\n"), changed.join("\n"));
  expect(print(rows)).toEqual(["@7", " line 7", " line 8", " line 9", "-line 10", "+other words entirely", " line 11", " line 12", " line 13", "@6"]);
  expect(rows[1]).toMatchObject({ oldLine: 8, newLine: 8 });
});

test("random texts: the rows are both texts", () => {
  let state = 7;
  const random = (below: number): number => (state = (state * 48271) % 2147483647) % below;
  for (let round = 0; round < 200; round += 1) {
    const text = (): string[] => Array.from({ length: random(12) }, () => `w${random(4)}`);
    const [a, b] = [text(), text()];
    const rows = diffLines(a.join("\n"), b.join("\n"));
    const shown = rows.filter((it) => it.kind !== "skipped");
    const side = (kind: "removed" | "added"): string[] =>
      shown.filter((it) => it.kind === kind || it.kind === "same").map((it) => it.pieces.map(({ text }) => text).join(""));
    if (shown.length !== rows.length) continue;
    expect(side("removed")).toEqual(a);
    expect(side("added")).toEqual(b);
    expect(countChanges(rows).added - countChanges(rows).removed).toBe(b.length - a.length);
  }
});

test("texts with very many differences are compared in bounded time", () => {
  const text = (name: string): string => Array.from({ length: 20_000 }, (_, index) => `${name} ${index}`).join("\n");
  const startedAt = performance.now();
  expect(diffLines(text("a"), text("b"))).toHaveLength(40_000);
  expect(performance.now() - startedAt).toBeLessThan(5000);
});
