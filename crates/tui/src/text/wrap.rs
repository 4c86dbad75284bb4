//! Breaks styled lines to a width in cells.

use super::cells::{cluster_width, is_printable_ascii};
use ratatui::{
    style::Style,
    text::{Line, Span},
};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation as _;

/// Breaks a line into lines of at most `width` cells; all but the first start with `indent` spaces. Lines break between
/// words, or after a hyphen, if possible, and spaces at a break are dropped. A cluster that is wider than a line becomes `?`.
pub(crate) fn wrap_line(line: Line<'static>, width: u16, indent: u16) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let indent = usize::from(indent).min(width.saturating_sub(2));
    let (style, alignment) = (line.style, line.alignment);
    let mut lines = Vec::new();
    for mut spans in wrap_spans(line.spans, width, width - indent) {
        if indent > 0 && !lines.is_empty() {
            spans.insert(0, Span::raw(" ".repeat(indent)));
        }
        lines.push(Line { style, alignment, spans });
    }
    lines
}

/// Breaks the spans of one line: the first line has `first` cells, the others have `rest`. There is at least one line.
pub(super) fn wrap_spans(
    spans: Vec<Span<'static>>,
    first: usize,
    rest: usize,
) -> Vec<Vec<Span<'static>>> {
    let bytes: usize = spans.iter().map(|it| it.content.len()).sum();
    if bytes <= first && spans.iter().all(|it| is_printable_ascii(&it.content)) {
        return vec![spans];
    }
    let line = StyledLine::new(&spans, first.min(rest));
    let ranges = break_line(&line, first, rest);
    let mut run = 0;
    ranges.into_iter().map(|it| line.spans(it, &mut run)).collect()
}

/// The text of a line, and where its styles end.
struct StyledLine {
    text: String,
    runs: Vec<(usize, Style)>,
}

impl StyledLine {
    fn new(spans: &[Span<'static>], cluster_width_max: usize) -> StyledLine {
        let mut line = StyledLine { text: String::new(), runs: Vec::with_capacity(spans.len()) };
        for span in spans {
            if is_printable_ascii(&span.content) && cluster_width_max > 0 {
                line.text.push_str(&span.content);
            } else {
                for cluster in span.content.graphemes(true) {
                    let is_too_wide = cluster_width(cluster) > cluster_width_max;
                    line.text.push_str(if is_too_wide { "?" } else { cluster });
                }
            }
            line.runs.push((line.text.len(), span.style));
        }
        line
    }

    /// The spans of a range; `run` is the index of a style that ends after the start of the range, or before.
    fn spans(&self, range: Range<usize>, run: &mut usize) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let Some(&(run_end, style)) = self.runs.get(*run) else { break };
            let end = run_end.min(range.end);
            if start < end {
                spans.push(Span::styled(self.text[start..end].to_owned(), style));
                start = end;
            }
            if run_end <= range.end {
                *run += 1;
            }
        }
        spans
    }
}

/// A place where a line can end.
#[derive(Clone, Copy)]
struct BreakPlace {
    /// Where the text before it ends, without spaces.
    content_end: usize,
    /// Where the next line starts.
    next_start: usize,
    /// The cells from the start of the line to `next_start`.
    filled: usize,
}

/// The state of `break_line`.
struct LineBreaker<'a> {
    text: &'a str,
    ranges: Vec<Range<usize>>,
    rest: usize,
    /// The cells of the current line.
    limit: usize,
    start: usize,
    filled: usize,
    /// The last place where the current line can end; never before its first visible cluster.
    place: Option<BreakPlace>,
    /// Where the visible text of the current line ends.
    content_end: usize,
    /// The last cluster is a hyphen after a letter or digit.
    is_after_hyphen: bool,
    is_after_word: bool,
}

fn break_line(line: &StyledLine, first: usize, rest: usize) -> Vec<Range<usize>> {
    let text = &line.text;
    let mut breaker = LineBreaker {
        text,
        ranges: Vec::new(),
        rest,
        limit: first,
        start: 0,
        filled: 0,
        place: None,
        content_end: 0,
        is_after_hyphen: false,
        is_after_word: false,
    };
    let mut start = 0;
    for &(end, _) in &line.runs {
        // A cluster ends with its span, as it does when it is drawn.
        if is_printable_ascii(&text[start..end]) {
            (start..end).for_each(|it| breaker.add_cluster(it, &text[it..=it]));
        } else {
            for (index, cluster) in text[start..end].grapheme_indices(true) {
                breaker.add_cluster(start + index, cluster);
            }
        }
        start = end;
    }
    let end = if breaker.filled > breaker.limit { breaker.content_end } else { text.len() };
    breaker.ranges.push(breaker.start..end.max(breaker.start));
    breaker.ranges
}

