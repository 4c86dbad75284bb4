//! One turn with its spans.

use crate::usage::{TokenCounts, UsageCost};
use serde::Serialize;
use utoipa::ToSchema;

/// The number of spans of one turn. Later ones are left out.
const SPANS_MAX: usize = 2000;
/// The length of a title. Longer ones are cut.
const TITLE_CHARS_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// The prompt waits for the turns before it.
    Queue,
    /// The agent has not sent anything and nothing runs.
    Model,
    Thinking,
    Text,
    Tool,
    /// A request waits for the user.
    Ask,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSpan {
    pub kind: SpanKind,
    /// The title of a tool call or of a request to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Milliseconds after the start of the turn; the time in the queue is before it.
    pub start_ms: i64,
    pub duration_ms: u64,
    /// The event in which the span begins.
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReportedTurnUsage {
    pub tokens: TokenCounts,
    pub cost: Option<UsageCost>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSpans {
    pub turn: u64,
    /// The client that sent the prompt.
    pub by: String,
    /// Milliseconds since the epoch.
    pub started_at: u64,
    /// Absent while the turn runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// The stop reason, `failed` or `interrupted`; absent while the turn runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub queued_ms: u64,
    pub spans: Vec<TurnSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReportedTurnUsage>,
}

/// The position and the time of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventMoment {
    pub(super) seq: u64,
    pub(super) at: u64,
}

impl TurnSpans {
    /// Milliseconds after the start of the turn.
    fn offset_of(&self, at: u64) -> i64 {
        i64::try_from(at.saturating_sub(self.started_at)).unwrap_or(i64::MAX)
    }

    pub(super) fn add_span(
        &mut self,
        kind: SpanKind,
        title: Option<&str>,
        start: EventMoment,
    ) -> Option<usize> {
        if SPANS_MAX <= self.spans.len() {
            return None;
        }
        let title = title.map(|it| it.chars().take(TITLE_CHARS_MAX).collect());
        let (start_ms, seq) = (self.offset_of(start.at), start.seq);
        self.spans.push(TurnSpan { kind, title, start_ms, duration_ms: 0, seq });
        Some(self.spans.len() - 1)
    }

    /// Adds the time in which the agent sent nothing and nothing ran.
    pub(super) fn add_wait(&mut self, from: EventMoment, to: EventMoment) {
        if from.at < to.at
            && let Some(span) = self.add_span(SpanKind::Model, None, from)
        {
            self.end_span(span, to.at);
        }
    }

    pub(super) fn end_span(&mut self, span: usize, at: u64) {
        let end_ms = self.offset_of(at);
        if let Some(span) = self.spans.get_mut(span) {
            span.duration_ms = u64::try_from(end_ms - span.start_ms).unwrap_or_default();
        }
    }
}
