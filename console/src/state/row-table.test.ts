/** Tests of the rows that components read. */

import { createEffect, createRoot } from "solid-js";
import { expect, test } from "vitest";
import { RowTable } from "./row-table";

interface TestRow {
  id: string;
  title: string;
}
const rows = (...ids: string[]): [string, TestRow][] => ids.map((id) => [id, { id, title: `title of ${id}` }]);

test("the rows are read as an object", () => {
  const table = new RowTable<TestRow>();
  table.replace(rows("a", "b"));
  table.update([["c", { id: "c", title: "new" }]], ["a"]);
  expect(Object.keys(table.byId)).toEqual(["b", "c"]);
  expect(Object.values(table.byId)).toEqual(table.all());
  expect([table.byId["c"]?.title, table.byId["a"], "b" in table.byId]).toEqual(["new", undefined, true]);
});

test("a reader is updated when its row changes, and not when others do", async () => {
  const table = new RowTable<TestRow>();
  const seen: (string | undefined)[] = [];
  const counts: number[] = [];
  const dispose = createRoot((end: () => void) => {
    createEffect(() => void seen.push(table.byId["a"]?.title));
    createEffect(() => void counts.push(table.all().length));
    return end;
  });
  await Promise.resolve();
  table.replace(rows("a", "b"));
  table.update(rows("b"), []);
  table.update([["a", { id: "a", title: "other" }]], []);
  table.update([], ["a"]);
  expect(seen).toEqual([undefined, "title of a", "other", undefined]);
  expect(counts).toEqual([0, 2, 2, 2, 1]);
  dispose();
});
