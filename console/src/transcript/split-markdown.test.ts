/** Tests of how long Markdown is divided. */

import { describe, expect, test } from "vitest";
import { isCutParagraph, splitMarkdown } from "./split-markdown";

describe("long texts are divided", () => {
  const paragraph = `${"word ".repeat(400)}\n\n`;

  test("between blocks, and the parts stay when the text grows", () => {
    const text = paragraph.repeat(20);
    const segments = splitMarkdown(text);
    expect(segments.length).toBeGreaterThan(3);
    expect(segments.join("")).toBe(text);
    expect(splitMarkdown(text + "more").slice(0, segments.length - 1)).toEqual(segments.slice(0, -1));
  });

  test("not inside of code", () => {
    const code = `\`\`\`\n${"line\n\n".repeat(3000)}\`\`\`\n\n`;
    expect(splitMarkdown(code + paragraph)).toEqual([code, paragraph]);
  });
});

describe("a long paragraph is divided", () => {
  const grownParts = (text: string): string[] => {
    let parts: string[] = [];
    for (let length = 1; length < text.length; length += 97) {
      const next = splitMarkdown(text.slice(0, length));
      expect(next.slice(0, parts.length - 1)).toEqual(parts.slice(0, -1));
      parts = next;
    }
    const all = splitMarkdown(text);
    expect(all.join("")).toBe(text);
    return all;
  };

  test("after a sentence, and the parts stay when it grows", () => {
    const parts = grownParts("Some words and a sentence. ".repeat(1000));
    expect(Math.max(...parts.map((it) => it.length))).toBeLessThan(2100);
    expect(parts.every((it) => it.startsWith("Some words") && isCutParagraph(it))).toBe(true);
  });

  test("between words if it has no sentences", () => {
    const parts = grownParts("word ".repeat(6000));
    expect(Math.max(...parts.map((it) => it.length))).toBeLessThan(3100);
    expect(isCutParagraph(`${parts[0]}\n\n`)).toBe(false);
  });

  test("not inside of code or emphasis, unless it has no end", () => {
    const emphasized = `${"word ".repeat(390)}**${"bold ".repeat(300)}** ${"word ".repeat(900)}`;
    for (const it of grownParts(emphasized)) expect((it.match(/\*\*/g) ?? []).length % 2).toBe(0);
    expect(Math.max(...grownParts(`*${"word ".repeat(6000)}`).map((it) => it.length))).toBeLessThan(4100);
  });

  test("but not a list, a quotation, a table or a word", () => {
    const item = `${"word ".repeat(30)}\n`;
    for (const mark of ["- ", "1. ", "> ", "| "]) {
      const block = `${mark}${item}`.repeat(100);
      expect(splitMarkdown(block)).toEqual([block]);
    }
    expect(splitMarkdown("x".repeat(200_000))).toHaveLength(1);
  });
});
