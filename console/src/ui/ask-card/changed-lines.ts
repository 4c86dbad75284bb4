/** A change of a file as lines: the lines before and after the change that are the same, and what is between them. */

export interface ChangedLine {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Unchanged lines that are shown around the change. */
const CONTEXT_LINES = 3;

export function changedLines(oldText: string, newText: string): ChangedLine[] {
  const [before, after] = [splitLines(oldText), splitLines(newText)];
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const endMax = Math.min(before.length, after.length) - start;
  while (end < endMax && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const lines = (kind: ChangedLine["kind"], texts: string[]): ChangedLine[] => texts.map((text) => ({ kind, text }));
  return [
    ...lines("same", before.slice(Math.max(0, start - CONTEXT_LINES), start)),
    ...lines("removed", before.slice(start, before.length - end)),
    ...lines("added", after.slice(start, after.length - end)),
    ...lines("same", before.slice(before.length - end, before.length - end + CONTEXT_LINES)),
  ];
}

function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
