//! Renders items as lines, block by block. A block that is not visible is not rendered.

mod call;
mod mark;
mod message;
mod status;

use super::{ItemContent, MarkdownBlock, NoticeLevel, TranscriptItem};
use crate::text::{ViewTheme, render_terminal_output, sanitize_line, truncate_cells, wrap_line};
use jackfield_events::Time;
pub(crate) use mark::item_mark;
use ratatui::{
    style::Style,
    text::{Line, Span},
};
use std::ops::Range;

/// Text of a program is divided after this many bytes, at the end of a line if there is one.
const OUTPUT_BLOCK_BYTES: usize = 8000;

/// What a block shows of its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockSource {
    /// The blank line before an item.
    Gap,
    /// The first line: what the item is.
    Header,
    /// A range of a text part as Markdown.
    Markdown { part: usize, block: MarkdownBlock },
    /// A part that is not text, or a prompt.
    Part { part: usize, range: Range<usize> },
    /// The input of a tool call.
    Input,
    /// A part of the content of a tool call: a diff, an image, a link.
    Content(usize),
    /// A range of what a program has put out.
    Output(Range<usize>),
    /// The files of a tool call.
    Locations,
}

/// Where a block is in its item. Places are ordered as the blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct BlockPlace {
    pub(crate) section: usize,
    /// Where the block begins in the text of the section.
    pub(crate) start: usize,
}

impl BlockSource {
    pub(crate) fn place(&self) -> BlockPlace {
        const FIRST_PART: usize = 3;
        let (section, start) = match self {
            BlockSource::Gap => (0, 0),
            BlockSource::Header => (1, 0),
            BlockSource::Input => (2, 0),
            BlockSource::Markdown { part, block } => (FIRST_PART + part, block.range.start),
            BlockSource::Part { part, range } => (FIRST_PART + part, range.start),
            BlockSource::Content(index) => (FIRST_PART + index, 0),
            BlockSource::Output(range) => (usize::MAX - 1, range.start),
            BlockSource::Locations => (usize::MAX, 0),
        };
        BlockPlace { section, start }
    }

    /// The section of a text part.
    pub(crate) fn part_section(part: usize) -> usize {
        BlockSource::Content(part).place().section
    }
}

/// How an item is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemOptions {
    pub(crate) width: u16,
    pub(crate) is_expanded: bool,
    /// A blank line is before it.
    pub(crate) has_gap: bool,
    /// The agent is still sending it.
    pub(crate) is_growing: bool,
    /// How long an open tool call has been running.
    pub(crate) running_s: Option<u64>,
}

/// Whether the item has more to show than it shows at first.
pub(crate) fn can_expand(item: &TranscriptItem) -> bool {
    match &item.content {
        ItemContent::ToolCall(call) => call::has_body(call),
        ItemContent::Thought { .. } => true,
        ItemContent::Notice { detail, .. } => !detail.is_empty(),
        _ => false,
    }
}

/// Whether consecutive items of this kind have no blank line between them.
pub(crate) fn is_compact(content: &ItemContent) -> bool {
    matches!(
        content,
        ItemContent::ToolCall(_)
            | ItemContent::Thought { .. }
            | ItemContent::Request { .. }
            | ItemContent::Notice { .. }
    )
}

/// The blocks of an item. All but the last stay the same when the item grows.
pub(crate) fn item_blocks(item: &TranscriptItem, options: &ItemOptions) -> Vec<BlockSource> {
    let mut blocks = Vec::new();
    if options.has_gap {
        blocks.push(BlockSource::Gap);
    }
    match &item.content {
        ItemContent::Prompt { parts, .. } => {
            blocks.push(BlockSource::Header);
            message::add_plain_blocks(parts, &mut blocks);
        }
        ItemContent::Message { parts, is_late, .. } => {
            if *is_late {
                blocks.push(BlockSource::Header);
            }
            message::add_markdown_blocks(parts, &mut blocks);
        }
        ItemContent::Thought { parts, .. } => {
            blocks.push(BlockSource::Header);
            if options.is_expanded {
                message::add_markdown_blocks(parts, &mut blocks);
            }
        }
        ItemContent::ToolCall(call) => {
            blocks.push(BlockSource::Header);
            if options.is_expanded {
                call::add_body_blocks(call, &mut blocks);
            }
        }
        ItemContent::Notice { detail, .. } => {
            blocks.push(BlockSource::Header);
            if options.is_expanded {
                blocks.extend(output_ranges(detail).map(BlockSource::Output));
            }
        }
        ItemContent::Plan(_) => blocks.extend([BlockSource::Header, BlockSource::Content(0)]),
        ItemContent::Request(_) | ItemContent::TurnEnd(_) => blocks.push(BlockSource::Header),
    }
    blocks
}

