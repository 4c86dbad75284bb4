/** Tests of the rows that a long message is divided into. */

import { expect, test } from "vitest";
import type { AgentItem, Item } from "./item";
import { RowList, type Row } from "./rows";

const paragraph = (name: string): string => `${name} ${"word ".repeat(300)}\n\n`;
const paragraphs = Array.from({ length: 60 }, (_, index) => paragraph(`p${index}`));
const message = (text: string, seq = 100): AgentItem => ({
  kind: "message",
  key: "text-100",
  seq,
  at: 0,
  messageId: "",
  parts: [{ type: "text", text }],
  endedAt: 0,
  isLate: false,
});
const textOf = (rows: Row[]): string => rows.map((it) => (it.parts[0]?.type === "text" ? it.parts[0].text : "")).join("");
const hasUniqueKeys = (rows: Row[]): boolean => new Set(rows.map((it) => it.key)).size === rows.length;

test("finished parts of a growing message are the same rows", () => {
  const list = new RowList();
  let before: Row[] = [];
  for (let length = 1; length <= paragraphs.length; length += 1) {
    const text = paragraphs.slice(0, length).join("");
    const rows = list.update([message(text)]);
    expect(textOf(rows)).toBe(text);
    expect(hasUniqueKeys(rows)).toBe(true);
    // Only the last two rows change: the last one grows, or is followed by a new one.
    for (const it of before.slice(0, -1)) expect(rows).toContain(it);
    before = rows;
  }
  expect(before.length).toBeGreaterThan(5);
});

test("a chunk of a long paragraph changes its last rows, which are short", () => {
  const list = new RowList();
  let [text, before]: [string, Row[]] = ["", []];
  for (let count = 0; count < 3000; count += 1) {
    text += `word ${count} `;
    const rows = list.update([message(text)]);
    const changed = rows.filter((it, index) => it !== before[index]);
    expect(changed.length).toBeLessThanOrEqual(2);
    expect(textOf(changed).length).toBeLessThan(10_000);
    before = rows;
  }
  expect(textOf(before)).toBe(text);
  expect(before.slice(0, -1).every((it) => it.isCut)).toBe(true);
});

test("loading the beginning of a message adds rows before, and keeps the others", () => {
  const list = new RowList();
  let rows = list.update([message(paragraphs.slice(45).join("").slice(500), 400)]);
  for (const start of [30, 12, 0]) {
    const text = paragraphs.slice(start).join("").slice(start === 0 ? 0 : 500);
    const next = list.update([message(text, start * 10)]);
    expect(textOf(next)).toBe(text);
    expect(hasUniqueKeys(next)).toBe(true);
    for (const it of rows.slice(1)) expect(next).toContain(it);
    expect(next.some((it) => it.key === rows[0]?.key)).toBe(true);
    rows = next;
  }
  const grown = list.update([message(`${paragraphs.join("")}more`, 0)]);
  expect(textOf(grown)).toBe(`${paragraphs.join("")}more`);
  for (const it of rows.slice(0, -1)) expect(grown).toContain(it);
});

test("rows of items that did not change are the same", () => {
  const list = new RowList();
  const notice: Item = { kind: "notice", key: "notice-1", seq: 1, at: 0, level: "info", text: "x", detail: "" };
  const [first] = list.update([notice]);
  expect(list.update([notice, message("a")])[0]).toBe(first);
});
