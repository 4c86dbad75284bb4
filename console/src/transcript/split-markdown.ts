/** Divides long Markdown into parts that can be drawn one by one. */

/** Where long texts are divided, in characters: each part is drawn only while it is visible. */
const SEGMENT_CHARS = 6000;
/** A longer paragraph is divided, too: after a sentence, then between words, and then even inside of emphasis. */
const SENTENCE_CHARS = 2000;
const WORD_CHARS = 3000;
const PARAGRAPH_CHARS_MAX = 4000;
/** A paragraph without a place to divide it is searched up to here. */
const SEARCHED_CHARS_MAX = 12_000;

/** The beginning of a line that is not the text of a paragraph. */
const BLOCK_MARK = /^(?:[-+*][ \t]|\d{1,9}[.)][ \t]|[>#|<=~\s-]|`{3})/;

/**
 * Divides a text between blocks, at blank lines outside of code, and inside of long paragraphs.
 * The parts of a growing text do not change, but the last.
 */
export function splitMarkdown(text: string): string[] {
  if (text.length <= SENTENCE_CHARS) return [text];
  const segments: string[] = [];
  let [start, position, fence, isParagraph] = [0, 0, "", true];
  while (position < text.length) {
    const newline = text.indexOf("\n", position);
    const end = newline < 0 ? text.length : newline + 1;
    const beginning = text.slice(position, position + 12);
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(beginning)?.[1] ?? "";
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && text.slice(position, end).trim() === mark) fence = "";
    const isBlank = end - position <= 80 && text.slice(position, end).trim() === "";
    isParagraph = fence === "" && (isBlank || (isParagraph && !BLOCK_MARK.test(beginning)));
    const cut = isParagraph && !isBlank ? findParagraphCut(text, start, position, end) : undefined;
    if (cut !== undefined) {
      segments.push(text.slice(start, cut));
      start = position = cut;
      continue;
    }
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

/** Whether a part ends inside of a paragraph, which the next part continues. */
export const isCutParagraph = (part: string): boolean => !/\n[ \t]*\n$/.test(part.slice(-100));

/**
 * Where a part that begins at `start` ends in the line from `position` to `end`. The next part begins with a letter, so
 * it is a paragraph, too.
 */
function findParagraphCut(text: string, start: number, position: number, end: number): number | undefined {
  if (end - start <= SENTENCE_CHARS) return undefined;
  let [marks, brackets] = [0, 0];
  const last = Math.min(end, start + SEARCHED_CHARS_MAX);
  for (let index = start; index < last; index += 1) {
    const length = index - start;
    if (length > SENTENCE_CHARS && index >= position && isSpace(text[index - 1]) && isLetter(text[index])) {
      const isClosed = marks % 2 === 0 && brackets === 0;
      const isSentence = /[.!?:;]/.test(text[index - 2] ?? "");
      if ((isClosed && (isSentence || length > WORD_CHARS)) || length > PARAGRAPH_CHARS_MAX) return index;
    }
    const character = text[index];
    // `**` is one mark.
    if ((character === "`" || character === "*") && text[index - 1] !== character) marks += 1;
    else if (character === "[") brackets += 1;
    else if (character === "]") brackets -= 1;
  }
  return undefined;
}

const isSpace = (character: string | undefined): boolean => character === " " || character === "\n";
const isLetter = (character: string | undefined): boolean => character !== undefined && /\p{L}/u.test(character);
