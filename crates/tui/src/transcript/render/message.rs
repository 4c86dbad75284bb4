//! Prompts, messages and thoughts.

use super::{BlockSource, ItemOptions, fit_line, indent_body, output_ranges};
use crate::{
    text::{ViewTheme, format_duration, render_markdown, sanitize_line, sanitize_text, wrap_line},
    transcript::{ItemContent, MarkdownBlock, MessagePart, block_text, parts_text, split_markdown},
};
use ratatui::text::{Line, Span};
use std::ops::Range;

pub(super) fn add_markdown_blocks(parts: &[MessagePart], blocks: &mut Vec<BlockSource>) {
    for (part, it) in parts.iter().enumerate() {
        match it {
            MessagePart::Text(text) => {
                let split = split_markdown(text, MarkdownBlock::default()).into_iter();
                blocks.extend(split.map(|block| BlockSource::Markdown { part, block }));
            }
            _ => blocks.push(BlockSource::Part { part, range: 0..0 }),
        }
    }
}

pub(super) fn add_plain_blocks(parts: &[MessagePart], blocks: &mut Vec<BlockSource>) {
    for (part, it) in parts.iter().enumerate() {
        match it {
            MessagePart::Text(text) => {
                blocks.extend(output_ranges(text).map(|range| BlockSource::Part { part, range }));
            }
            _ => blocks.push(BlockSource::Part { part, range: 0..0 }),
        }
    }
}

pub(super) fn render_markdown_block(
    content: &ItemContent,
    part: usize,
    block: &MarkdownBlock,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let Some(MessagePart::Text(text)) = content.parts().get(part) else { return Vec::new() };
    // Code that still grows is highlighted when it is complete.
    let is_last = block.range.end == text.len() && part + 1 == content.parts().len();
    let text = block_text(text, block, !(options.is_growing && is_last));
    if matches!(content, ItemContent::Thought { .. }) {
        return indent_body(options, theme, |width| render_markdown(&text, width, theme));
    }
    render_markdown(&text, options.width, theme)
}

/// A part of a prompt, or a part of a message that is not text.
pub(super) fn render_part(
    content: &ItemContent,
    part: usize,
    range: Range<usize>,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    match content.parts().get(part) {
        Some(MessagePart::Text(text)) => {
            let text = sanitize_text(&text[range]);
            let lines = text.lines().map(|it| Line::styled(it.trim_end().to_owned(), theme.text));
            lines.flat_map(|it| wrap_line(it, options.width, 0)).collect()
        }
        Some(part) => wrap_line(describe_part(part, theme), options.width, 2),
        None => Vec::new(),
    }
}

/// An image, a link or a file in one line.
pub(super) fn describe_part(part: &MessagePart, theme: &ViewTheme) -> Line<'static> {
    let clean = |text: &str| sanitize_line(text).into_owned();
    match part {
        MessagePart::Text(text) => Line::styled(clean(text), theme.text),
        MessagePart::Image { mime_type, bytes } => Line::styled(
            format!("[image {}, {}]", clean(mime_type), format_bytes(*bytes)),
            theme.dim,
        ),
        MessagePart::Link { uri, name } if name == uri => Line::styled(clean(uri), theme.link),
        MessagePart::Link { uri, name } => Line::from(vec![
            Span::styled(format!("{} ", clean(name)), theme.text),
            Span::styled(clean(uri), theme.link),
        ]),
        MessagePart::File { uri, text } => Line::from(vec![
            Span::styled(clean(uri), theme.link),
            Span::styled(format!(" ({} lines)", text.lines().count()), theme.dim),
        ]),
        MessagePart::Other(name) => Line::styled(format!("[{}]", clean(name)), theme.dim),
    }
}

fn format_bytes(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

pub(super) fn prompt_header(by: &str, turn: u64, width: u16, theme: &ViewTheme) -> Line<'static> {
    let by = if by.is_empty() { "repeated by the agent" } else { by };
    let style = theme.accent.patch(theme.strong);
    let suffix = if turn == 0 { String::new() } else { format!("turn {turn}") };
    fit_line(&sanitize_line(by), style, &[suffix], width, theme)
}

pub(super) fn thought_header(
    parts: &[MessagePart],
    duration_ms: u64,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Line<'static> {
    let text = parts_text(parts);
    let first = text.lines().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default();
    let first = first.trim_matches(['*', '#', '_', ' ']);
    let (word, preview) = match (options.is_growing, options.is_expanded) {
        (true, _) => ("Thinking", first),
        (false, false) => ("Thought", first),
        (false, true) => ("Thought", ""),
    };
    let separator = if preview.is_empty() { "" } else { ": " };
    let title = format!("{word}{separator}{preview}");
    let duration = if duration_ms >= 100 { format_duration(duration_ms) } else { String::new() };
    fit_line(&sanitize_line(&title), theme.dim, &[duration], options.width, theme)
}
