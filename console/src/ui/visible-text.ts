/**
 * Text of agents and files, made safe to show: characters that reorder text or cannot be seen are written as escapes.
 *
 * The same rules as `crates/protocol/src/visible.rs`, which the terminal uses.
 */

/** Control characters, marks that change the direction of text, and characters without a shape. */
const HIDDEN =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** These are hidden, too, but running text needs them: line breaks, tabs, joiners and marks of scripts and emoji. */
const OF_PROSE = /^[\n\t\u00ad\u200c-\u200f]$/;

const NAMES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return NAMES[character] ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`);
}

/** Text on one line in which each character matters: everything that cannot be seen is escaped. */
export const visibleLine = (text: string): string => text.replace(HIDDEN, escapeCharacter);

/** The same for several lines: a command or a file. Line breaks and tabs are kept. */
export const visibleLines = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(HIDDEN, (it) => (it === "\n" || it === "\t" ? it : escapeCharacter(it)));

/** Running text: the joiners and marks of scripts and emoji are kept, too. */
export const visibleProse = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(HIDDEN, (it) => (OF_PROSE.test(it) ? it : escapeCharacter(it)));

/** One line for a list or a title: spaces are joined, and the text is cut. */
export function shortLine(text: string, length = 300): string {
  // Only what may be shown is searched for spaces: the text can have megabytes.
  const joined = text.slice(0, 4 * length).replace(/\s+/g, " ").trim();
  return visibleProse(joined.length > length ? `${joined.slice(0, length)}…` : joined);
}
