// @vitest-environment jsdom

/** Tests of the HTML that texts of agents become. */

import { Lexer } from "marked";
import { describe, expect, test, vi } from "vitest";
import { GrowingMarkdown, type MarkdownBlock } from "./markdown";

const html = (text: string): string =>
  new GrowingMarkdown()
    .update(text)
    .map((it) => (it.kind === "html" ? String(it.html) : `<code>${it.text}</code>`))
    .join("");

describe("hostile text", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](https://example.org/pixel.png)",
    "<style>body{display:none}</style>",
    "<div style='position:fixed;inset:0' class='frame-header' id='main' onclick='alert(1)'>x</div>",
    "<form action='/api/logout'><input name=x><button>x</button></form>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<details open ontoggle=alert(1)>x</details>",
    "<p title=\"</p><img src=x onerror=alert(1)>\">x</p>",
    "`<b onmouseover=alert(1)>`",
    "<link rel=stylesheet href=//example.org/x.css><base href=//example.org><meta http-equiv=refresh content=0>",
  ])("%s", (text) => {
    const holder = document.createElement("div");
    holder.innerHTML = html(text);
    for (const it of holder.querySelectorAll("*")) {
      expect("a b blockquote code del details div em p pre span strong summary".split(" ")).toContain(it.localName);
      for (const { name, value } of it.attributes) {
        expect(["href", "target", "rel", "title", "open"]).toContain(name);
        if (name === "href") expect(value).toMatch(/^https:/);
      }
    }
  });

  test("controls of the text direction are visible", () => {
    expect(html("abc\u202edef")).toContain("abc\\u{202e}def");
  });
});

test("tags that are kept lose their attributes before they are parsed as HTML", () => {
  expect(html('<details open ontoggle="x()"><summary style="color:red">a</summary></details>')).toContain("<details open");
  expect(html('<div style="position:fixed" onclick=x()>a</div>')).toContain("<div>a</div>");
});

test("text that is nested too deeply is shown as it is", () => {
  expect(html(`${">".repeat(20_000)} deep`)).toContain("> deep");
});

test("text that looks like a tag is kept, and some tags are", () => {
  expect(html("a Vec<T> here")).toContain("a Vec&lt;T&gt; here");
  expect(html("H<sub>2</sub>O")).toContain("H<sub>2</sub>O");
});

test("links open in a new tab and say where they lead", () => {
  const link = '<a href="https://a.example/" target="_blank" rel="noopener noreferrer" title="https://a.example/">x</a>';
  const holder = document.createElement("div");
  holder.innerHTML = html("[x](https://a.example/)");
  const expected = document.createElement("div");
  expected.innerHTML = link;
  expect(holder.querySelector("a")?.isEqualNode(expected.firstChild)).toBe(true);
});

test("raster images in the text itself are shown", () => {
  expect(html("![x](data:image/png;base64,iVBORw0KGgo=)")).toContain("<img");
});

test("a growing text keeps its earlier blocks", () => {
  const growing = new GrowingMarkdown();
  let blocks: MarkdownBlock[] = [];
  const text = "# Title\n\nOne paragraph.\n\n```rust\nfn main() {}\n```\n\n- a\n- b\n\nEnd";
  let earlier: MarkdownBlock | undefined;
  for (let length = 1; length <= text.length; length += 1) {
    blocks = growing.update(text.slice(0, length));
    if (length > 30) expect(blocks[0]).toBe((earlier ??= blocks[0]));
  }
  expect(blocks.map((it) => it.kind).join(" ")).toBe("html html code html html");
  expect(blocks[2]).toMatchObject({ language: "rust", text: "fn main() {}" });
});

test("a text that has grown has the same blocks as the whole text", () => {
  const parts = [
    "Some text with a [link] and more.\n\n",
    "[link]: https://a.example/\n\n",
    "- one\n\n- two\n\n  more of two\n\n1. first\n2. second\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nTitle\n===\n\n> quoted\nlazy\n\n",
    "```\ncode\n\nmore code\n```\n    indented\n\n***\n\nA [link] again, and the end.",
  ];
  const text = parts.join("");
  const growing = new GrowingMarkdown();
  for (let length = 1; length < text.length; length += 1) growing.update(text.slice(0, length));
  // The first paragraph was parsed before its link was defined.
  const [first, ...others] = growing.update(text);
  const [, ...expected] = new GrowingMarkdown().update(text);
  expect(first?.kind === "html" && String(first.html)).toContain("[link]");
  expect(others.map((it) => ({ ...it }))).toEqual(expected.map((it) => ({ ...it })));
  expect(growing.update("other text")).toHaveLength(1);
});

test("the work for a chunk does not grow with the message", () => {
  const lex = vi.spyOn(Lexer.prototype, "lex");
  const chunk = "word **bold** and `code`. ";
  const measure = (text: (count: number) => string): { chars: number; blocks: number } => {
    const growing = new GrowingMarkdown();
    let [before, blocks]: [MarkdownBlock[], number] = [[], 0];
    lex.mockClear();
    for (let count = 1; count <= 60; count += 1) {
      const next = growing.update(text(count));
      blocks = Math.max(blocks, next.filter((it) => !before.includes(it)).length);
      before = next;
    }
    return { chars: Math.max(...lex.mock.calls.map(([source]) => source.length)), blocks };
  };
  const paragraphs = measure((count) => `${chunk.repeat(4)}\n\n`.repeat(count));
  expect(paragraphs.blocks).toBeLessThanOrEqual(2);
  expect(paragraphs.chars).toBeLessThan(4 * 4 * chunk.length);
  lex.mockRestore();
});
