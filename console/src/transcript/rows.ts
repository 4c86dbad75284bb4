/**
 * The rows of a transcript: one per item, but several for a long message, so that only its visible parts are drawn.
 *
 * Rows of items that did not change keep their reference.
 */

import type { AgentItem, Item, MessagePart } from "./item";
import { isCutParagraph, splitMarkdown } from "./split-markdown";

export interface Row {
  key: string;
  item: Item;
  /** What this row shows of a message; all of it if there is one row. */
  parts: readonly MessagePart[];
  isFirst: boolean;
  isLast: boolean;
  /** The next row continues its last paragraph. */
  isCut: boolean;
}

export class RowList {
  #known = new Map<string, KnownRows>();
  readonly #grownAtStart = new Set<string>();

  /** Whether the row has got text before its beginning since the last call. */
  takeGrownAtStart(key: string): boolean {
    return this.#grownAtStart.delete(key);
  }

  /** The rows of the items. */
  update(items: readonly Item[]): Row[] {
    const known = new Map<string, KnownRows>();
    const all: Row[] = [];
    for (const item of items) {
      const before = this.#known.get(item.key);
      const same = before?.item === item ? before : { item, rows: rowsOf(item, before) };
      // The row in which a message began so far.
      if (before && before.item.seq > item.seq && before.rows[0]) this.#grownAtStart.add(before.rows[0].key);
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
    return [{ key: item.key, item, parts, isFirst: true, isLast: true, isCut: false }];
  }
  const drafts = growRows(item, before) ?? splitRows(item);
  const known = new Map(before?.rows.map((it) => [it.key, it]));
  return drafts.map(({ key, part }, index) => {
    const old = known.get(key);
    const [isFirst, isLast] = [index === 0, index === drafts.length - 1];
    // A finished part of a message that grows is not drawn again.
    if (old && old.isFirst === isFirst && old.isLast === isLast && isSamePart(old.parts[0], part)) return old;
    const isCut = !isLast && part.type === "text" && drafts[index + 1]?.part.type === "text" && isCutParagraph(part.text);
    return { key, item, parts: [part], isFirst, isLast, isCut };
  });
}

interface RowDraft {
  key: string;
  part: MessagePart;
}

const isSamePart = (a: MessagePart | undefined, b: MessagePart): boolean =>
  a === b || (a?.type === "text" && b.type === "text" && a.text === b.text);

const rowKey = (item: Item, index: number): string => (index === 0 ? item.key : `${item.key}/${index}`);

function splitRows(item: AgentItem): RowDraft[] {
  const parts = item.parts.flatMap((it): MessagePart[] =>
    it.type === "text" ? splitMarkdown(it.text).map((text) => ({ type: "text", text })) : [it],
  );
  return parts.map((part, index) => ({ key: rowKey(item, index), part }));
}

/** The rows of a text that has grown at its end, or whose beginning was loaded. Rows in between keep key and text. */
function growRows(item: AgentItem, before: KnownRows | undefined): RowDraft[] | undefined {
  const [old, text] = [before && textOf(before.item), textOf(item)];
  if (before === undefined || old === undefined || text === undefined) return undefined;
  const rows = before.rows.map((it) => ({ key: it.key, part: it.parts[0] as MessagePart }));
  if (before.item.seq === item.seq && text.length >= old.length) {
    const done = rows.slice(0, -1);
    const length = done.reduce((sum, it) => sum + (it.part.type === "text" ? it.part.text.length : 0), 0);
    const last = rows[rows.length - 1] as RowDraft;
    const added = splitMarkdown(text.slice(length)).map((it, index): RowDraft => {
      const key = index === 0 ? last.key : rowKey(item, done.length + index);
      return { key, part: { type: "text", text: it } };
    });
    return [...done, ...added];
  }
  const loaded = text.slice(0, text.length - old.length);
  const isInCode = (loaded.match(/^ {0,3}(?:`{3,}|~{3,})/gm)?.length ?? 0) % 2 === 1;
  if (item.seq >= before.item.seq || isInCode || !text.endsWith(old)) return undefined;
  // The row in which the text began so far gets the rest of its block.
  const [first, ...others] = rows as [RowDraft, ...RowDraft[]];
  const earlier = splitMarkdown(loaded);
  const rest = (earlier.pop() ?? "") + (first.part.type === "text" ? first.part.text : "");
  const added = earlier.map((it, index): RowDraft => ({ key: `${item.key}/${item.seq}-${index}`, part: { type: "text", text: it } }));
  return [...added, { key: first.key, part: { type: "text", text: rest } }, ...others];
}

/** The text of a message that is nothing but text. */
function textOf(item: Item): string | undefined {
  const part = item.kind === "message" && item.parts.length === 1 ? item.parts[0] : undefined;
  return part?.type === "text" ? part.text : undefined;
}
