//! The width of text in cells of a terminal.

use jackfield_protocol::is_planted;
use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthChar as _;

/// Marks that one character may carry. Scripts need up to four.
const MARKS_MAX: usize = 6;

/// The number of cells that a line of text takes, as `ratatui` counts when it draws.
pub(crate) fn cell_width(text: &str) -> usize {
    if is_printable_ascii(text) {
        return text.len();
    }
    if is_planted("count-characters-as-cells") {
        return text.chars().count();
    }
    text.graphemes(true).map(cluster_width).sum()
}

/// The start of a text that fits into `width` cells, with `…` if something is missing.
pub(crate) fn truncate_cells(text: &str, width: usize) -> String {
    // A cell takes at least one byte.
    if text.len() <= width || cell_width(text) <= width {
        return text.to_owned();
    }
    let Some(free) = width.checked_sub(1) else { return String::new() };
    let mut start = text[..prefix_length(text, free)].to_owned();
    start.push('…');
    start
}

/// The length in bytes of the longest start of `text` that fits into `width` cells.
pub(super) fn prefix_length(text: &str, width: usize) -> usize {
    let mut filled = 0;
    for (index, cluster) in text.grapheme_indices(true) {
        filled += cluster_width(cluster);
        if filled > width {
            return index;
        }
    }
    text.len()
}

/// The number of cells of one grapheme cluster.
pub(super) fn cluster_width(cluster: &str) -> usize {
    match cluster.as_bytes() {
        [0x20..=0x7e] => 1,
        [_] => 0,
        _ => usize::from(cluster.cell_width()),
    }
}

pub(super) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|it| (0x20..0x7f).contains(&it))
}

/// Changes clusters that take a different number of cells in different terminals: some count the cells of a cluster,
/// others those of its characters. A line does not start with a mark, and a character has few marks.
pub(super) fn normalize_clusters(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.is_ascii() {
            shown.push_str(line);
            continue;
        }
        for cluster in line.graphemes(true) {
            push_normalized(&mut shown, cluster);
        }
    }
    shown
}

fn push_normalized(shown: &mut String, cluster: &str) {
    if cluster.len() == 1 {
        shown.push_str(cluster);
        return;
    }
    let is_even = |cluster: &str| {
        let chars: usize = cluster.chars().map(char_width).sum();
        chars > 0 && chars == cluster_width(cluster)
    };
    let marks = cluster.chars().filter(|&it| char_width(it) == 0).count();
    if marks <= MARKS_MAX && is_even(cluster) {
        shown.push_str(cluster);
        return;
    }
    let mut marks = 0;
    let simple: String = cluster
        .chars()
        .filter(|&it| {
            marks += usize::from(char_width(it) == 0);
            !is_skin_tone(it) && (char_width(it) > 0 || marks <= MARKS_MAX)
        })
        .collect();
    if is_even(&simple) {
        shown.push_str(&simple);
    } else if cluster_width(&simple) > 0 {
        shown.push('?');
    }
}

/// Colors of skin do not stand alone after an emoji in all terminals.
fn is_skin_tone(it: char) -> bool {
    matches!(it, '\u{1f3fb}'..='\u{1f3ff}')
}

/// The cells of one character. No terminal draws a character in more than two.
fn char_width(it: char) -> usize {
    it.width().unwrap_or(0).min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_marks_are_counted_by_cells() {
        for (text, width) in [
            ("", 0),
            ("plain", 5),
            ("e\u{301}", 1),
            ("漢字", 4),
            ("한글", 4),
            ("🦀", 2),
            ("🇩🇪", 2),
            ("ﬁ", 1),
            ("क्षि", 3),
        ] {
            assert_eq!(cell_width(text), width, "{text:?}");
        }
    }

    #[test]
    fn text_is_cut_before_a_cluster_that_does_not_fit() {
        for (text, width, expected) in [
            ("plain", 5, "plain"),
            ("plain", 4, "pla…"),
            ("plain", 1, "…"),
            ("plain", 0, ""),
            ("漢字漢字", 8, "漢字漢字"),
            ("漢字漢字", 7, "漢字漢…"),
            ("漢字漢字", 6, "漢字…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ] {
            assert_eq!(truncate_cells(text, width), expected, "{text:?} {width}");
        }
    }

    #[test]
    fn clusters_with_an_uncertain_width_are_simplified() {
        for (text, expected) in [
            ("👨‍👩‍👧", "👨👩👧"),
            ("👍🏽 ok", "👍 ok"),
            ("❤️", "❤"),
            ("1️⃣", "1⃣"),
            ("🏳️‍🌈", "🏳🌈"),
            ("🇩🇪🇫", "🇩🇪🇫"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}a", "a"),
            ("ｶﾞ", "ｶ゛"),
        ] {
            assert_eq!(super::super::sanitize_text(text), expected, "{text:?}");
        }
        let marks = format!("Z{}", "\u{351}".repeat(60));
        assert_eq!(normalize_clusters(marks), format!("Z{}", "\u{351}".repeat(MARKS_MAX)));
    }
}
