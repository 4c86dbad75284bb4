/** The rows of a unified diff, as git and agents write it. */

import { numberRows, type DiffRow, type Edit } from "./line-diff";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const KINDS: Record<string, Edit<string>["kind"]> = { " ": "same", "-": "removed", "+": "added" };

/** Reads the hunks of one file; the lines before the first one name the file and are skipped. */
export function parseUnifiedDiff(text: string): DiffRow[] {
  const rows: DiffRow[] = [];
  let edits: Edit<string>[] = [];
  let [firstOld, firstNew, nextOld] = [1, 1, 1];
  let isInHunk = false;
  const closeHunk = (): void => {
    if (!isInHunk) return;
    if (firstOld > nextOld) rows.push({ kind: "skipped", count: firstOld - nextOld });
    rows.push(...numberRows(edits, firstOld, firstNew));
    nextOld = firstOld + edits.filter((it) => it.kind !== "added").length;
    edits = [];
  };
  for (const line of text.split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      closeHunk();
      [firstOld, firstNew, isInHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      continue;
    }
    // A line without its leading space is an empty unchanged line; the last one is the end of the text.
    const kind = KINDS[line[0] ?? ""];
    if (isInHunk && kind !== undefined) edits.push({ kind, value: line.slice(1) });
  }
  closeHunk();
  return rows;
}
