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
  #known = new Map<string, KnownRows>();

  /** The rows of the items. */
  update(items: readonly Item[]): Row[] {
    const known = new Map<string, KnownRows>();
    const all: Row[] = [];
    for (const item of items) {
      const before = this.#known.get(item.key);
      const same = before?.item === item ? before : { item, rows: rowsOf(item, before) };
      known.set(item.key, same);
      for (const it of same.rows) all.push(it);
    }
    this.#known = known;
    return all;
  }
}

interface KnownRows {
  item: Item;
  rows: readonly Row[];
}

function rowsOf(item: Item, before: KnownRows | undefined): Row[] {
  if (item.kind !== "message") {
    const parts = item.kind === "user" || item.kind === "thought" ? item.parts : [];
    return [{ key: item.key, item, parts, isFirst: true, isLast: true }];
  }
  const groups = item.parts.flatMap((it): MessagePart[] =>
    it.type === "text" ? splitGrowing(it.text, item, before).map((text) => ({ type: "text", text })) : [it],
  );
  return groups.map((part, index) => {
    const old = before?.rows[index];
    const [isFirst, isLast] = [index === 0, index === groups.length - 1];
    // A finished part of a message that grows is not drawn again.
    if (old && old.isLast === isLast && old.item.seq === item.seq && isSamePart(old.parts[0], part)) return old;
    const key = isFirst ? item.key : `${item.key}/${index}`;
    return { key, item, parts: [part], isFirst, isLast };
  });
}

const isSamePart = (a: MessagePart | undefined, b: MessagePart): boolean =>
  a === b || (a?.type === "text" && b.type === "text" && a.text === b.text);

/** Divides a text. If it only has grown, its finished parts are taken from the rows before. */
function splitGrowing(text: string, item: AgentItem, before: KnownRows | undefined): string[] {
  const old = before?.item;
  const isGrown = item.parts.length === 1 && old?.kind === "message" && old.seq === item.seq && old.parts.length === 1;
  if (!isGrown || before === undefined) return splitMarkdown(text);
  const done = before.rows.slice(0, -1).map((it) => (it.parts[0]?.type === "text" ? it.parts[0].text : ""));
  const length = done.reduce((sum, it) => sum + it.length, 0);
  return [...done, ...splitMarkdown(text.slice(length))];
}
