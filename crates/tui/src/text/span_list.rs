//! Spans of a line that is being built.

use ratatui::{style::Style, text::Span};

/// Spans in which neighbors have different styles.
#[derive(Debug, Default)]
pub(super) struct SpanList(Vec<Span<'static>>);

impl SpanList {
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.0.push(Span::styled(text.to_owned(), style)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<Span<'static>> {
        std::mem::take(&mut self.0)
    }
}
