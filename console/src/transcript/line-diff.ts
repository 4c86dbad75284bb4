/** The difference of two texts by lines, with the changed words of lines that replace each other. */

/** A piece of a line; `isChanged` if the other side does not have it. */
export interface LinePiece {
  text: string;
  isChanged: boolean;
}

/** Numbers of lines and of skipped lines can be unknown. */
export type DiffRow =
  | { kind: "same"; oldLine: number | undefined; newLine: number | undefined; pieces: LinePiece[] }
  | { kind: "removed"; oldLine: number | undefined; pieces: LinePiece[] }
  | { kind: "added"; newLine: number | undefined; pieces: LinePiece[] }
  /** Lines that are the same and not shown. */
  | { kind: "skipped"; count: number | undefined };

/** The unchanged lines that are shown around a change. */
const CONTEXT_LINES = 3;
/** More differences than this are shown as one replacement: the search is quadratic in their number. */
const EDITS_MAX = 400;
const WORDS_MAX = 200;

export interface Edit<T> {
  kind: "same" | "removed" | "added";
  value: T;
}

export function diffLines(oldText: string, newText: string): DiffRow[] {
  const edits = diffSequences(splitLines(oldText), splitLines(newText), EDITS_MAX);
  return hideUnchanged(numberRows(edits));
}

/** The numbers of added and removed lines. */
export function countChanges(rows: readonly DiffRow[]): { added: number; removed: number } {
  const count = (kind: DiffRow["kind"]): number => rows.filter((it) => it.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}

function splitLines(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The edits that turn `a` into `b`, by the algorithm of Myers. */
function diffSequences<T>(a: readonly T[], b: readonly T[], editsMax: number): Edit<T>[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const same = (value: T): Edit<T> => ({ kind: "same", value });
  const middle = diffMiddle(a.slice(start, endA), b.slice(start, endB), editsMax);
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(endA).map(same)];
}

function diffMiddle<T>(a: readonly T[], b: readonly T[], editsMax: number): Edit<T>[] {
  const traces = findShortestEdit(a, b, editsMax);
  if (!traces) {
    const removed = a.map((value): Edit<T> => ({ kind: "removed", value }));
    return [...removed, ...b.map((value): Edit<T> => ({ kind: "added", value }))];
  }
  const edits: Edit<T>[] = [];
  let [x, y] = [a.length, b.length];
  for (let depth = traces.length - 1; depth >= 0; depth -= 1) {
    const furthest = traces[depth] as Map<number, number>;
    const at = (diagonal: number): number => furthest.get(diagonal) ?? -1;
    const diagonal = x - y;
    const isDown = diagonal === -depth || (diagonal !== depth && at(diagonal - 1) < at(diagonal + 1));
    const before = isDown ? diagonal + 1 : diagonal - 1;
    const fromX = depth === 0 ? 0 : at(before);
    const fromY = fromX - before;
    while (x > fromX && y > (depth === 0 ? 0 : fromY)) {
      [x, y] = [x - 1, y - 1];
      edits.push({ kind: "same", value: a[x] as T });
    }
    if (depth === 0) break;
    if (isDown) edits.push({ kind: "added", value: b[fromY] as T });
    else edits.push({ kind: "removed", value: a[fromX] as T });
    [x, y] = [fromX, fromY];
  }
  return edits.reverse();
}

/** The furthest positions for each number of edits, before it; `undefined` if there are too many edits. */
function findShortestEdit<T>(a: readonly T[], b: readonly T[], editsMax: number): Map<number, number>[] | undefined {
  const furthest = new Map<number, number>([[1, 0]]);
  const traces: Map<number, number>[] = [];
  for (let depth = 0; depth <= Math.min(a.length + b.length, editsMax); depth += 1) {
    traces.push(new Map(furthest));
    for (let diagonal = -depth; diagonal <= depth; diagonal += 2) {
      const [left, right] = [furthest.get(diagonal - 1) ?? -1, furthest.get(diagonal + 1) ?? -1];
      let x = diagonal === -depth || (diagonal !== depth && left < right) ? right : left + 1;
      let y = x - diagonal;
      while (x < a.length && y < b.length && a[x] === b[y]) [x, y] = [x + 1, y + 1];
      furthest.set(diagonal, x);
      if (x >= a.length && y >= b.length) return traces;
    }
  }
  return undefined;
}

/** Gives rows their line numbers, and marks words in runs of removed and added lines of the same length. */
export function numberRows(edits: readonly Edit<string>[], firstOld = 1, firstNew = 1): DiffRow[] {
  const rows: DiffRow[] = [];
  let [oldLine, newLine, index] = [firstOld, firstNew, 0];
  const plain = (text: string): LinePiece[] => [{ text, isChanged: false }];
  const takeRun = (kind: "removed" | "added"): string[] => {
    const start = index;
    while (edits[index]?.kind === kind) index += 1;
    return edits.slice(start, index).map((it) => it.value);
  };
  while (index < edits.length) {
    const edit = edits[index] as Edit<string>;
    if (edit.kind === "same") {
      rows.push({ kind: "same", oldLine, newLine, pieces: plain(edit.value) });
      [oldLine, newLine, index] = [oldLine + 1, newLine + 1, index + 1];
      continue;
    }
    const [removed, added] = [takeRun("removed"), takeRun("added")];
    const marked = removed.length === added.length ? removed.map((it, at) => markWords(it, added[at] as string)) : [];
    for (const [at, it] of removed.entries()) {
      rows.push({ kind: "removed", oldLine, pieces: marked[at]?.[0] ?? plain(it) });
      oldLine += 1;
    }
    for (const [at, it] of added.entries()) {
      rows.push({ kind: "added", newLine, pieces: marked[at]?.[1] ?? plain(it) });
      newLine += 1;
    }
  }
  return rows;
}

/** The pieces of two lines that replace each other; `undefined` if they have little in common. */
function markWords(oldLine: string, newLine: string): [LinePiece[], LinePiece[]] | undefined {
  const words = (line: string): string[] => line.match(/\w+|\s+|[^\w\s]/g) ?? [];
  const [a, b] = [words(oldLine), words(newLine)];
  if (a.length > WORDS_MAX || b.length > WORDS_MAX) return undefined;
  const edits = diffSequences(a, b, WORDS_MAX);
  const shared = edits.filter((it) => it.kind === "same").reduce((sum, it) => sum + it.value.trim().length, 0);
  if (shared * 3 < Math.max(oldLine.trim().length, newLine.trim().length)) return undefined;
  const side = (kind: "removed" | "added"): LinePiece[] =>
    joinPieces(edits.filter((it) => it.kind === kind || it.kind === "same").map((it) => ({ text: it.value, isChanged: it.kind === kind })));
  return [side("removed"), side("added")];
}

function joinPieces(pieces: readonly LinePiece[]): LinePiece[] {
  const joined: LinePiece[] = [];
  for (const it of pieces) {
    const last = joined.at(-1);
    if (last?.isChanged === it.isChanged) last.text += it.text;
    else joined.push({ ...it });
  }
  return joined;
}

function hideUnchanged(rows: readonly DiffRow[]): DiffRow[] {
  const isNear = new Uint8Array(rows.length);
  for (const [index, row] of rows.entries()) {
    if (row.kind === "same") continue;
    isNear.fill(1, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
  }
  const shown: DiffRow[] = [];
  for (const [index, row] of rows.entries()) {
    const last = shown.at(-1);
    if (isNear[index]) shown.push(row);
    else if (last?.kind === "skipped") last.count = (last.count ?? 0) + 1;
    else shown.push({ kind: "skipped", count: 1 });
  }
  return shown;
}
