//! Markdown as lines. `blocks` has the prefixes of quotes and lists and the distances, `table` lays out tables.
//!
//! HTML stays text, a link shows its target, and an image is its description: nothing is loaded or hidden.

mod blocks;
mod table;

use self::{
    blocks::BlockWriter,
    table::{TableCell, TableContent},
};
use super::{ViewTheme, highlight::highlight_lines, sanitize_line, sanitize_text};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

/// The start of a `data:` target that is shown; the rest means nothing to a reader.
const DATA_TARGET_CHARS_MAX: usize = 40;

pub(crate) fn render_markdown(
    text: &str,
    width: u16,
    theme: &ViewTheme,
) -> Vec<ratatui::text::Line<'static>> {
    let text = sanitize_text(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = MarkdownRenderer::new(width, theme);
    for event in Parser::new_ext(&text, options) {
        renderer.on_event(event);
    }
    renderer.writer.into_lines()
}

struct MarkdownRenderer<'a> {
    theme: &'a ViewTheme,
    writer: BlockWriter<'a>,
    /// The styles of the inline elements that are open; the last counts.
    styles: Vec<Style>,
    /// The links and images that are open: the target, and the text so far.
    targets: Vec<LinkTarget>,
    /// The language and the text of the code block that is open.
    code: Option<(String, String)>,
    table: Option<TableContent>,
}

struct LinkTarget {
    target: String,
    text: String,
    is_image: bool,
}

impl<'a> MarkdownRenderer<'a> {
    fn new(width: u16, theme: &'a ViewTheme) -> MarkdownRenderer<'a> {
        let writer = BlockWriter::new(width, theme);
        MarkdownRenderer {
            theme,
            writer,
            styles: Vec::new(),
            targets: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.on_start(tag),
            Event::End(tag) => self.on_end(tag),
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.on_text(&text),
            Event::Code(text) => self.on_inline_code(&text),
            Event::Html(text) => self.on_html_block(&text),
            Event::InlineHtml(text) if is_line_break(&text) => self.on_hard_break(),
            Event::InlineHtml(text) => self.push_text(&text, self.theme.dim),
            Event::SoftBreak => self.on_text(" "),
            Event::HardBreak => self.on_hard_break(),
            Event::Rule => self.writer.write_rule(),
            Event::TaskListMarker(is_done) => self.writer.set_task_marker(is_done),
        }
    }

    fn on_start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.writer.start_block();
                self.styles.push(heading_style(level, self.theme));
                let marks = "#".repeat(level as usize);
                self.push_text(&format!("{marks} "), self.theme.dim);
            }
            Tag::BlockQuote(_) => self.writer.start_quote(),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => sanitize_line(&info).into_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => self.writer.start_list(first),
            Tag::Item => self.writer.start_item(),
            Tag::Table(alignments) => self.table = Some(TableContent::new(alignments)),
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(TableContent::start_row);
            }
            Tag::Emphasis => self.push_style(|it| it.add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(|it| it.add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push_style(|it| it.add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } => {
                let link = self.theme.link;
                self.push_style(|it| it.patch(link));
                self.push_target(&dest_url, false);
            }
            Tag::Image { dest_url, .. } => {
                self.push_text("[image", self.theme.dim);
                self.push_target(&dest_url, true);
            }
            Tag::Paragraph | Tag::HtmlBlock => self.writer.start_block(),
            _ => {}
        }
    }

    fn on_end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.writer.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.writer.end_block();
            }
            TagEnd::BlockQuote(_) => self.writer.end_quote(),
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.writer.write_code(
                        &language,
                        highlight_lines(&language, &sanitize_text(&code), self.theme),
                    );
                }
            }
            TagEnd::List(_) => self.writer.end_list(),
            TagEnd::Item => self.writer.end_item(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.writer.write_table(table);
                }
            }
            TagEnd::TableCell => {
                let cell = TableCell::new(self.writer.take_inline());
                self.table.iter_mut().for_each(|it| it.push_cell(cell.clone()));
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                self.end_target();
            }
            TagEnd::Image => self.end_target(),
            _ => {}
        }
    }

    fn on_text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.push_text(text, self.style()),
        }
    }

    fn on_inline_code(&mut self, text: &str) {
        let style = self.style().patch(self.theme.code);
        if self.theme.has_color() {
            self.push_text(text, style);
        } else {
            self.push_text(&format!("`{text}`"), style);
        }
    }

    fn on_html_block(&mut self, text: &str) {
        for line in sanitize_text(text).lines() {
            self.push_text(line, self.theme.dim);
            self.writer.end_line();
        }
    }

    fn on_hard_break(&mut self) {
        if self.table.is_some() {
            self.push_text(" ", self.style());
        } else {
            self.writer.end_line();
        }
    }

    /// Entities can stand for control characters, so the text is sanitized again.
    fn push_text(&mut self, text: &str, style: Style) {
        let text = sanitize_line(text);
        if let Some(open) = self.targets.last_mut() {
            open.text.push_str(&text);
            if open.is_image {
                return;
            }
        }
        self.writer.push_inline(&text, style);
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.theme.text)
    }

    fn push_style(&mut self, change: impl FnOnce(Style) -> Style) {
        self.styles.push(change(self.style()));
    }

    fn push_target(&mut self, target: &str, is_image: bool) {
        let target = shorten_target(&sanitize_line(target));
        self.targets.push(LinkTarget { target, text: String::new(), is_image });
    }

    /// The target stands after the text, unless it is the text.
    fn end_target(&mut self) {
        let Some(LinkTarget { target, text, is_image }) = self.targets.pop() else { return };
        if is_image {
            // The description is written here, because it may be empty.
            let text = if text.is_empty() { String::new() } else { format!(": {text}") };
            self.push_text(&format!("{text}]"), self.theme.dim);
        }
        let is_shown = target.is_empty() || target == text || target == format!("mailto:{text}");
        if !is_shown {
            self.push_text(&format!(" ({target})"), self.theme.dim);
        }
    }
}

fn heading_style(level: HeadingLevel, theme: &ViewTheme) -> Style {
    match level {
        HeadingLevel::H1 => theme.heading.add_modifier(Modifier::UNDERLINED),
        HeadingLevel::H2 | HeadingLevel::H3 => theme.heading,
        _ => theme.strong,
    }
}

fn is_line_break(html: &str) -> bool {
    let name = html.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/').trim();
    name.eq_ignore_ascii_case("br")
}

/// A target is shown whole, so that its end cannot hide another host; but data is no address.
fn shorten_target(target: &str) -> String {
    let target: &str = target.trim();
    let is_data = target.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("data:"));
    if !is_data || target.chars().count() <= DATA_TARGET_CHARS_MAX {
        return target.to_owned();
    }
    target.chars().take(DATA_TARGET_CHARS_MAX).chain(['…']).collect()
}
