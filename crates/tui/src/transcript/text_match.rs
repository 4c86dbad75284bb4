//! Finds a text in rendered lines, also where it is wrapped.

use ratatui::text::Line;
use std::ops::Range;

/// A text to find: without regard to case, and to how words are separated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextQuery {
    chars: Vec<char>,
    longest_word: String,
}

/// A part of a match: a line, and a range of bytes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MatchedRange {
    pub(crate) line: usize,
    pub(crate) range: Range<usize>,
}

impl TextQuery {
    /// `None` for a text without visible characters.
    pub(crate) fn new(text: &str) -> Option<TextQuery> {
        let text = text.to_lowercase();
        let parts: Vec<&str> = text.split_whitespace().collect();
        let longest_word = (*parts.iter().max_by_key(|it| it.len())?).to_owned();
        Some(TextQuery { chars: parts.join(" ").chars().collect(), longest_word })
    }

    /// Whether a text may contain the query once it is rendered.
    pub(crate) fn may_match(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.longest_word)
    }

    /// All matches in lines that belong together. A wrapped match has several ranges.
    pub(crate) fn find(&self, lines: &[Line<'_>]) -> Vec<Vec<MatchedRange>> {
        let places = join_lines(lines);
        let mut matches = Vec::new();
        let mut start = 0;
        while start + self.chars.len() <= places.len() {
            let found = &places[start..start + self.chars.len()];
            if found.iter().map(|it| it.char).eq(self.chars.iter().copied()) {
                matches.push(merge_ranges(found));
                start += self.chars.len();
            } else {
                start += 1;
            }
        }
        matches
    }
}

/// A character of the joined lines and where it comes from.
struct CharPlace {
    char: char,
    line: usize,
    range: Range<usize>,
}

/// The text of the lines in lower case, with one space between words and lines.
fn join_lines(lines: &[Line<'_>]) -> Vec<CharPlace> {
    let mut places: Vec<CharPlace> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = line.to_string();
        // The bar of a body is no text.
        let skipped = text.len() - text.strip_prefix("│ ").unwrap_or(&text).len();
        let mut is_separated = true;
        for (start, char) in text[skipped..].char_indices() {
            let start = skipped + start;
            if char.is_whitespace() {
                is_separated = true;
                continue;
            }
            if std::mem::take(&mut is_separated) && !places.is_empty() {
                places.push(CharPlace { char: ' ', line: index, range: start..start });
            }
            let range = start..start + char.len_utf8();
            let lower = char.to_lowercase();
            places.extend(lower.map(|char| CharPlace { char, line: index, range: range.clone() }));
        }
    }
    places
}

fn merge_ranges(places: &[CharPlace]) -> Vec<MatchedRange> {
    let mut ranges: Vec<MatchedRange> = Vec::new();
    for CharPlace { line, range, .. } in places.iter().filter(|it| !it.range.is_empty()) {
        match ranges.last_mut() {
            Some(last) if last.line == *line => last.range.end = range.end,
            _ => ranges.push(MatchedRange { line: *line, range: range.clone() }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(query: &str, lines: &[&'static str]) -> Vec<Vec<(usize, Range<usize>)>> {
        let lines: Vec<Line<'_>> = lines.iter().map(|it| Line::from(*it)).collect();
        let matches = TextQuery::new(query).unwrap().find(&lines).into_iter();
        matches.map(|it| it.into_iter().map(|it| (it.line, it.range)).collect()).collect()
    }

    #[test]
    fn text_is_found_without_regard_to_case_and_wrapping() {
        assert_eq!(find("the END", &["not the  end, The"]), [[(0, 4..12)]]);
        assert_eq!(find("the end", &["│ see the", "│ end"]), [[(0, 8..11), (1, 4..7)]]);
        assert_eq!(find("ä", &["Ä ä"]), [[(0, 0..2)], [(0, 3..5)]]);
        assert!(find("x", &["", "y"]).is_empty());
        assert_eq!(TextQuery::new(" \n"), None);
    }
}