impl LineBreaker<'_> {
    fn add_cluster(&mut self, index: usize, cluster: &str) {
        let cells = cluster_width(cluster);
        let end = index + cluster.len();
        let is_letter = cluster.chars().next().is_some_and(char::is_alphabetic);
        if self.is_after_hyphen && is_letter && self.filled <= self.limit {
            self.place =
                Some(BreakPlace { content_end: index, next_start: index, filled: self.filled });
        }
        self.is_after_hyphen = cluster == "-" && self.is_after_word;
        self.is_after_word = cluster.chars().next().is_some_and(char::is_alphanumeric);
        if is_space(cluster) {
            self.filled += cells;
            if self.content_end > self.start {
                let (content_end, filled) = (self.content_end, self.filled);
                self.place = Some(BreakPlace { content_end, next_start: end, filled });
            }
            return;
        }
        while self.filled + cells > self.limit && self.start < index {
            self.end_line(index);
        }
        self.filled += cells;
        self.content_end = end;
        if is_ideograph(cells) && self.filled <= self.limit {
            self.place =
                Some(BreakPlace { content_end: end, next_start: end, filled: self.filled });
        }
    }

    /// Ends the current line, because the cluster at `index` does not fit.
    fn end_line(&mut self, index: usize) {
        match self.place.take() {
            Some(it) if it.next_start == index || self.fits_next_line(it.next_start) => {
                self.ranges.push(self.start..it.content_end);
                self.start = it.next_start;
                self.filled -= it.filled;
            }
            _ if self.content_end <= self.start => {
                // Only spaces, and more than fit.
                self.start = index;
                self.filled = 0;
                return;
            }
            _ => {
                self.ranges.push(self.start..self.content_end);
                self.start = index;
                self.filled = 0;
            }
        }
        self.limit = self.rest;
    }

    /// Whether the word at `start` fits into a line of its own.
    fn fits_next_line(&self, start: usize) -> bool {
        let mut filled = 0;
        for cluster in self.text[start..].graphemes(true) {
            if is_space(cluster) {
                return true;
            }
            let cells = cluster_width(cluster);
            filled += cells;
            if filled > self.rest {
                return false;
            }
            if is_ideograph(cells) {
                return true;
            }
        }
        true
    }
}

fn is_space(cluster: &str) -> bool {
    matches!(cluster, " " | "\u{3000}")
}

/// Lines also break after ideographs, which are wide.
fn is_ideograph(cells: usize) -> bool {
    cells == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Stylize as _;

    fn wrap(text: &str, width: u16, indent: u16) -> Vec<String> {
        let lines = wrap_line(Line::from(text.to_owned()), width, indent);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 20, 0), ["one two three"]);
        assert_eq!(wrap("one two three", 8, 0), ["one two", "three"]);
        assert_eq!(wrap("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(wrap("one    two", 5, 0), ["one", "two"]);
        assert_eq!(wrap("one two   ", 7, 0), ["one two"]);
        assert_eq!(wrap("well-known fact", 6, 0), ["well-", "known", "fact"]);
        assert_eq!(wrap("fn f() -> u8", 8, 0), ["fn f()", "-> u8"]);
        assert_eq!(wrap("ls --all-files", 9, 0), ["ls --all-", "files"]);
        assert_eq!(wrap("", 7, 2), [""]);
    }

    #[test]
    fn word_that_is_longer_than_a_line_starts_where_it_stands() {
        assert_eq!(wrap("- /a/very/long/path", 8, 2), ["- /a/ver", "  y/long", "  /path"]);
        assert_eq!(wrap("aaaaaaaaaa", 4, 0), ["aaaa", "aaaa", "aa"]);
        assert_eq!(wrap("aaaaaaaaaa", 4, 9), ["aaaa", "  aa", "  aa", "  aa"]);
    }

    #[test]
    fn indentation_is_kept_and_never_makes_an_empty_line() {
        assert_eq!(wrap("    word", 6, 0), ["    wo", "rd"]);
        assert_eq!(wrap("          x", 6, 0), ["x"]);
        assert_eq!(wrap("          ", 6, 0), [""]);
    }

    #[test]
    fn wide_clusters_are_not_cut() {
        assert_eq!(wrap("漢字漢字", 5, 0), ["漢字", "漢字"]);
        assert_eq!(wrap("a漢字", 2, 0), ["a", "漢", "字"]);
        assert_eq!(wrap("漢a", 1, 0), ["?", "a"]);
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2, 0), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn styles_stay_with_their_text() {
        let line = Line::from(vec!["one ".red(), "two th".bold(), "ree".into()]).green();
        let lines = wrap_line(line, 7, 1);
        assert_eq!(
            lines,
            [
                Line::from(vec!["one ".red(), "two".bold()]).green(),
                Line::from(vec![" ".into(), "th".bold(), "ree".into()]).green(),
            ]
        );
    }
}
