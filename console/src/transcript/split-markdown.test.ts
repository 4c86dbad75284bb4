/** Tests of how long Markdown is divided. */

import { describe, expect, test } from "vitest";
import { splitMarkdown } from "./split-markdown";

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
