//! The change of a file as lines. `changes` finds what changed, this file draws it.

mod changes;

use self::changes::{DiffHunk, DiffLine, LineChange, find_hunks};
use super::{
    ViewTheme, cell_width, escape_hidden, highlight_code, sanitize_line, sanitize_text,
    truncate_cells, wrap::wrap_spans,
};
use ratatui::{
    style::Style,
    text::{Line, Span},
};

/// A narrower view has no line numbers.
const NUMBERED_WIDTH_MIN: u16 = 30;

/// A line with the path and the number of changed lines, then hunks with three lines of context. A new file has no `old`.
/// Hidden characters are shown as escapes, because a reader may have to permit the change.
pub(crate) fn render_diff(
    path: &str,
    old: Option<&str>,
    new: &str,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let (old_text, new_text) = unify_line_breaks(old.unwrap_or(""), new);
    let hunks = find_hunks(&old_text, &new_text);
    let mut lines = vec![header(path, old.is_none(), &hunks, width, theme)];
    let drawing = DiffDrawing::new(path, &old_text, &new_text, width, theme);
    for hunk in &hunks {
        if old.is_some() {
            let range = truncate_cells(&hunk.header(), usize::from(width));
            lines.push(Line::styled(range, theme.dim));
        }
        lines.extend(hunk.lines.iter().flat_map(|it| drawing.draw_line(it)));
    }
    lines
}

/// Line breaks of two characters count only where the versions differ in them.
fn unify_line_breaks(old: &str, new: &str) -> (String, String) {
    let both = (old.is_empty() || old.contains("\r\n")) && new.contains("\r\n");
    if both {
        return (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    }
    (old.to_owned(), new.to_owned())
}

/// `src/main.rs  +3 -1`
fn header(
    path: &str,
    is_new: bool,
    hunks: &[DiffHunk<'_>],
    width: u16,
    theme: &ViewTheme,
) -> Line<'static> {
    let lines = || hunks.iter().flat_map(|it| &it.lines);
    let added = format!("+{}", lines().filter(|it| it.change == LineChange::Added).count());
    let removed = format!("-{}", lines().filter(|it| it.change == LineChange::Removed).count());
    let mut counts = vec![Span::styled(added, theme.added)];
    if is_new {
        counts.push(Span::styled(" new file", theme.dim));
    } else {
        counts.push(Span::raw(" "));
        counts.push(Span::styled(removed, theme.removed));
    }
    let counts_width: usize = counts.iter().map(Span::width).sum();
    let path = sanitize_line(path);
    let free = usize::from(width).saturating_sub(counts_width + 2);
    let mut spans = vec![Span::styled(truncate_cells(&path, free), theme.strong)];
    if counts_width + 2 < usize::from(width) {
        spans.push(Span::raw("  "));
        spans.extend(counts);
    }
    Line::from(spans)
}

struct DiffDrawing<'a> {
    theme: &'a ViewTheme,
    width: usize,
    /// The digits of line numbers; 0 if there is no room for them.
    digits: usize,
    /// The highlighted lines of both versions; empty without backgrounds for the changes.
    old_code: Vec<Line<'static>>,
    new_code: Vec<Line<'static>>,
}

impl<'a> DiffDrawing<'a> {
    fn new(path: &str, old: &str, new: &str, width: u16, theme: &'a ViewTheme) -> DiffDrawing<'a> {
        let count = old.lines().count().max(new.lines().count());
        let digits = if width < NUMBERED_WIDTH_MIN { 0 } else { count.to_string().len() };
        // Colors of code and colors of changes would be confused without backgrounds.
        let highlight = |text: &str| match theme.diff_backgrounds {
            Some(_) => highlight_code(path, text, theme),
            None => Vec::new(),
        };
        let (old_code, new_code) = (highlight(old), highlight(new));
        DiffDrawing { theme, width: usize::from(width.max(1)), digits, old_code, new_code }
    }

    fn draw_line(&self, line: &DiffLine<'_>) -> Vec<Line<'static>> {
        let (sign, style, background) = self.line_style(line.change);
        let number = format!("{:>1$}", line.number, self.digits);
        let number = if self.digits == 0 { String::new() } else { format!("{number} ") };
        let gutter = format!("{number}{sign} ");
        let gutter_width = gutter.len().min(self.width.saturating_sub(2));
        let width = self.width - gutter_width;
        let mut lines = Vec::new();
        for content in wrap_spans(self.content(line, style), width, width) {
            let is_first = lines.is_empty();
            let gutter = if is_first { gutter.clone() } else { " ".repeat(gutter_width) };
            let mut spans = if is_first && gutter_width == gutter.len() {
                let (number, sign) = gutter.split_at(number.len());
                vec![
                    Span::styled(number.to_owned(), self.theme.dim),
                    Span::styled(sign.to_owned(), style),
                ]
            } else {
                vec![Span::raw(gutter[..gutter_width].to_owned())]
            };
            spans.retain(|it| !it.content.is_empty());
            spans.extend(content);
            lines.push(self.fill_background(spans, background));
        }
        lines
    }

    fn line_style(&self, change: LineChange) -> (char, Style, Style) {
        let backgrounds = self.theme.diff_backgrounds;
        let on = |color| Style::new().bg(color);
        match change {
            LineChange::Same => (' ', self.theme.text, Style::new()),
            LineChange::Added => {
                ('+', self.theme.added, backgrounds.map_or(Style::new(), |it| on(it.0)))
            }
            LineChange::Removed => {
                ('-', self.theme.removed, backgrounds.map_or(Style::new(), |it| on(it.1)))
            }
        }
    }

    fn content(&self, line: &DiffLine<'_>, style: Style) -> Vec<Span<'static>> {
        let shown = escape_hidden(line.text);
        let is_old = line.change == LineChange::Removed;
        let code = if is_old { &self.old_code } else { &self.new_code };
        match code.get(line.number - 1) {
            Some(code) if sanitize_text(line.text) == shown => code.spans.clone(),
            _ => vec![Span::styled(shown.into_owned(), style)],
        }
    }

    fn fill_background(&self, mut spans: Vec<Span<'static>>, background: Style) -> Line<'static> {
        if background.bg.is_some() {
            let filled: usize = spans.iter().map(|it| cell_width(&it.content)).sum();
            spans.push(Span::raw(" ".repeat(self.width.saturating_sub(filled))));
            for span in &mut spans {
                span.style = span.style.patch(background);
            }
        }
        Line::from(spans)
    }
}
