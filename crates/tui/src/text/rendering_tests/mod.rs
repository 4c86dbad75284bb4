//! Snapshots of rendered text: each scene at four widths, and styles in each color depth.

mod documents;

use self::documents::{
    CODE, DIFF_NEW, DIFF_OLD, DOCUMENT, HTML, LISTS, LONG_NEW, LONG_OLD, QUOTES, STYLES, TABLE,
    WIDE_CHARACTERS, WIDE_TABLE,
};
use super::{
    ColorDepth, TerminalBackground, ViewTheme, cell_width, highlight_code, render_diff,
    render_json, render_markdown, render_terminal_output,
};
use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};
use serde_json::json;

/// Compares the text of lines with a snapshot. Styles are not in it.
fn check_text(name: &str, width: u16, lines: &[Line<'_>]) {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    for line in &text {
        assert!(cell_width(line) <= usize::from(width), "{line:?}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    // The bar shows the width and keeps the spaces of a first line.
    let text: Vec<&str> = text.iter().map(|it| it.trim_end()).collect();
    check_snapshot(
        &format!("{name}_{width}"),
        &format!("{}\n{}", "─".repeat(width.into()), text.join("\n")),
    );
}

/// Compares lines with a snapshot in which each style is written before its text: `⟨bold red⟩text⟨⟩`.
fn check_styles(name: &str, lines: &[Line<'_>]) {
    let describe_line = |line: &Line<'_>| -> String {
        let spans = line.spans.iter().map(|span| {
            let style = describe_style(line.style.patch(span.style));
            if style.is_empty() {
                span.content.to_string()
            } else {
                format!("⟨{style}⟩{}⟨⟩", span.content)
            }
        });
        spans.collect()
    };
    let text: Vec<String> = lines.iter().map(describe_line).collect();
    check_snapshot(name, &text.join("\n"));
}

fn check_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn describe_style(style: Style) -> String {
    let color = |it: Color| match it {
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Indexed(index) => index.to_string(),
        _ => it.to_string().to_lowercase(),
    };
    let modifiers = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::CROSSED_OUT, "crossed"),
    ];
    let mut words: Vec<String> = modifiers
        .iter()
        .filter(|it| style.add_modifier.contains(it.0))
        .map(|it| it.1.to_owned())
        .collect();
    words.extend(style.fg.map(color));
    words.extend(style.bg.map(|it| format!("on {}", color(it))));
    words.join(" ")
}

macro_rules! snapshots_at_widths {
    ($($name:ident: $render:expr;)*) => {$(
        mod $name {
            use super::*;
            fn check(width: u16) {
                let render: fn(u16, &ViewTheme) -> Vec<Line<'static>> = $render;
                let lines = render(width, &ViewTheme::new(ColorDepth::None));
                check_text(stringify!($name), width, &lines);
            }
            #[test]
            fn width_20() { check(20); }
            #[test]
            fn width_40() { check(40); }
            #[test]
            fn width_80() { check(80); }
            #[test]
            fn width_120() { check(120); }
        }
    )*};
}

macro_rules! snapshots_at_depths {
    ($($name:ident: $render:expr;)*) => {$(
        mod $name {
            use super::*;
            fn check(suffix: &str, depth: ColorDepth, background: TerminalBackground) {
                let render: fn(&ViewTheme) -> Vec<Line<'static>> = $render;
                let lines = render(&ViewTheme::on_background(depth, background));
                check_styles(&format!("{}_{suffix}", stringify!($name)), &lines);
            }
            #[test]
            fn true_color() { check("true_color", ColorDepth::TrueColor, TerminalBackground::Unknown); }
            #[test]
            fn on_dark() { check("on_dark", ColorDepth::TrueColor, TerminalBackground::Dark); }
            #[test]
            fn on_light() { check("on_light", ColorDepth::Indexed256, TerminalBackground::Light); }
            #[test]
            fn colors_256() { check("colors_256", ColorDepth::Indexed256, TerminalBackground::Unknown); }
            #[test]
            fn colors_16() { check("colors_16", ColorDepth::Ansi16, TerminalBackground::Unknown); }
            #[test]
            fn no_color() { check("no_color", ColorDepth::None, TerminalBackground::Unknown); }
        }
    )*};
}

