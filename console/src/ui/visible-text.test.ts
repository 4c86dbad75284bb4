/** Tests of the escapes of hidden characters. */

import { expect, test } from "vitest";
import { visibleLine, visibleLines, visibleProse } from "./visible-text";

test("characters that reorder text are escaped everywhere", () => {
  for (const show of [visibleLine, visibleLines, visibleProse]) {
    expect(show("a\u202eb\u2066c\u{e0041}\u001b[0m\u0000")).toBe("a\\u{202e}b\\u{2066}c\\u{e0041}\\x1b[0m\\x00");
  }
});

test("line breaks stay in text of several lines, and are escaped in a line", () => {
  expect(visibleLine("a\r\nb\tc")).toBe("a\\r\\nb\\tc");
  expect(visibleLines("a\r\nb\tc\rd")).toBe("a\nb\tc\\rd");
});

test("prose keeps the joiners of emoji, and a command does not", () => {
  expect(visibleProse("👩\u200d💻")).toBe("👩\u200d💻");
  expect(visibleLines("👩\u200d💻")).toBe("👩\\u{200d}💻");
});
