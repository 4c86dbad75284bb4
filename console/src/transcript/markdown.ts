/**
 * Markdown of agents as safe HTML. This is the only place that makes HTML of foreign text.
 *
 * `marked` parses, a renderer decides about links, images and HTML, and DOMPurify removes everything that is not in a
 * short list of elements and attributes. Its Trusted Types policy makes the result acceptable for `innerHTML`.
 */

import DOMPurify from "dompurify";
import { Lexer, Marked, type Token, type Tokens, type TokensList } from "marked";
import { visibleProse } from "../ui/visible-text";

/** A top-level part of a text: code is drawn by its own component, everything else is HTML. */
export type MarkdownBlock = { raw: string; kind: "code"; text: string; language: string } | { raw: string; kind: "html"; html: string };

/** HTML of agents that is kept; other tags are shown as text, because most of them are meant so (`Vec<T>`). */
const HTML_TAG = /^<\/?(?:details|summary|br|hr|sub|sup|kbd|b|i|em|strong|del|ins|u|s|p|div|span|code|pre|h[1-6]|ul|ol|li|table|thead|tbody|tr|td|th|blockquote)(?:\s[^<>]*)?\/?>$/i;

const TAGS = "a b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i img input ins kbd li ol p pre s span strong sub summary sup table tbody td th thead tr u ul".split(" ");
const ATTRIBUTES = ["href", "title", "src", "alt", "align", "start", "type", "checked", "disabled", "open"];

const RASTER_IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=]+$/i;

const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Whether a link may be followed: web pages and mail addresses only. */
export function isSafeLink(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href).protocol);
  } catch {
    return false;
  }
}

export const isRasterImage = (url: string): boolean => RASTER_IMAGE.test(url);

/**
 * Keeps the names of tags and whether details are open. DOMPurify would remove the other attributes, too, but the browser
 * reports styles and event handlers as violations of the content security policy as soon as it parses them.
 */
const removeAttributes = (html: string): string =>
  html.replace(/<(\/?)(\w+)([^<>]*)>/g, (_, slash: string, name: string, rest: string) => {
    const isOpen = name.toLowerCase() === "details" && /\sopen\b/i.test(rest);
    return `<${slash}${name}${isOpen ? " open" : ""}>`;
  });

const markdown = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag): string => {
      const tags = text.match(/<[^<>]*>?/g) ?? [];
      return tags.every((it) => HTML_TAG.test(it)) ? removeAttributes(text) : escapeHtml(text);
    },
    // Pictures of other hosts would tell them that the text is being read.
    image: ({ href, text }: Tokens.Image): string => {
      if (isRasterImage(href)) return `<img src="${href}" alt="${escapeHtml(text)}">`;
      const label = escapeHtml(`image: ${text || href}`);
      return isSafeLink(href) ? `<a href="${escapeHtml(href)}">${label}</a>` : label;
    },
  },
});

const purify = DOMPurify();
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName === "A") {
    const href = node.getAttribute("href") ?? "";
    if (!isSafeLink(href)) return node.removeAttribute("href");
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
    node.setAttribute("title", href.slice(0, 500));
  } else if (node.nodeName === "IMG" && !isRasterImage(node.getAttribute("src") ?? "")) {
    node.remove();
  } else if (node.nodeName === "INPUT") {
    // The boxes of task lists.
    node.setAttribute("disabled", "");
    node.setAttribute("type", "checkbox");
    node.setAttribute("aria-label", node.hasAttribute("checked") ? "done" : "open");
  }
});

function sanitize(html: string): string {
  return purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  }) as unknown as string;
}

/** The beginning of a block decides whether it continues the one before, such as a list; this many characters do. */
const SURE_CHARS = 8;

/** The blocks of a text that grows. What is before its last blocks is parsed once. */
export class GrowingMarkdown {
  #blocks: MarkdownBlock[] = [];
  /** The number of blocks that do not change any more, and their text. */
  #finishedBlocks = 0;
  #finishedText = "";
  /** The definitions of links in this text. */
  #links: Record<string, unknown> = {};

  update(text: string): MarkdownBlock[] {
    const visible = visibleProse(text);
    if (!visible.startsWith(this.#finishedText)) this.#restart();
    try {
      return (this.#blocks = this.#parse(visible));
    } catch (error) {
      // Thousands of nested quotes or lists exceed the stack of the parser: the text is shown as it is.
      if (!(error instanceof RangeError)) throw error;
      this.#restart();
      return (this.#blocks = [{ raw: visible, kind: "code", text: visible, language: "" }]);
    }
  }

  #restart(): void {
    [this.#finishedBlocks, this.#finishedText, this.#links] = [0, "", {}];
  }

  #parse(visible: string): MarkdownBlock[] {
    const lexer = new Lexer(markdown.defaults);
    Object.assign(lexer.tokens.links, this.#links);
    const all = lexer.lex(visible.slice(this.#finishedText.length));
    const tokens = all.filter((it) => it.type !== "space");
    const added = tokens.map((it, index) => {
      const old = this.#blocks[this.#finishedBlocks + index];
      return old?.raw === it.raw ? old : newBlock(it, all.links);
    });
    const blocks = [...this.#blocks.slice(0, this.#finishedBlocks), ...added];
    const lastSure = tokens.findLastIndex((it) => it.raw.length >= SURE_CHARS);
    if (lastSure > 0) this.#finish(visible, all, all.indexOf(tokens[lastSure] as Token), lastSure);
    return blocks;
  }

  /** The first `count` of these tokens, with `blocks` blocks, are finished. */
  #finish(visible: string, tokens: TokensList, count: number, blocks: number): void {
    const text = this.#finishedText + tokens.slice(0, count).map((it) => it.raw).join("");
    // The rest is parsed from here on, so the place has to be exact.
    if (!visible.startsWith(text)) return;
    this.#finishedText = text;
    this.#finishedBlocks += blocks;
    Object.assign(this.#links, tokens.links);
  }
}

function newBlock(token: Token, links: Record<string, unknown>): MarkdownBlock {
  const { raw } = token;
  if (token.type === "code") {
    const { text, lang = "" } = token as Tokens.Code;
    return { raw, kind: "code", text, language: (lang.match(/^[\w+#.-]+/)?.[0] ?? "").toLowerCase() };
  }
  const tokens = Object.assign([token], { links }) as Parameters<typeof markdown.parser>[0];
  return { raw, kind: "html", html: sanitize(markdown.parser(tokens)) };
}