snapshots_at_widths! {
    markdown_document: |width, theme| render_markdown(DOCUMENT, width, theme);
    markdown_lists: |width, theme| render_markdown(LISTS, width, theme);
    markdown_table: |width, theme| render_markdown(TABLE, width, theme);
    markdown_wide_table: |width, theme| render_markdown(WIDE_TABLE, width, theme);
    markdown_code: |width, theme| render_markdown(CODE, width, theme);
    markdown_quotes: |width, theme| render_markdown(QUOTES, width, theme);
    markdown_html: |width, theme| render_markdown(HTML, width, theme);
    markdown_wide_characters: |width, theme| render_markdown(WIDE_CHARACTERS, width, theme);
    diff_of_change: |width, theme| render_diff("src/text/wrap.rs", Some(DIFF_OLD), DIFF_NEW, width, theme);
    diff_of_new_file: |width, theme| render_diff("src/new.rs", None, DIFF_NEW, width, theme);
    diff_of_long_lines: |width, theme| render_diff("dir/long.txt", Some(LONG_OLD), LONG_NEW, width, theme);
    output_of_build: |width, theme| render_terminal_output(&build_output(), width, theme);
    output_of_progress: |width, theme| render_terminal_output(&progress_output(), width, theme);
    json_input: |width, theme| render_json(&tool_input(), width, theme);
}

snapshots_at_depths! {
    markdown_styles: |theme| render_markdown(STYLES, 60, theme);
    output_styles: |theme| render_terminal_output(&build_output(), 60, theme);
    diff_styles: |theme| render_diff("a.json", Some("{\n  \"a\": 1\n}\n"), "{\n  \"a\": [2, \"x\"]\n}\n", 40, theme);
    code_styles: |theme| highlight_code("json", "{\"name\": [1, true, null]} // end\n", theme);
    json_styles: |theme| render_json(&json!({"a": 1, "b": "text", "c": null}), 40, theme);
}

fn build_output() -> String {
    let lines = [
        "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m jackfield-tui v0.1.0",
        "\u{1b}[1m\u{1b}[33mwarning\u{1b}[0m\u{1b}[1m: unused variable: `x`\u{1b}[0m",
        " \u{1b}[1m\u{1b}[38;5;12m--> \u{1b}[0msrc/text/wrap.rs:12:9 and a path that is longer than the line",
        "\u{1b}[38;2;255;135;0morange\u{1b}[48;5;22m on green\u{1b}[0m \u{1b}[3;4mitalic\u{1b}[0m \u{1b}[7mreversed\u{1b}[m",
        "\u{1b}]0;title\u{7}col1\tcol2\tcol3",
    ];
    lines.join("\r\n")
}

fn progress_output() -> String {
    let bars: Vec<String> =
        (0..=10).map(|it| format!("\r{:>3} % {:<10}|", it * 10, "#".repeat(it))).collect();
    format!("{}\n\u{1b}[2Kfetching\r\u{1b}[Kdone\nspinner /\u{8}-\u{8}\\\u{8} \n", bars.concat())
}

fn tool_input() -> serde_json::Value {
    json!({
        "command": "cargo nextest run -p jackfield-tui text::wrap && git commit -m 'Wrap lines by words'",
        "environment": {"RUST_LOG": "debug", "empty": {}},
        "files": ["crates/tui/src/text/wrap.rs", {"line": 12, "path": "crates/tui/src/text/cells.rs"}],
        "patch": "first line\n\tsecond line that is longer than a narrow terminal\n",
        "timeout": 120.5,
    })
}
