//! Converts HTML to readable text: without scripts, one line per block. It is not a full parser,
//! and processes any input in one pass.
//!
//! Own code because html2text and htmd parse the page with html5ever into a tree, whose size and
//! depth a hostile page decides, and because nanohtml2text, which does not, is made for emails.

/// Elements whose content is skipped.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe"];
/// Elements that start a new line.
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
/// Elements that are separated by an empty line.
const PARAGRAPHS: &[&str] = &["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6"];
const ENTITY_CHARS_MAX: usize = 10;

pub(super) fn to_text(html: &str) -> String {
    // ASCII lowercase keeps the byte offsets.
    let lower = html.to_ascii_lowercase();
    let mut output = TextOutput::default();
    let mut at = 0;
    while let Some(length) = html[at..].find('<') {
        output.add_text(&html[at..at + length]);
        at += length;
        let end = if lower[at..].starts_with("<!--") {
            lower[at..].find("-->").map(|it| at + it + 3)
        } else if starts_tag(&lower[at + 1..]) {
            lower[at..].find('>').map(|it| at + it + 1)
        } else {
            output.add_text("<");
            at += 1;
            continue;
        };
        // A page that ends inside a tag has no more text.
        let Some(end) = end else { return output.text };
        let tag = &lower[at + 1..end];
        let name = tag_name(tag);
        at = end;
        if SKIPPED.contains(&name) && !tag.starts_with('/') {
            let Some(close) = lower[at..].find(&format!("</{name}")) else { return output.text };
            at += close;
        } else {
            output.add_tag(name, tag.starts_with('/'));
        }
    }
    output.add_text(&html[at..]);
    output.text
}

fn starts_tag(rest: &str) -> bool {
    rest.starts_with(|it: char| it.is_ascii_alphabetic() || "/!?".contains(it))
}

fn tag_name(tag: &str) -> &str {
    let tag = tag.trim_start_matches('/');
    let end = tag.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(tag.len());
    &tag[..end]
}

#[derive(Default)]
struct TextOutput {
    text: String,
    /// Whether the text is inside `pre`, where spaces are kept.
    is_preformatted: bool,
    /// The number of line breaks to insert before the next text.
    pending_breaks: usize,
    has_pending_space: bool,
    /// The prefix of the next text: a list marker or a heading marker.
    prefix: &'static str,
}

impl TextOutput {
    fn add_tag(&mut self, name: &str, is_closing: bool) {
        let is_paragraph = PARAGRAPHS.contains(&name);
        if is_paragraph || name == "li" || BLOCKS.contains(&name) {
            self.pending_breaks = self.pending_breaks.max(if is_paragraph { 2 } else { 1 });
            self.prefix = "";
        }
        match name {
            "pre" => self.is_preformatted = !is_closing,
            "li" if !is_closing => self.prefix = "- ",
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !is_closing => self.prefix = "# ",
            "td" | "th" => self.has_pending_space = true,
            _ => {}
        }
    }

    fn add_text(&mut self, raw: &str) {
        let text = decode_entities(raw);
        if self.is_preformatted {
            self.append(text.trim_end_matches('\n'));
            self.pending_breaks = self.pending_breaks.max(usize::from(text.ends_with('\n')));
            return;
        }
        self.has_pending_space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.append(word);
            self.has_pending_space = true;
        }
        if !text.is_empty() {
            self.has_pending_space = text.ends_with(char::is_whitespace);
        }
    }

    fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let has_text = !self.text.is_empty();
        if has_text && 0 < self.pending_breaks {
            self.text.push_str(&"\n".repeat(self.pending_breaks));
        } else if has_text && self.has_pending_space && !self.is_preformatted {
            self.text.push(' ');
        }
        self.text.push_str(self.prefix);
        self.text.push_str(text);
        (self.pending_breaks, self.has_pending_space, self.prefix) = (0, false, "");
    }
}

/// Decodes the entities that are common in pages.
fn decode_entities(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(ENTITY_CHARS_MAX).find(|(_, it)| *it == ';');
        let known = end.and_then(|(end, _)| Some((entity_char(&rest[1..end])?, end)));
        let (letter, end) = known.unwrap_or(('&', 0));
        text.push(letter);
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    text
}

fn entity_char(name: &str) -> Option<char> {
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
    fn page_is_converted_to_readable_text() {
        let html = "<!doctype html><html><head><title>T &amp; U</title><style>p{a:b}</style>\
            <SCRIPT>if (a < b) { x() }</SCRIPT></head><body><!-- <p>no</p> --><h1>Head</h1>\
            <p>One <b>two</b>,\n  three&nbsp;&#x2014; a < b.</p><ul><li>x</li><li>y</li></ul>\
            <pre>a\n  b\n</pre><table><tr><td>1</td><td>2</td></tr></table></body></html>";
        let text = "T & U\n\n# Head\n\nOne two, three — a < b.\n\n- x\n- y\n\na\n  b\n\n1 2";
        assert_eq!(to_text(html), text);
    }

    #[test]
    fn truncated_and_invalid_html_is_read_as_far_as_possible() {
        assert_eq!(to_text("a <b"), "a");
        assert_eq!(to_text("a <!-- b"), "a");
        assert_eq!(to_text("a<script>b"), "a");
        assert_eq!(to_text("1 < 2 & 3 &unknown; &#xffffffff;"), "1 < 2 & 3 &unknown; &#xffffffff;");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn output_length_is_bounded_for_any_input(html in "(?s)([<>&;/!-]|</?(p|li|pre|script|td)>|.){0,60}") {
            let text = to_text(&html);
            prop_assert!(text.len() <= 4 * html.len() + 4);
        }
    }
}
