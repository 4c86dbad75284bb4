//! Tool calls: one line, and behind it the input, the output and the changed files.

use super::{BlockSource, ItemOptions, fit_line, indent_body, message, output_ranges};
use crate::{
    text::{
        ViewTheme, format_duration, highlight_code, render_diff, render_json, render_markdown,
        render_terminal_output, sanitize_line, wrap_line,
    },
    transcript::{ToolCallItem, ToolOutput, ToolStatus},
};
use jackfield_events::Time;
use ratatui::text::{Line, Span};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Changes of larger files are not counted.
const COUNTED_BYTES_MAX: usize = 200_000;
/// Output that is Markdown is rendered as such up to this length.
const MARKDOWN_BYTES_MAX: usize = 20_000;
const LOCATIONS_MAX: usize = 20;

pub(super) fn has_body(call: &ToolCallItem) -> bool {
    !call.output.is_empty()
        || !call.raw_output.is_null()
        || !call.terminal_output.is_empty()
        || !call.locations.is_empty()
        || has_input(call)
}

fn has_input(call: &ToolCallItem) -> bool {
    match &call.input {
        Value::Null | Value::Bool(_) => false,
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

pub(super) fn header(
    call: &ToolCallItem,
    at: Time,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Line<'static> {
    let titles = [call.title.trim(), &call.kind, "Tool call"];
    let title = titles.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let (word, style) = match call.status {
        ToolStatus::Pending => ("waiting", theme.text),
        ToolStatus::Running => ("running", theme.working),
        ToolStatus::Done => ("", theme.text),
        ToolStatus::Failed => ("failed", theme.error),
        ToolStatus::Cancelled => ("cancelled", theme.dim),
        ToolStatus::Unfinished => ("no result", theme.warning),
    };
    let duration = match (options.running_s, call.ended_at) {
        (Some(seconds), _) if seconds > 0 => format!("{seconds} s"),
        (None, Some(ended)) if ended.since(at) >= 100 => format_duration(ended.since(at)),
        _ => String::new(),
    };
    let state = join_parts(&[word, &duration], " ");
    let changes = match diff_counts(call) {
        Some((added, removed)) => format!("+{added} −{removed}"),
        None => String::new(),
    };
    let is_named = call.kind.is_empty() || call.kind == "other" || call.kind == title;
    let kind = sanitize_line(if is_named { "" } else { &call.kind });
    let suffixes = [
        join_parts(&[kind.trim(), &changes, &state], " · "),
        join_parts(&[&changes, &state], " · "),
        state,
    ];
    let indent = if call.parent_id.is_empty() { "" } else { "  " };
    let title = format!("{indent}{}", sanitize_line(title).trim());
    fit_line(&title, style, &suffixes, options.width, theme)
}

fn join_parts(parts: &[&str], separator: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    parts.join(separator)
}

/// How many lines the diffs of a call add and remove.
fn diff_counts(call: &ToolCallItem) -> Option<(usize, usize)> {
    let mut counts = None;
    for it in &call.output {
        let ToolOutput::Diff { old, new, .. } = it else { continue };
        let old = old.as_deref().unwrap_or_default();
        if old.len() + new.len() > COUNTED_BYTES_MAX {
            return None;
        }
        let (added, removed) = counts.get_or_insert((0, 0));
        for it in TextDiff::from_lines(old, new).iter_all_changes() {
            match it.tag() {
                ChangeTag::Insert => *added += 1,
                ChangeTag::Delete => *removed += 1,
                ChangeTag::Equal => {}
            }
        }
    }
    counts
}

pub(super) fn add_body_blocks(call: &ToolCallItem, blocks: &mut Vec<BlockSource>) {
    // The input of an edit is the difference once more.
    if has_input(call) && !call.has_diffs() {
        blocks.push(BlockSource::Input);
    }
    for (index, it) in call.output.iter().enumerate() {
        if !matches!(it, ToolOutput::Text(_)) {
            blocks.push(BlockSource::Content(index));
        }
    }
    let output = call.output_text();
    if is_markdown(&output) {
        blocks.push(BlockSource::Output(0..output.len()));
    } else {
        blocks.extend(output_ranges(&output).map(BlockSource::Output));
    }
    if !call.locations.is_empty() && !call.has_diffs() {
        blocks.push(BlockSource::Locations);
    }
}

fn is_markdown(output: &str) -> bool {
    output.len() < MARKDOWN_BYTES_MAX && output.trim_start().starts_with("```")
}

pub(super) fn render_body(
    call: &ToolCallItem,
    source: &BlockSource,
    options: &ItemOptions,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    indent_body(options, theme, |width| match source {
        BlockSource::Input => render_input(call, width, theme),
        BlockSource::Content(index) => match call.output.get(*index) {
            Some(ToolOutput::Diff { path, old, new }) => {
                render_diff(path, old.as_deref(), new, width, theme)
            }
            Some(ToolOutput::Media(part)) => {
                wrap_line(message::describe_part(part, theme), width, 2)
            }
            _ => Vec::new(),
        },
        BlockSource::Output(range) => {
            let output = call.output_text();
            let Some(text) = output.get(range.clone()) else { return Vec::new() };
            if is_markdown(&output) {
                render_markdown(text, width, theme)
            } else {
                render_terminal_output(text, width, theme)
            }
        }
        BlockSource::Locations => render_locations(call, width, theme),
        _ => Vec::new(),
    })
}

fn render_input(call: &ToolCallItem, width: u16, theme: &ViewTheme) -> Vec<Line<'static>> {
    if let Some(command) = call.command() {
        let mut lines = highlight_code("bash", &command, theme);
        if let Some(first) = lines.first_mut() {
            first.spans.insert(0, Span::styled("$ ", theme.dim));
        }
        return lines.into_iter().flat_map(|it| wrap_line(it, width, 2)).collect();
    }
    match &call.input {
        Value::String(text) => render_terminal_output(text, width, theme),
        input => render_json(input, width, theme),
    }
}

fn render_locations(call: &ToolCallItem, width: u16, theme: &ViewTheme) -> Vec<Line<'static>> {
    let line = |(path, line): &(String, Option<u64>)| {
        let line = line.map(|it| format!(":{it}")).unwrap_or_default();
        wrap_line(Line::styled(format!("{}{line}", sanitize_line(path)), theme.dim), width, 2)
    };
    let mut lines: Vec<_> = call.locations.iter().take(LOCATIONS_MAX).flat_map(line).collect();
    if let Some(more) = call.locations.len().checked_sub(LOCATIONS_MAX).filter(|it| *it > 0) {
        lines.push(Line::styled(format!("and {more} more"), theme.dim));
    }
    lines
}
