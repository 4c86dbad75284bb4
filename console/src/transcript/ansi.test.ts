/** Tests of terminal output. */

import { expect, test } from "vitest";
import { parseTerminalOutput } from "./ansi";

const print = (text: string): string =>
  parseTerminalOutput(text)
    .map((it) => (it.classes ? `<${it.classes}>${it.text}</>` : it.text))
    .join("");

test("colors and styles become classes", () => {
  expect(print("a\u001b[1;31mb\u001b[0mc")).toBe("a<ansi-bold ansi-red>b</>c");
  expect(print("\u001b[38;5;9mx\u001b[48;2;0;255;0my")).toBe("<ansi-bright-red>x</><ansi-bright-red ansi-on-bright-green>y</>");
});

test("titles, links and cursor movements are dropped", () => {
  expect(print("\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\b\u001b[2J\u001b[5Cc\u001b(Bd\u001bPq\u001b\\e")).toBe("alinkbcde");
  expect(print("a\u001b[")).toBe("a");
});

test("a line that is written again is shown as it ends", () => {
  expect(print("10%\r50%\r100%\r\ndone\r\n")).toBe("100%\ndone\n");
});

test("hostile output is parsed in linear time", () => {
  const startedAt = performance.now();
  for (const it of ["\u001b[", "\u001b]", "\u001b]8;;", "\u001b[1;", "\r", "\u001b[31mx"]) parseTerminalOutput(it.repeat(50_000));
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
