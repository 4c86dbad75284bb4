//! Texts that a Markdown viewer would load or run, and texts that must stay unchanged.

use super::sanitize::sanitize_markdown;

/// A text, and the same text in the transcript.
const ACTIVE: &[(&str, &str)] = &[
    // Images
    ("![alt](http://e.x/i.png)", "[image: alt](http://e.x/i.png)"),
    ("![](http://e.x/i.png)", "[image: ](http://e.x/i.png)"),
    ("a ![b](<http://e.x/i.png> \"t\") c", "a [image: b](<http://e.x/i.png> \"t\") c"),
    ("![b][ref]\n\n[ref]: http://e.x/i.png", "[image: b][ref]\n\n[ref]: http://e.x/i.png"),
    ("![ref][]\n\n[ref]: http://e.x/i.png", "[image: ref][]\n\n[ref]: http://e.x/i.png"),
    ("![ref]\n\n[ref]: http://e.x/i.png", "[image: ref]\n\n[ref]: http://e.x/i.png"),
    ("[![b](http://e.x/i.png)](http://e.x)", "[[image: b](http://e.x/i.png)](http://e.x)"),
    ("![a ![b](c) d](http://e.x/i.png)", "[image: a [image: b](c) d](http://e.x/i.png)"),
    ("![a [b] c](http://e.x/i.png)", "[image: a [b] c](http://e.x/i.png)"),
    ("![a\nb](\nhttp://e.x/i.png)", "[image: a\nb](\nhttp://e.x/i.png)"),
    ("!![b](http://e.x/i.png)", "! [image: b](http://e.x/i.png)"),
    ("\\\\![b](http://e.x/i.png)", "\\\\[image: b](http://e.x/i.png)"),
    ("- ![b](http://e.x/i.png)", "- [image: b](http://e.x/i.png)"),
    ("> ![b](http://e.x/i.png)", "> [image: b](http://e.x/i.png)"),
    ("# ![b](http://e.x/i.png)", "# [image: b](http://e.x/i.png)"),
    ("| ![b](http://e.x/i.png) |\n|---|", "| [image: b](http://e.x/i.png) |\n|---|"),
    ("| `a | ![b](http://e.x)` |\n|--|--|", "| `a | [image: b](http://e.x)` |\n|--|--|"),
    ("``a ` ![b](http://e.x)", "``a ` [image: b](http://e.x)"),
    ("![b](data:image/svg+xml,x)", "[image: b]\\(data:image/svg+xml,x)"),
    ("![[embedded]]", "[image: [embedded]]"),
    ("<a@![b](http://e.x/i.png)>", "\\<a@[image: b](http://e.x/i.png)>"),
    // Links with an active scheme
    ("[a](javascript:x)", "[a]\\(javascript:x)"),
    ("[a](JavaScript:x)", "[a]\\(JavaScript:x)"),
    ("[a]( javascript:x )", "[a]\\( javascript:x )"),
    ("[a](\njavascript:x)", "[a]\\(\njavascript:x)"),
    ("> [a](\n> javascript:x)", "> [a]\\(\n> javascript:x)"),
    ("[a](<javascript:x>)", "[a]\\(\\<javascript:x>)"),
    ("[a](<java\tscript:x>)", "[a]\\(\\<java   script:x>)"),
    ("[a](javascript&colon;x)", "[a]\\(javascript&colon;x)"),
    ("[a](&#106;avascript:x)", "[a]\\(&#106;avascript:x)"),
    ("[a](&#x6a;avascript&#x3A;x)", "[a]\\(&#x6a;avascript&#x3A;x)"),
    ("[a](java&NewLine;script:x)", "[a]\\(java&NewLine;script:x)"),
    ("[a](&#1;javascript:x)", "[a]\\(&#1;javascript:x)"),
    ("[a](javascript\\:x)", "[a]\\(javascript\\:x)"),
    ("[a](vbscript:x)", "[a]\\(vbscript:x)"),
    ("[a](data:text/html,x)", "[a]\\(data:text/html,x)"),
    ("[a [b] c](javascript:x)", "[a [b] c]\\(javascript:x)"),
    ("[a](javascript:x \"t\")", "[a]\\(javascript:x \"t\")"),
    ("[a][r]\n\n[r]: javascript:x", "[a][r]\n\n[r]\\: javascript:x"),
    ("[r]:\njavascript:x", "[r]\\:\njavascript:x"),
    ("[r]: <javascript:x>", "[r]\\: \\<javascript:x>"),
    ("> [r]: data:text/html,x", "> [r]\\: data:text/html,x"),
    ("[^1]: javascript:x", "[^1]\\: javascript:x"),
    ("<javascript:x>", "\\<javascript:x>"),
    ("<DATA:text/html,x>", "\\<DATA:text/html,x>"),
    ("<vbscript:x>", "\\<vbscript:x>"),
    // HTML
    ("<script>x</script>", "\\<script>x\\</script>"),
    ("<img src=http://e.x/i.png>", "\\<img src=http://e.x/i.png>"),
    ("a <IMG SRC=\"http://e.x/i.png\">", "a \\<IMG SRC=\"http://e.x/i.png\">"),
    ("<svg/onload=x>", "\\<svg/onload=x>"),
    ("<a href=\"javascript:x\">a</a>", "\\<a href=\"javascript:x\">a\\</a>"),
    ("<iframe src=x></iframe>", "\\<iframe src=x>\\</iframe>"),
    ("<style>@import 'http://e.x'</style>", "\\<style>@import 'http://e.x'\\</style>"),
    ("<!-- a", "\\<!-- a"),
    ("<?xml?>", "\\<?xml?>"),
    ("<img\nsrc=x onerror=y>", "\\<img\nsrc=x onerror=y>"),
    ("<x:y onclick=z>", "\\<x:y onclick=z>"),
];

/// Texts that are neither loaded nor run stay unchanged.
const INERT: &[&str] = &[
    "```\n![b](http://e.x/i.png)\n[a](javascript:x)\n<script>\n```",
    "~~~html\n<img src=x>\n~~~",
    "a\n\n    ![b](http://e.x/i.png)\n    <script>",
    "`![b](http://e.x)` and `[a](javascript:x)` and ``a ` <b>``",
    "\\![b](http://e.x)",
    "[a](https://e.x/javascript:x)",
    "[a](src/main.rs:12) and [b](main.rs:12)",
    "[a](#data) [b](/data:x) [c](?data:x)",
    "[a]: https://e.x/a \"title\"",
    "array[0]: data and list[1](data)",
    "Wow! [a](https://e.x)",
    "if !list[0] { } else { a[1]: 2 }",
    "<https://e.x/a> and <me@e.x> and mailto:me@e.x",
    "1 < 2, a <- b, x <= y",
    "&lt;script&gt; and &amp;",
    "the scheme javascript: and data: in words",
];

#[test]
fn no_text_of_an_agent_is_loaded_or_run() {
    let mut failures = Vec::new();
    for (text, expected) in ACTIVE {
        let once = sanitize_markdown(text);
        let twice = sanitize_markdown(&once);
        if once != *expected || twice != once {
            failures.push(format!(
                "{text:?}\n  expected {expected:?}\n  once {once:?}\n  twice {twice:?}"
            ));
        }
    }
    for text in INERT {
        let sanitized = sanitize_markdown(text);
        if sanitized != *text {
            failures.push(format!("FALSE ALARM {text:?}\n  sanitized {sanitized:?}"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
