//! Output of a command as lines. `sgr` reads colors and styles, `line_cells` is a line that is written over.

mod line_cells;
mod sgr;

use self::{line_cells::LineCells, sgr::OutputStyle};
use super::{
    ViewTheme, cell_width,
    escape_sequence::{EscapeSequence, is_sequence_start, parse_sequence},
    sanitize_line,
    span_list::SpanList,
    wrap_line,
};
use ratatui::text::{Line, Span};

const TAB_COLUMNS: usize = 8;

/// Colors and styles are kept. `\r`, backspace and the erasing of a line are applied within their line, as progress bars
/// use them. All other sequences are dropped.
pub(crate) fn render_terminal_output(
    text: &str,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let mut output = OutputLines::new(theme);
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(char::is_control).unwrap_or(rest.len());
        let (shown, next) = rest.split_at(length);
        output.push_text(shown);
        rest = &next[output.on_control(next)..];
    }
    output.into_lines().into_iter().flat_map(|it| wrap_line(it, width, 0)).collect()
}

struct OutputLines<'a> {
    theme: &'a ViewTheme,
    lines: Vec<Line<'static>>,
    style: OutputStyle,
    current: CurrentLine,
}

/// Most lines are only appended to.
enum CurrentLine {
    Appended { spans: SpanList, column: usize },
    Overwritten(LineCells),
}

impl CurrentLine {
    fn new() -> CurrentLine {
        CurrentLine::Appended { spans: SpanList::default(), column: 0 }
    }

    fn into_spans(self) -> Vec<Span<'static>> {
        match self {
            CurrentLine::Appended { mut spans, .. } => spans.take(),
            CurrentLine::Overwritten(cells) => cells.into_spans(),
        }
    }

    /// The line as cells, in which the cursor can move.
    fn cells(&mut self) -> &mut LineCells {
        if let CurrentLine::Appended { spans, .. } = self {
            let mut cells = LineCells::default();
            for span in spans.take() {
                cells.write(&span.content, span.style);
            }
            *self = CurrentLine::Overwritten(cells);
        }
        match self {
            CurrentLine::Overwritten(cells) => cells,
            CurrentLine::Appended { .. } => unreachable!("the line was replaced"),
        }
    }
}

impl<'a> OutputLines<'a> {
    fn new(theme: &'a ViewTheme) -> OutputLines<'a> {
        let style = OutputStyle::default();
        OutputLines { theme, lines: Vec::new(), style, current: CurrentLine::new() }
    }

    fn into_lines(mut self) -> Vec<Line<'static>> {
        let last = self.current.into_spans();
        if !last.is_empty() {
            self.lines.push(Line::from(last));
        }
        self.lines
    }

    fn push_text(&mut self, text: &str) {
        let text = sanitize_line(text);
        let style = self.style.to_style(self.theme.depth);
        match &mut self.current {
            CurrentLine::Appended { spans, column } => {
                spans.push(&text, style);
                *column += cell_width(&text);
            }
            CurrentLine::Overwritten(cells) => cells.write(&text, style),
        }
    }

    /// Applies the control character or sequence at the start of `text`, and returns its length.
    fn on_control(&mut self, text: &str) -> usize {
        let Some(first) = text.chars().next() else { return 0 };
        match first {
            '\n' => {
                let line = std::mem::replace(&mut self.current, CurrentLine::new());
                self.lines.push(Line::from(line.into_spans()));
            }
            '\r' => {
                let rest = text.trim_start_matches('\r');
                if !rest.starts_with('\n') {
                    self.current.cells().move_to_start();
                }
                return text.len() - rest.len();
            }
            '\u{8}' => self.current.cells().move_back(),
            '\t' => {
                let column = match &self.current {
                    CurrentLine::Appended { column, .. } => *column,
                    CurrentLine::Overwritten(cells) => cells.column(),
                };
                self.push_text(&" ".repeat(TAB_COLUMNS - column % TAB_COLUMNS));
            }
            _ if is_sequence_start(first) => {
                let (sequence, length) = parse_sequence(text);
                self.on_sequence(sequence, &text[..length]);
                return length;
            }
            _ => {}
        }
        first.len_utf8()
    }

    fn on_sequence(&mut self, sequence: EscapeSequence<'_>, text: &str) {
        match (sequence, text) {
            (EscapeSequence::Style(parameters), _) => self.style.apply(parameters),
            (_, "\u{1b}[K" | "\u{1b}[0K") => self.current.cells().erase_to_end(),
            (_, "\u{1b}[2K") => self.current.cells().erase_all(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ColorDepth;
    use ratatui::style::{Color, Style};

    fn render(text: &str) -> Vec<Line<'static>> {
        render_terminal_output(text, 40, &ViewTheme::new(ColorDepth::Ansi16))
    }

    fn texts(text: &str) -> Vec<String> {
        render(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_are_shown_as_they_end() {
        for (text, expected) in [
            ("", &[][..]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\nb\r\r\nc", &["a", "b", "c"]),
            ("a\n\nb", &["a", "", "b"]),
            (" 10 %\r 50 %\r100 %\n", &["100 %"]),
            ("long text\rab", &["abng text"]),
            ("long text\r\u{1b}[Kab", &["ab"]),
            ("long text\u{1b}[2K\rab", &["ab"]),
            ("abc\u{8}\u{8}X", &["aXc"]),
            ("\u{8}a", &["a"]),
            ("漢字\rx", &["x 字"]),
            ("漢字\u{8}x", &["漢 x"]),
            ("e\u{301}b\ra", &["ab"]),
            ("a\tb\n\u{1b}[1mab\tc", &["a       b", "ab      c"]),
            ("a\u{1b}]0;title\u{7}b\u{1b}[2J\u{1b}[3;3Hc", &["abc"]),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn styles_last_until_they_are_reset() {
        let lines = render("\u{1b}[31mred\nred\u{1b}[0m plain \u{1b}[32mgre\u{1b}[32men");
        let red = Style::new().fg(Color::Red);
        let green = Style::new().fg(Color::Green);
        assert_eq!(
            lines,
            [
                Line::from(Span::styled("red", red)),
                Line::from(vec![
                    Span::styled("red", red),
                    Span::raw(" plain "),
                    Span::styled("green", green)
                ]),
            ]
        );
    }
}
