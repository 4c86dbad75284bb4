/**
 * The rows of a unified diff, as git writes it, or the daemon for tool calls.
 *
 * The daemon writes `@@` without numbers, and none at the beginning: agents report pieces of files, so the numbers of
 * lines are not known. Several changes of a file follow each other, each with a header.
 */

import { numberRows, type DiffRow, type Edit } from "./line-diff";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: Record<string, Edit<string>["kind"]> = { " ": "same", "-": "removed", "+": "added" };

interface Hunk {
  edits: Edit<string>[];
  /** The first lines; unknown in a diff of the daemon. */
  first: { old: number; new: number } | undefined;
  /** The lines of both sides that are still to come; none if the numbers are not known. */
  linesLeft: number;
}

/** Reads the hunks of one file; headers name the file and are skipped. */
export function parseUnifiedDiff(text: string): DiffRow[] {
  const rows: DiffRow[] = [];
  const lines = text.split("\n");
  let nextOld = 1;
  let hunk: Hunk | undefined;
  const open = (next: Hunk): void => {
    if (hunk) nextOld = closeHunk(rows, hunk, nextOld);
    hunk = next;
  };
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] as string;
    const numbers = HUNK.exec(line);
    const isHeader = (hunk?.linesLeft ?? 0) <= 0 && line.startsWith("--- ") && lines[index + 1]?.startsWith("+++ ");
    if (numbers) open(numberedHunk(numbers));
    else if (isHeader || line === "@@") {
      if (isHeader) index += 1;
      // The hunk of a header that `@@` follows stays empty.
      open({ edits: [], first: undefined, linesLeft: 0 });
    } else if (hunk) addLine(hunk, line);
  }
  if (hunk) closeHunk(rows, hunk, nextOld);
  return rows;
}

function numberedHunk([, old = "", oldCount = "1", added = "", newCount = "1"]: string[]): Hunk {
  return { edits: [], first: { old: Number(old), new: Number(added) }, linesLeft: Number(oldCount) + Number(newCount) };
}

/** A line without its leading space is the end of the text, or a remark. */
function addLine(hunk: Hunk, line: string): void {
  const kind = KINDS[line[0] ?? ""];
  if (kind === undefined) return;
  hunk.edits.push({ kind, value: line.slice(1) });
  hunk.linesLeft -= kind === "same" ? 2 : 1;
}

function withoutNumbers(row: DiffRow): DiffRow {
  if (row.kind === "same") return { ...row, oldLine: undefined, newLine: undefined };
  if (row.kind === "removed") return { ...row, oldLine: undefined };
  return row.kind === "added" ? { ...row, newLine: undefined } : row;
}

/** Adds the rows of a hunk; returns the line of the old file that follows it. */
function closeHunk(rows: DiffRow[], { edits, first }: Hunk, nextOld: number): number {
  if (edits.length === 0) return nextOld;
  if (!first) {
    if (rows.length > 0) rows.push({ kind: "skipped", count: undefined });
    rows.push(...numberRows(edits).map(withoutNumbers));
    return nextOld;
  }
  if (first.old > nextOld) rows.push({ kind: "skipped", count: first.old - nextOld });
  rows.push(...numberRows(edits, first.old, first.new));
  return first.old + edits.filter((it) => it.kind !== "added").length;
}
