//! Properties of the text functions for arbitrary input.

use super::{
    ColorDepth, ViewTheme, cell_width, render_diff, render_json, render_markdown,
    render_terminal_output, sanitize_line, sanitize_text, truncate_cells, wrap_line,
};
use proptest::{collection::vec, prelude::*, sample::select};
use ratatui::text::Line;
use serde_json::json;
use unicode_segmentation::UnicodeSegmentation as _;

/// Text that is hard to show, separated by `|`: wide characters, emoji, marks, joining scripts.
const CLUSTERS: &str = " |  |word|a-longer-word|漢字|한|ᄒ|ᅡ|ᆫ|🦀|👨|👍|🏽|🇩|🇪|ﾞ|ｶ|क्षि|مرحبا|لا|៘";
/// The same of characters that cannot be seen.
const HIDDEN: &str = "\n|\r|\r\n|\t|\u{200d}|\u{fe0f}|\u{301}|\u{20e3}|\u{1b}[31m|\u{1b}]0;t|\u{7}|\u{1b}\\|\u{9b}|\u{9d}|\u{9c}|\u{202e}|\u{2066}|\u{ad}";

/// Pieces of Markdown, separated by `@`. Code has no language, because syntaxes are slow to load.
const MARKDOWN: &str = "# @\n\n@\n@\n> @\n- @\n  1. @\n- [x] @**@*@`@\n```\n@[@](https://a.b)@![@|@\n|-|-|\n@ | @<b>@<br>@---\n@    @~~@&#27;@&#x202e;@\\";

fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => select(MARKDOWN.split('@').collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => select(CLUSTERS.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => "[a-z]{1,8}",
    ];
    vec(piece, 0..60).prop_map(|it| it.concat())
}

pub(super) fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(CLUSTERS.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        2 => select(HIDDEN.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        1 => "[a-z]{1,8}",
    ];
    vec(piece, 0..40).prop_map(|it| it.concat())
}

fn new_terminal(columns: u16) -> vt100::Parser {
    vt100::Parser::new(2.try_into().unwrap(), columns.try_into().unwrap(), 0)
}

/// The column of the cursor after a terminal has printed `text`.
fn terminal_width(text: &str) -> usize {
    let mut terminal = new_terminal(2_000);
    terminal.process(text.as_bytes());
    let (row, column) = terminal.screen().cursor_position();
    assert_eq!(row, 0, "{text:?}");
    usize::from(column)
}

pub(super) fn is_forbidden(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// The clusters that are not spaces; one that is wider than `limit` is replaced.
fn visible_clusters(text: &str, limit: usize) -> Vec<&str> {
    let clusters = text.graphemes(true).filter(|it| !it.trim().is_empty());
    clusters.map(|it| if cell_width(it) > limit { "?" } else { it }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn sanitized_text_has_no_control_or_bidi_character(text in any_text()) {
        let shown = sanitize_text(&text);
        prop_assert!(!shown.contains(|it| it != '\n' && is_forbidden(it)), "{shown:?}");
        prop_assert!(!sanitize_line(&text).contains(is_forbidden));
        prop_assert_eq!(sanitize_text(&shown), shown.clone());
    }

    #[test]
    fn cell_width_is_what_a_terminal_uses(text in any_text()) {
        for line in sanitize_text(&text).split('\n') {
            prop_assert_eq!(cell_width(line), terminal_width(line), "{:?}", line);
        }
    }

    #[test]
    fn wrapped_lines_fit_and_lose_no_visible_cluster(
        spans in vec(any_text(), 0..4),
        width in 2_u16..40,
        indent in 0_u16..6,
    ) {
        let spans: Vec<_> = spans.iter().map(|it| sanitize_line(it).into_owned()).collect();
        let line = Line::from_iter(spans.clone());
        let lines = wrap_line(line, width, indent);
        for line in &lines {
            let text = line.to_string();
            prop_assert!(cell_width(&text) <= usize::from(width), "{text:?}");
            prop_assert!(line.width() <= usize::from(width), "{text:?}");
        }
        let limit = usize::from(width - indent.min(width - 2));
        let expected: String = spans.iter().flat_map(|it| visible_clusters(it, limit)).collect();
        let found: String =
            lines.iter().flat_map(|it| &it.spans).flat_map(|it| visible_clusters(&it.content, limit)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn rendered_lines_fit_and_have_no_control_or_bidi_character(
        markdown in any_markdown(),
        text in any_text(),
        width in 2_u16..50,
    ) {
        let theme = ViewTheme::new(ColorDepth::None);
        let value = json!({text.as_str(): [markdown.as_str(), [text.as_str()]]});
        for lines in [
            render_markdown(&markdown, width, &theme),
            render_markdown(&text, width, &theme),
            render_terminal_output(&text, width, &theme),
            render_diff(&text, Some(&markdown), &text, width, &theme),
            render_json(&value, width, &theme),
        ] {
            for line in lines {
                let shown = line.to_string();
                prop_assert!(!shown.contains(is_forbidden), "{shown:?}");
                let filled: usize = line.spans.iter().map(|it| cell_width(&it.content)).sum();
                prop_assert!(filled <= usize::from(width), "{width} {shown:?}");
            }
        }
    }

    #[test]
    fn markdown_loses_no_letter(words in vec("[a-z]{1,12}", 1..20), marks in vec(0_usize..8, 20), width in 2_u16..50) {
        let marks = marks.iter().map(|&it| ["- ", "> ", "# ", "**", "\n\n", " ", "\n", "`"][it]);
        let text: String = marks.zip(&words).flat_map(|(mark, word)| [mark, word, " "]).collect();
        let lines = render_markdown(&text, width, &ViewTheme::new(ColorDepth::TrueColor));
        let letters = |it: &str| it.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let shown: String = lines.iter().map(ToString::to_string).collect();
        prop_assert_eq!(letters(&shown), letters(&text));
    }

    #[test]
    fn truncated_text_fits(text in any_text(), width in 0_usize..20) {
        let line = sanitize_line(&text);
        let cut = truncate_cells(&line, width);
        prop_assert!(cell_width(&cut) <= width);
        if cell_width(&line) <= width {
            prop_assert_eq!(cut, line.into_owned());
        }
    }
}

#[test]
fn every_character_is_as_wide_as_in_a_terminal() {
    let mut terminal = new_terminal(80);
    // Without blocks of thousands of characters that are alike: ideographs, Hangul, Tangut, private use.
    let ranges = [
        '\u{20}'..='\u{3400}',
        '\u{9f00}'..='\u{ac00}',
        '\u{d7a0}'..='\u{e000}',
        '\u{f8ff}'..='\u{17000}',
        '\u{18af0}'..='\u{20000}',
        '\u{e0000}'..='\u{e0fff}',
    ];
    for it in ranges.into_iter().flatten() {
        let text = format!("x{it}");
        let line = sanitize_line(&text);
        terminal.process(format!("\r{line}").as_bytes());
        let column = usize::from(terminal.screen().cursor_position().1);
        assert_eq!(cell_width(&line), column, "{it:?} U+{:04X}", u32::from(it));
    }
}

#[cfg(planted_bugs)]
#[test]
fn planted_bugs_are_found() {
    use crate::planted_tests::assert_found;
    assert_found("count-characters-as-cells", cell_width_is_what_a_terminal_uses);
}