/// The lines of a block.
pub(crate) fn render_block(
    item: &TranscriptItem,
    source: &BlockSource,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    match (source, &item.content) {
        (BlockSource::Gap, _) => vec![Line::default()],
        (BlockSource::Header, _) => render_header(item, options, theme),
        (BlockSource::Markdown { part, block }, content) => {
            let is_first = block.range.start == 0 && *part == 0;
            let is_continued = block.is_continued_line || !block.open_fence.is_empty();
            let lines = message::render_markdown_block(content, *part, block, options, theme);
            separate(lines, is_first || is_continued)
        }
        (BlockSource::Part { part, range }, content) => {
            message::render_part(content, *part, range.clone(), options, theme)
        }
        (BlockSource::Content(_), ItemContent::Plan(entries)) => {
            status::render_plan(entries, options.width, theme)
        }
        (source, ItemContent::ToolCall(call)) => call::render_body(call, source, options, theme),
        (BlockSource::Output(range), ItemContent::Notice { detail, .. }) => {
            indent_body(options, theme, |width| {
                render_terminal_output(&detail[range.clone()], width, theme)
            })
        }
        _ => Vec::new(),
    }
}

fn render_header(
    item: &TranscriptItem,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let width = options.width;
    match &item.content {
        ItemContent::Prompt { by, .. } => vec![message::prompt_header(by, item.turn, width, theme)],
        ItemContent::Message { .. } => {
            vec![Line::styled("after the end of the turn", theme.dim)]
        }
        ItemContent::Thought { parts, ended_at, .. } => {
            vec![message::thought_header(parts, ended_at.since(item.at), options, theme)]
        }
        ItemContent::ToolCall(call) => vec![call::header(call, item.at, options, theme)],
        ItemContent::Plan(entries) => vec![status::plan_header(entries, width, theme)],
        ItemContent::Request(request) => status::render_request(request, width, theme),
        ItemContent::Notice { level, text, detail } => {
            let style = match level {
                NoticeLevel::Info => theme.dim,
                NoticeLevel::Warning => theme.warning,
                NoticeLevel::Error => theme.error,
            };
            let more = match detail.lines().count() {
                0 => String::new(),
                _ if options.is_expanded => String::new(),
                1 => " (1 line)".to_owned(),
                count => format!(" ({count} lines)"),
            };
            let text = Span::styled(sanitize_line(text).into_owned(), style);
            wrap_line(Line::from(vec![text, Span::styled(more, theme.dim)]), width, 2)
        }
        ItemContent::TurnEnd(end) => status::render_turn_end(end, width, theme),
    }
}

/// How long an open call has been running, in whole seconds.
pub(crate) fn running_seconds(item: &TranscriptItem, now: Time) -> Option<u64> {
    let ItemContent::ToolCall(call) = &item.content else { return None };
    (!call.status.has_ended()).then(|| now.since(item.at) / 1000)
}

/// Puts a blank line before the lines, unless they are the first.
fn separate(mut lines: Vec<Line<'static>>, is_first: bool) -> Vec<Line<'static>> {
    if !is_first && !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

/// Lines of the body of an item, with a bar at their left.
fn indent_body(
    options: &ItemOptions,
    theme: &ViewTheme,
    render: impl FnOnce(u16) -> Vec<Line<'static>>,
) -> Vec<Line<'static>> {
    const BAR: &str = "│ ";
    let mut lines = render(options.width.saturating_sub(2).max(1));
    for it in &mut lines {
        it.spans.insert(0, Span::styled(BAR, theme.border));
    }
    lines
}

/// One line: the text as far as it fits, and behind it the longest of the suffixes that leaves room for the text.
fn fit_line(
    text: &str,
    style: Style,
    suffixes: &[String],
    width: u16,
    theme: &ViewTheme,
) -> Line<'static> {
    let width = usize::from(width);
    let text_width = crate::text::cell_width(text);
    let room = |suffix: &String| match crate::text::cell_width(suffix) {
        0 => Some(width),
        cells => width.checked_sub(cells + 2),
    };
    let fits = |suffix: &&String| room(suffix).is_some_and(|it| it >= text_width.min(width / 2));
    let suffix = suffixes.iter().find(fits).cloned().unwrap_or_default();
    let content = truncate_cells(text, room(&suffix).unwrap_or(width));
    let mut spans = vec![Span::styled(content, style)];
    if !suffix.is_empty() {
        spans.push(Span::styled(format!("  {suffix}"), theme.dim));
    }
    Line::from(spans)
}

/// Divides text of a program.
fn output_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        let limit = text.floor_char_boundary(start + OUTPUT_BLOCK_BYTES);
        let end = match text[start..limit].rfind('\n') {
            _ if limit == text.len() => limit,
            Some(newline) => start + newline + 1,
            None => limit,
        };
        let range = start..end;
        start = end;
        Some(range)
    })
}
