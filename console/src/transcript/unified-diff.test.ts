import { expect, test } from "vitest";
import type { DiffRow } from "./line-diff";
import { parseUnifiedDiff } from "./unified-diff";

const short = (rows: DiffRow[]): unknown[] =>
  rows.map((it) => (it.kind === "skipped" ? it.count : [it.kind, "oldLine" in it ? it.oldLine : 0, "newLine" in it ? it.newLine : 0, it.pieces.map(({ text }) => text).join("")]));

test("hunks have line numbers, and the lines between them are counted", () => {
  const text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,2 +2,2 @@ fn main\n a\n-b\n+B\n@@ -10 +10,2 @@\n c\n+d\n\\ No newline at end of file\n";
  expect(short(parseUnifiedDiff(text))).toEqual([
    1,
    ["same", 2, 2, "a"],
    ["removed", 3, 0, "b"],
    ["added", 0, 3, "B"],
    6,
    ["same", 10, 10, "c"],
    ["added", 0, 11, "d"],
  ]);
});

test("removed lines that look like a header are lines", () => {
  expect(short(parseUnifiedDiff("--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n--- a comment\n-b\n"))).toEqual([
    ["removed", 1, 0, "-- a comment"],
    ["removed", 2, 0, "b"],
  ]);
});

test("text without hunks has no rows", () => {
  expect(parseUnifiedDiff("Binary files a/x and b/x differ\n")).toEqual([]);
});

test("diffs of the daemon have no numbers, and several changes follow each other", () => {
  const text = "--- /dev/null\n+++ /w/a\n+one\n--- /w/a\n+++ /w/a\n@@\n a\n-b\n@@\n+c\n";
  const rows = parseUnifiedDiff(text);
  expect(short(rows)).toEqual([
    ["added", 0, undefined, "one"],
    undefined,
    ["same", undefined, undefined, "a"],
    ["removed", undefined, 0, "b"],
    undefined,
    ["added", 0, undefined, "c"],
  ]);
});
