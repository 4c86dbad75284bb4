/** Tests of the filter and the order of the list. */

import { expect, test } from "vitest";
import type { SessionRow } from "../../state/session-row";
import { DEFAULT_ORDER, formatOrder, matchesFilter, parseFilter, parseOrder, projectOf, sortRows } from "./session-query";

const row = (sessionId: string, members: Partial<SessionRow> = {}): SessionRow => ({
  sessionId,
  agent: "claude",
  agentSession: "",
  argv: [],
  asks: 0,
  clients: 0,
  cwd: "/user/me/parser",
  events: 1,
  openedAt: "2026-01-01T00:00:00Z",
  queued: 0,
  state: "idle",
  title: "Fix it",
  turns: 1,
  updatedAt: "2026-01-01T00:00:00Z",
  ...members,
});

const matches = (text: string, members: Partial<SessionRow> = {}): boolean => matchesFilter(row("s-1", members), parseFilter(text));

test("terms of a filter must all match", () => {
  expect(matches("FIX parser")).toBe(true);
  expect(matches("fix server")).toBe(false);
  expect(matches('"fix it"')).toBe(true);
  expect(matches("fix -parser")).toBe(false);
  expect(matches("state:working,idle agent:cl project:par")).toBe(true);
  expect(matches("state:working")).toBe(false);
  expect(matches("state:needs", { state: "asks" })).toBe(true);
  expect(matches("-state:closed")).toBe(true);
  expect(matches("project:/user/me")).toBe(true);
  expect(matches("host:build-1", { host: "build-1" })).toBe(true);
  expect(matches("host:build-1")).toBe(false);
  expect(matches("")).toBe(true);
});

test("what waits for the user comes first, then what changed last", () => {
  const rows = [
    row("s-old"),
    row("s-new", { updatedAt: "2026-03-01T00:00:00Z" }),
    row("s-asks", { asks: 1, updatedAt: "2025-01-01T00:00:00Z" }),
  ];
  const ids = (order = DEFAULT_ORDER): string[] => sortRows(rows, order).map((it) => it.sessionId);
  expect(ids()).toEqual(["s-asks", "s-new", "s-old"]);
  expect(ids({ column: "updated", isDescending: false })).toEqual(["s-asks", "s-old", "s-new"]);
  expect(ids({ column: "agent", isDescending: false })).toEqual(["s-new", "s-old", "s-asks"]);
});

test("the order is kept in the address", () => {
  for (const it of ["-updated", "cost", "title"]) expect(formatOrder(parseOrder(it))).toBe(it);
  expect(formatOrder(parseOrder("unknown"))).toBeUndefined();
});

test("the project is the last part of the directory", () => {
  expect([projectOf("/a/b/"), projectOf("/a"), projectOf("/"), projectOf("C:\\a\\b")]).toEqual(["b", "a", "/", "b"]);
});

test("10,000 rows are filtered and sorted in time", () => {
  const rows = Array.from({ length: 10_000 }, (_, index) => row(`s-${index}`, { title: `Task ${index}` }));
  const sorted = sortRows(rows, DEFAULT_ORDER);
  const startedAt = performance.now();
  const found = sorted.filter((it) => matchesFilter(it, parseFilter("task 99 agent:claude")));
  expect(found.length).toBeGreaterThan(100);
  // The page has 50 ms, on a machine that does nothing else.
  expect(performance.now() - startedAt).toBeLessThan(500);
});
