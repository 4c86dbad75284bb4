/**
 * The rows of a transcript: one per item, but several for a long message, so that only its visible parts are drawn.
 *
 * Rows of items that did not change keep their reference.
 */

import type { AgentItem, Item, MessagePart } from "./item";
import { splitMarkdown } from "./markdown";

export interface Row {
  key: string;
  item: Item;
  /** What this row shows of a message; all of it if there is one row. */
  parts: readonly MessagePart[];
  isFirst: boolean;
  isLast: boolean;
}

export class RowList {
  #known = new Map<string, Row[]>();

  /** The rows of the items. */
  update(items: readonly Item[]): Row[] {
    const known = new Map<string, Row[]>();
    const rows: Row[] = [];
    for (const item of items) {
      const before = this.#known.get(item.key);
      const same = before?.[0]?.item === item ? before : rowsOf(item, before ?? []);
      known.set(item.key, same);
      rows.push(...same);
    }
    this.#known = known;
    return rows;
  }
}

function rowsOf(item: Item, before: readonly Row[]): Row[] {
  if (item.kind !== "message") {
    const parts = item.kind === "user" || item.kind === "thought" ? item.parts : [];
    return [{ key: item.key, item, parts, isFirst: true, isLast: true }];
  }
  const groups = item.parts.flatMap((it): MessagePart[][] =>
    it.type === "text" ? splitGrowing(it.text, item, before).map((text) => [{ type: "text", text }]) : [[it]],
  );
  return groups.map((parts, index) => {
    const key = index === 0 ? item.key : `${item.key}/${index}`;
    return { key, item, parts, isFirst: index === 0, isLast: index === groups.length - 1 };
  });
}

/** Divides a text. If it only has grown, its finished parts are taken from the rows before. */
function splitGrowing(text: string, item: AgentItem, before: readonly Row[]): string[] {
  const old = before[0]?.item;
  const isGrown = item.parts.length === 1 && before.length > 1 && old?.kind === "message" && old.seq === item.seq && old.parts.length === 1;
  if (!isGrown) return splitMarkdown(text);
  const done = before.slice(0, -1).map((it) => (it.parts[0]?.type === "text" ? it.parts[0].text : ""));
  const length = done.reduce((sum, it) => sum + it.length, 0);
  return [...done, ...splitMarkdown(text.slice(length))];
}
