//! The marks in the left column: what kind of item begins there, and how it ended.

use crate::{
    text::ViewTheme,
    transcript::{ItemContent, NoticeLevel, ToolStatus},
};
use ratatui::style::Style;

/// The mark before the first line of an item.
pub(crate) fn item_mark(content: &ItemContent, theme: &ViewTheme) -> (&'static str, Style) {
    match content {
        ItemContent::Prompt { .. } => ("›", theme.accent),
        ItemContent::Message { .. } => (" ", theme.text),
        ItemContent::Thought { .. } => ("·", theme.dim),
        ItemContent::Plan(_) => ("≡", theme.accent),
        ItemContent::TurnEnd(_) => ("─", theme.dim),
        ItemContent::Request(request) if request.answer.is_none() => ("?", theme.needs_user),
        ItemContent::Request(_) => ("?", theme.dim),
        ItemContent::Notice { level, .. } => match level {
            NoticeLevel::Info => ("·", theme.dim),
            NoticeLevel::Warning => ("!", theme.warning),
            NoticeLevel::Error => ("!", theme.error),
        },
        ItemContent::ToolCall(call) => match call.status {
            ToolStatus::Pending => ("○", theme.dim),
            ToolStatus::Running => ("●", theme.working),
            ToolStatus::Done => ("✓", theme.success),
            ToolStatus::Failed => ("✗", theme.error),
            ToolStatus::Cancelled => ("–", theme.dim),
            ToolStatus::Unfinished => ("?", theme.warning),
        },
    }
}
