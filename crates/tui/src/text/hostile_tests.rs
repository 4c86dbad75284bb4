//! Draws the hostile texts of the console (`node console/tests/hostile.mjs`) and reads the bytes like a terminal.

use super::{
    ColorDepth, TerminalBackground, ViewTheme, cell_width, escape_hidden, render_diff, render_json,
    render_markdown, render_terminal_output, sanitize_line, sanitize_text, shorten_path,
    truncate_cells, wrap_line,
};
use ratatui::{
    backend::{Backend as _, CrosstermBackend},
    buffer::Buffer,
    layout::Rect,
    text::Line,
    widgets::Widget as _,
};
use serde_json::{Value, json};

const TEXTS: &str = include_str!("testdata/hostile.jsonl");
const COLUMNS: u16 = 50;
const ROWS: u16 = 16;
/// The part of the screen that is drawn.
const FRAME: Rect = Rect { x: 5, y: 3, width: 40, height: 10 };

fn hostile_texts() -> Vec<(String, String)> {
    let parse = |line: &str| {
        // Text in Rust has no half of a surrogate pair.
        let line = line.replace("\\ud800", "\\ufffd").replace("\\udc00", "\\ufffd");
        let value: Value = serde_json::from_str(&line).unwrap();
        (value["name"].as_str().unwrap().to_owned(), value["text"].as_str().unwrap().to_owned())
    };
    TEXTS.lines().map(parse).collect()
}

/// The start of a text, which is more than a frame shows.
fn cut_text(text: &str) -> &str {
    text.char_indices().nth(2_000).map_or(text, |it| &text[..it.0])
}

/// All ways in which a text of an agent is drawn.
fn render_everywhere(text: &str, width: u16, theme: &ViewTheme) -> Vec<Vec<Line<'static>>> {
    let line = sanitize_line(text).into_owned();
    let cells = usize::from(width);
    vec![
        render_markdown(text, width, theme),
        render_markdown(&format!("- ```json\n  {text}\n  ```\n"), width, theme),
        render_markdown(&format!("|a|b|\n|-|-|\n|{text}|[{text}]({text})|"), width, theme),
        render_terminal_output(text, width, theme),
        render_diff(&format!("{text}.txt"), Some("old"), text, width, theme),
        render_diff("", None, text, width, theme),
        render_json(&json!({text: [text, {"a": text}]}), width, theme),
        wrap_line(Line::from(line.clone()), width, 2),
        vec![Line::from(truncate_cells(&line, cells))],
        vec![Line::from(shorten_path(text, "/home", cells))],
        wrap_line(Line::from(sanitize_text(text).replace('\n', " ")), width, 0),
        wrap_line(Line::from(escape_hidden(text).replace('\n', " ")), width, 0),
    ]
}

fn themes() -> [ViewTheme; 4] {
    [
        ViewTheme::on_background(ColorDepth::TrueColor, TerminalBackground::Dark),
        ViewTheme::on_background(ColorDepth::Indexed256, TerminalBackground::Light),
        ViewTheme::new(ColorDepth::Ansi16),
        ViewTheme::new(ColorDepth::None),
    ]
}

#[test]
fn rendered_lines_have_no_control_characters_and_fit() {
    let themes = themes();
    for (index, (name, text)) in hostile_texts().iter().enumerate() {
        let width = [1, 7, 20, 40][index % 4];
        let theme = &themes[index / 4 % 4];
        let mut rendered = render_everywhere(cut_text(text), width, theme);
        rendered.push(render_markdown(text, width, theme));
        rendered.push(render_terminal_output(text, width, theme));
        for lines in rendered {
            for line in lines {
                let shown = line.to_string();
                let is_forbidden = super::properties::is_forbidden;
                assert!(!shown.contains(is_forbidden), "{name}: {shown:?}");
                assert!(cell_width(&shown) <= usize::from(width), "{name} {width}: {shown:?}");
            }
        }
    }
}

#[test]
fn terminal_does_nothing_but_print_the_frame() {
    let themes = themes();
    for (index, (name, text)) in hostile_texts().iter().enumerate() {
        for lines in render_everywhere(cut_text(text), FRAME.width, &themes[index % 4]) {
            check_frame(name, &lines);
        }
    }
}

/// Draws lines inside of a larger screen, and checks each cell of it.
fn check_frame(name: &str, lines: &[Line<'_>]) {
    let screen_area = Rect::new(0, 0, COLUMNS, ROWS);
    let mut buffer = Buffer::empty(screen_area);
    for (line, row) in lines.iter().zip(FRAME.rows()) {
        line.render(row, &mut buffer);
    }
    let mut bytes = Vec::new();
    let blank = Buffer::empty(screen_area);
    CrosstermBackend::new(&mut bytes).draw(blank.diff(&buffer).into_iter()).unwrap();
    let size = |it: u16| it.try_into().unwrap();
    let actions = TerminalActions::default();
    let mut terminal = vt100::Parser::new_with_callbacks(size(ROWS), size(COLUMNS), 0, actions);
    terminal.process(&bytes);
    assert_eq!(terminal.callbacks().0, [""; 0], "{name}");
    let screen = terminal.screen();
    assert_eq!(screen.input_mode_formatted(), new_input_mode(), "{name}");
    assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{name}");
    for position in screen_area.positions() {
        let drawn = screen.cell(position.y, position.x).unwrap();
        let cell = &buffer[position];
        if drawn.is_wide_continuation() {
            continue;
        }
        let found = if drawn.has_contents() { drawn.contents() } else { " " };
        // The parser keeps the first bytes of a cell only, and no cell has more than one cluster.
        let expected = cell.symbol();
        let is_same = expected == found || (expected.len() > 4 && expected.starts_with(found));
        let is_second = found != " "
            && buffer[(position.x.saturating_sub(1), position.y)].symbol().ends_with(found);
        assert!(is_same || is_second, "{name} {position:?}: {found:?} is not {expected:?}");
        if !FRAME.contains(position) {
            assert_eq!(found, " ", "{name} {position:?}");
        }
    }
}

fn new_input_mode() -> String {
    vt100::Parser::new(1.try_into().unwrap(), 1.try_into().unwrap(), 0)
        .screen()
        .input_mode_formatted()
}

/// What a terminal was asked for beside printing.
#[derive(Default)]
struct TerminalActions(Vec<String>);

impl vt100::Callbacks for TerminalActions {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".to_owned());
    }
    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("visual bell".to_owned());
    }
    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.0.push("resize".to_owned());
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("icon name".to_owned());
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("title".to_owned());
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], _: &[u8]) {
        self.0.push("copy".to_owned());
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".to_owned());
    }
    fn unhandled_char(&mut self, _: &mut vt100::Screen, it: char) {
        self.0.push(format!("character {it:?}"));
    }
    fn unhandled_control(&mut self, _: &mut vt100::Screen, it: u8) {
        self.0.push(format!("control {it}"));
    }
    fn unhandled_escape(&mut self, _: &mut vt100::Screen, _: Option<u8>, _: Option<u8>, it: u8) {
        self.0.push(format!("escape {it}"));
    }
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, _: &[&[u8]]) {
        self.0.push("system command".to_owned());
    }
}
