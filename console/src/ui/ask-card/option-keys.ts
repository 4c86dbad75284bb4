/** The options of a permission request: their kinds in words, and the key of each. */

import type { Ask } from "jackfield-client";

type AskOption = Ask["options"][number];

const KINDS: Record<string, string> = {
  allow_once: "allow this once",
  allow_always: "allow always",
  reject_once: "reject this once",
  reject_always: "reject always",
};

/** The kind of an option in words. A kind that ACP does not define is shown as the agent wrote it. */
export const kindInWords = (kind: string): string => KINDS[kind] ?? kind;

export const isAllowing = (option: AskOption): boolean => option.kind.startsWith("allow");

/** The keys that choose this option: its number, and `y` or `n` for the first that allows or rejects once. */
export function keysOfOption(options: AskOption[], index: number): string[] {
  const keys = index < 9 ? [String(index + 1)] : [];
  const kind = options[index]?.kind;
  const isFirst = options.findIndex((it) => it.kind === kind) === index;
  if (isFirst && kind === "allow_once") keys.push("y");
  if (isFirst && kind === "reject_once") keys.push("n");
  return keys;
}

/** The option that a key chooses. */
export const optionOfKey = (options: AskOption[], key: string): AskOption | undefined =>
  options.find((_, index) => keysOfOption(options, index).includes(key));
