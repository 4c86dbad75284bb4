/** Divides long Markdown into parts that can be drawn one by one. */

/** Where long texts are divided, in characters: each part is drawn only while it is visible. */
const SEGMENT_CHARS = 6000;

/** Divides a text between blocks, at blank lines outside of code. The parts of a growing text do not change, but the last. */
export function splitMarkdown(text: string): string[] {
  if (text.length <= SEGMENT_CHARS) return [text];
  const segments: string[] = [];
  let [start, position, fence] = [0, 0, ""];
  while (position < text.length) {
    const newline = text.indexOf("\n", position);
    const end = newline < 0 ? text.length : newline + 1;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(text.slice(position, position + 12))?.[1] ?? "";
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && text.slice(position, end).trim() === mark) fence = "";
    const isBlank = end - position <= 80 && text.slice(position, end).trim() === "";
    const isIndented = /^[ \t]/.test(text.slice(end, end + 1));
    if (fence === "" && isBlank && !isIndented && end < text.length && end - start > SEGMENT_CHARS) {
      segments.push(text.slice(start, end));
      start = end;
    }
    position = end;
  }
  segments.push(text.slice(start));
  return segments;
}
