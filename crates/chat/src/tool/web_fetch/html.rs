//! HTML as text that can be read: no scripts, a line for each block. It is no parser, and it ends for
//! any input in the time of one pass.

/// Elements of which nothing is read.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe"];
/// Elements that begin and end a line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "option",
    "section",
    "table",
    "tbody",
    "thead",
    "title",
    "tr",
    "ul",
];
/// The same, with an empty line.
const PARAGRAPHS: &[&str] = &["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6"];
const ENTITY_CHARS_MAX: usize = 10;

pub(super) fn to_text(html: &str) -> String {
    // Letters keep their places.
    let lower = html.to_ascii_lowercase();
    let mut page = Page::default();
    let mut at = 0;
    while let Some(length) = html[at..].find('<') {
        page.push(&html[at..at + length]);
        at += length;
        let end = if lower[at..].starts_with("<!--") {
            lower[at..].find("-->").map(|it| at + it + 3)
        } else if starts_tag(&lower[at + 1..]) {
            lower[at..].find('>').map(|it| at + it + 1)
        } else {
            page.push("<");
            at += 1;
            continue;
        };
        // What is cut off in the middle of a tag has no more text.
        let Some(end) = end else { return page.finish() };
        let tag = &lower[at + 1..end];
        let name = name_of(tag);
        at = end;
        if SKIPPED.contains(&name) && !tag.starts_with('/') {
            let Some(close) = lower[at..].find(&format!("</{name}")) else { return page.finish() };
            at += close;
        } else {
            page.tag(name, tag.starts_with('/'));
        }
    }
    page.push(&html[at..]);
    page.finish()
}

fn starts_tag(rest: &str) -> bool {
    rest.starts_with(|it: char| it.is_ascii_alphabetic() || "/!?".contains(it))
}

fn name_of(tag: &str) -> &str {
    let tag = tag.trim_start_matches('/');
    let end = tag.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(tag.len());
    &tag[..end]
}

#[derive(Default)]
struct Page {
    text: String,
    /// Inside `pre`, spaces are as they are.
    is_plain: bool,
    /// Line ends that are due before the next text.
    breaks: usize,
    has_space: bool,
    /// Before the next text of a line.
    mark: &'static str,
}

impl Page {
    fn tag(&mut self, name: &str, closes: bool) {
        let paragraph = PARAGRAPHS.contains(&name);
        if paragraph || name == "li" || BLOCKS.contains(&name) {
            self.breaks = self.breaks.max(if paragraph { 2 } else { 1 });
            self.mark = "";
        }
        match name {
            "pre" => self.is_plain = !closes,
            "li" if !closes => self.mark = "- ",
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !closes => self.mark = "# ",
            "td" | "th" => self.has_space = true,
            _ => {}
        }
    }

    fn push(&mut self, raw: &str) {
        let text = decode(raw);
        if self.is_plain {
            self.put(text.trim_end_matches('\n'));
            self.breaks = self.breaks.max(usize::from(text.ends_with('\n')));
            return;
        }
        self.has_space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.put(word);
            self.has_space = true;
        }
        if !text.is_empty() {
            self.has_space = text.ends_with(char::is_whitespace);
        }
    }

    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_begun = !self.text.is_empty();
        if is_begun && 0 < self.breaks {
            self.text.push_str(&"\n".repeat(self.breaks));
        } else if is_begun && self.has_space && !self.is_plain {
            self.text.push(' ');
        }
        self.text.push_str(self.mark);
        self.text.push_str(text);
        (self.breaks, self.has_space, self.mark) = (0, false, "");
    }

    fn finish(self) -> String {
        self.text
    }
}

/// The entities that pages really have.
fn decode(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(ENTITY_CHARS_MAX).find(|(_, it)| *it == ';');
        let known = end.and_then(|(end, _)| Some((entity(&rest[1..end])?, end)));
        let (letter, end) = known.unwrap_or(('&', 0));
        text.push(letter);
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    text
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = hex.map_or_else(|| number.parse(), |it| u32::from_str_radix(it, 16));
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "copy" => '©',
        "laquo" => '«',
        "raquo" => '»',
        "ldquo" => '“',
        "rdquo" => '”',
        "lsquo" => '‘',
        "rsquo" => '’',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_reads_like_a_page() {
        let html = "<!doctype html><html><head><title>T &amp; U</title><style>p{a:b}</style>\
            <SCRIPT>if (a < b) { x() }</SCRIPT></head><body><!-- <p>no</p> --><h1>Head</h1>\
            <p>One <b>two</b>,\n  three&nbsp;&#x2014; a < b.</p><ul><li>x</li><li>y</li></ul>\
            <pre>a\n  b\n</pre><table><tr><td>1</td><td>2</td></tr></table></body></html>";
        let text = "T & U\n\n# Head\n\nOne two, three — a < b.\n\n- x\n- y\n\na\n  b\n\n1 2";
        assert_eq!(to_text(html), text);
    }

    #[test]
    fn what_is_cut_off_or_broken_is_read_as_far_as_it_goes() {
        assert_eq!(to_text("a <b"), "a");
        assert_eq!(to_text("a <!-- b"), "a");
        assert_eq!(to_text("a<script>b"), "a");
        assert_eq!(to_text("1 < 2 & 3 &unknown; &#xffffffff;"), "1 < 2 & 3 &unknown; &#xffffffff;");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_input_breaks_it_and_nothing_is_made_up(html in "(?s)([<>&;/!-]|</?(p|li|pre|script|td)>|.){0,60}") {
            let text = to_text(&html);
            prop_assert!(text.len() <= 4 * html.len() + 4);
        }
    }
}
