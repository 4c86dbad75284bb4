//! Texts that the snapshots show.

pub(super) const DOCUMENT: &str = r"# Wrapping text

The function `wrap_line` breaks *styled* lines at **words**, and it counts ~~characters~~ cells. A soft
break is a space,  
a hard break is a line.

## Links

See <https://example.org/>, [the guide](https://example.org/guide) and [https://good.example](https://good.example@bad.example/).

Setext heading
--------------

### Level three

A very-long-word: /srv/project/crates/tui/src/text/rendering_tests/documents.rs

---

The end &amp; \*no emphasis\* &lt;here&gt;.
";

pub(super) const LISTS: &str = r"Steps:

1. Read the file, which is long enough to be wrapped on a narrow terminal.
2. Change it:
   - first part
   - second part
     - deepest part
10. Test it

- [x] done
- [ ] open, with a text that is longer than forty cells

* loose item

* another item

  with a second paragraph

Text after the list.
";

pub(super) const TABLE: &str = r"| Name | Count | Note |
|:-----|------:|:----:|
| `wrap` | 12 | words |
| a name with several words | 3 | **bold** and 漢字 |
| empty | | |
";

pub(super) const WIDE_TABLE: &str = r"| Command | What it does | Where it is described | Since |
|---|---|---|---|
| `jackfield attach` | shows the events of a session and sends prompts | docs/commands.md | 0.1 |
| `jackfield ps` | lists the sessions with their state | README.md | 0.1 |
";

pub(super) const CODE: &str = r#"Run this:

```json
{"name": "jackfield", "list": [1, 2, 3], "text": "a line that is longer than forty cells"}

```

- in a list:
  ```
  plain
    indented
  ```

    indented code

```text
never closed"#;

pub(super) const QUOTES: &str = r"> A quote that is long enough to be wrapped on a narrow terminal.
>
> - with a list
>
> > and a quote inside
>
> ```text
> and code
> ```

After the quote.
";

pub(super) const HTML: &str = r#"<div class="x">
  <script>alert(1)</script>
</div>

Inline <b>bold</b> and a<br>break, ![a picture](https://example.org/picture.png) and
![](data:image/png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA).

&#27;[31mnot red&#x202e; and [click](javascript:alert(1)).
"#;

pub(super) const WIDE_CHARACTERS: &str = r"# 見出し 🦀

漢字とひらがなの長い文章は、端末の幅に合わせて折り返されます。空白がなくても大丈夫です。

- 👩‍💻 developer, 👍🏽 thumbs, 🇩🇪 flag, ❤️ heart
- Ünïcödé, e\u0301: é, नमस्ते, مرحبا

| 名前 | 値 |
|---|--:|
| 東京 | 1 |
| Ōsaka | 22 |
";

pub(super) const STYLES: &str = r"# One
## Two
#### Four
*italic* **bold** ***both*** ~~crossed~~ `code` [link](https://example.org) <b>html</b>

> quote

1. item
- [x] task

| a | b |
|---|---|
| 1 | `2` |

---
";

pub(super) const DIFF_OLD: &str = "//! Breaks lines.

use std::ops::Range;

fn wrap(text: &str) -> Vec<Range<usize>> {
\tlet mut ranges = Vec::new();
\tfor word in text.split(' ') {
\t\tranges.push(0..word.len());
\t}
\tranges
}

fn last() {}

fn unchanged() {}

fn removed() {
}
";

pub(super) const DIFF_NEW: &str = "//! Breaks lines to a width in cells, by words.

use std::ops::Range;

fn wrap(text: &str, width: usize) -> Vec<Range<usize>> {
\tlet mut ranges = Vec::new();
\tfor word in text.split(' ') {
\t\tranges.push(0..word.len().min(width));
\t}
\tranges
}

fn last() {}

fn unchanged() {}
";

pub(super) const LONG_OLD: &str = "one line that is very long and goes on and on, so that it has to be wrapped on most terminals, even on wide ones with more than a hundred cells\nsame\nlast";

pub(super) const LONG_NEW: &str = "one line that is very long and goes on and on, so that it has to be wrapped on many terminals, even on wide ones with more than a hundred cells\nsame\nhidden\u{202e} \u{200b}text\u{1b}[8m and 漢字\r\nlast\n";
