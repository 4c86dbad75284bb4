//! The fold from events of the log to envelopes.

use super::{
    Envelope, EnvelopeEvent, EnvelopeRole, EnvelopeUsage, PermissionChoice, TurnStatus, block, cuid,
};
use crate::timeline::{
    CompletionStatus, PermissionRequest, SessionTimeline, TimelineEntry, TimelineStep,
    ToolCallStart, TurnEnd,
};
use crate::usage::{ContextUsage, TokenCounts};
use jackfield_events::ReceivedEvent;
use serde_json::Value;

/// Folds the events of one session in order, starting at any event.
#[derive(Debug)]
pub struct EnvelopeView {
    session: String,
    timeline: SessionTimeline,
    /// The time of the last envelope.
    time: u64,
    /// The text that may still grow, if chunks are joined.
    pending_text: Option<PendingText>,
    joins_chunks: bool,
    has_additions: bool,
}

/// The joined chunks of one text.
#[derive(Debug)]
struct PendingText {
    turn: Option<u64>,
    thinking: bool,
    message: Option<String>,
    text: String,
    /// The sequence number of the first chunk, and the time of the last.
    seq: u64,
    at: u64,
}

/// A chunk of text.
#[derive(Debug)]
struct TextChunk {
    thinking: bool,
    message: Option<String>,
    text: String,
}

/// The event that an envelope is derived from.
#[derive(Debug, Clone, Copy)]
struct EnvelopeSource {
    seq: u64,
    at: u64,
    turn: Option<u64>,
}

/// The largest integer that JavaScript represents exactly. A nonsensical time must leave room for the next one.
const TIME_MAX: u64 = 1 << 53;

impl EnvelopeView {
    /// A view with one envelope per chunk of text, in the vocabulary of the protocol.
    pub fn new(session: &str) -> EnvelopeView {
        EnvelopeView {
            session: session.to_owned(),
            timeline: SessionTimeline::default(),
            time: 0,
            pending_text: None,
            joins_chunks: false,
            has_additions: false,
        }
    }

    /// The same view with the additions to the protocol.
    #[must_use]
    pub fn with_additions(self) -> EnvelopeView {
        EnvelopeView { has_additions: true, ..self }
    }

    /// A view with one envelope per text. Chunks are joined until the agent switches between text and
    /// reasoning, starts another message, calls a tool, or ends its turn. Line breaks at both ends are
    /// removed, and a text that consists of nothing else is left out. A text that may still grow is not
    /// returned before [`EnvelopeView::finish`].
    pub fn joining_chunks(session: &str) -> EnvelopeView {
        EnvelopeView { joins_chunks: true, ..EnvelopeView::new(session) }
    }

    pub fn fold_event(&mut self, event: &ReceivedEvent) -> Vec<Envelope> {
        let update = self.timeline.fold_event(event);
        let mut envelopes = Vec::new();
        for TimelineEntry { turn, step } in update.entries {
            let source = EnvelopeSource { seq: update.seq, at: update.at, turn };
            self.on_step(source, step, &mut envelopes);
        }
        envelopes
    }

    /// Returns the pending text at the end of the log.
    pub fn finish(&mut self) -> Vec<Envelope> {
        let mut envelopes = Vec::new();
        self.flush_text(&mut envelopes);
        envelopes
    }

    fn on_step(&mut self, source: EnvelopeSource, step: TimelineStep, out: &mut Vec<Envelope>) {
        match step {
            TimelineStep::Text { text, message, .. } => {
                return self.on_text(source, TextChunk { thinking: false, message, text }, out);
            }
            TimelineStep::Thought { text, message, .. } => {
                return self.on_text(source, TextChunk { thinking: true, message, text }, out);
            }
            // These are about the session and do not interrupt a text.
            TimelineStep::AgentReady { .. }
            | TimelineStep::ModelChanged(_)
            | TimelineStep::ModeChanged(_)
            | TimelineStep::OptionsChanged(_)
            | TimelineStep::Plan(_)
            | TimelineStep::Unmapped(_) => return,
            TimelineStep::PermissionRequested(_) | TimelineStep::PermissionAnswered { .. }
                if !self.has_additions =>
            {
                return;
            }
            TimelineStep::Note { ref label, .. } if label != "question" => return,
            _ => self.flush_text(out),
        }
        match step {
            TimelineStep::TurnStarted { prompt } => {
                for (index, block) in prompt.iter().enumerate() {
                    let prompt_source = EnvelopeSource { turn: None, ..source };
                    self.push_block(prompt_source, EnvelopeRole::User, index, block, out);
                }
                let ev = EnvelopeEvent::TurnStart;
                out.push(self.envelope(source, EnvelopeRole::Agent, "turn-start", ev));
            }
            TimelineStep::TurnEnded { end, context } => {
                out.push(self.turn_end(source, *end, context));
            }
            TimelineStep::Block(block) => {
                self.push_block(source, EnvelopeRole::Agent, 0, &block, out);
            }
            TimelineStep::CallStarted(call) => out.push(self.call_start(source, *call)),
            TimelineStep::CallEnded { id, parent, .. } => {
                let ev = EnvelopeEvent::ToolCallEnd { call: self.call_id(&id) };
                let label = format!("tool-call-end {id}");
                let ended = self.envelope(source, EnvelopeRole::Agent, &label, ev);
                out.push(self.with_subagent(ended, parent.as_deref()));
            }
            TimelineStep::PermissionRequested(request) => {
                out.push(self.permission_request(source, *request));
            }
            TimelineStep::PermissionAnswered { ask, call, option, by } => {
                let call = call.map(|it| self.call_id(&it));
                let ev = EnvelopeEvent::PermissionResponse { ask, call, option, by };
                out.push(self.envelope(source, EnvelopeRole::User, "permission-response", ev));
            }
            TimelineStep::Note { detail: Some(text), .. } => {
                let ev = EnvelopeEvent::Service { text };
                out.push(self.envelope(source, EnvelopeRole::Agent, "service", ev));
            }
            _ => {}
        }
    }

    fn on_text(&mut self, source: EnvelopeSource, chunk: TextChunk, out: &mut Vec<Envelope>) {
        let TextChunk { thinking, message, text } = chunk;
        if !self.joins_chunks {
            let ev = EnvelopeEvent::Text { text, thinking };
            out.push(self.envelope(source, EnvelopeRole::Agent, "text", ev));
            return;
        }
        if let Some(pending) = &mut self.pending_text
            && (pending.turn, pending.thinking, &pending.message)
                == (source.turn, thinking, &message)
        {
            pending.text.push_str(&text);
            pending.at = source.at;
            return;
        }
        self.flush_text(out);
        let EnvelopeSource { seq, at, turn } = source;
        self.pending_text = Some(PendingText { turn, thinking, message, text, seq, at });
    }

    fn flush_text(&mut self, out: &mut Vec<Envelope>) {
        let Some(pending) = self.pending_text.take() else { return };
        let text = pending.text.trim_matches('\n');
        if text.is_empty() {
            return;
        }
        let source = EnvelopeSource { seq: pending.seq, at: pending.at, turn: pending.turn };
        let ev = EnvelopeEvent::Text { text: text.to_owned(), thinking: pending.thinking };
        // The label differs from that of a single chunk, so the joined text has an id of its own.
        out.push(self.envelope(source, EnvelopeRole::Agent, "whole text", ev));
    }

    fn push_block(
        &mut self,
        source: EnvelopeSource,
        role: EnvelopeRole,
        index: usize,
        block: &Value,
        out: &mut Vec<Envelope>,
    ) {
        let position = format!("{}/{}/{index}", self.session, source.seq);
        if let Some(mut ev) = block::block_event(block, &position) {
            if let EnvelopeEvent::File { mime_type, .. } = &mut ev
                && !self.has_additions
            {
                *mime_type = None;
            }
            out.push(self.envelope(source, role, &format!("block {index}"), ev));
        }
    }

    fn call_start(&mut self, source: EnvelopeSource, call: ToolCallStart) -> Envelope {
        let title = if call.title.is_empty() { call.name.clone() } else { call.title };
        let description = call.input.get("description").and_then(Value::as_str);
        let description = description.filter(|it| !it.is_empty()).map(str::to_owned);
        let description = description.unwrap_or_else(|| format!("Running {}", call.name));
        let label = format!("tool-call-start {}", call.id);
        let ev = EnvelopeEvent::ToolCallStart {
            call: self.call_id(&call.id),
            name: call.name,
            title,
            description,
            args: call.input,
        };
        let started = self.envelope(source, EnvelopeRole::Agent, &label, ev);
        self.with_subagent(started, call.parent.as_deref())
    }

    fn permission_request(
        &mut self,
        source: EnvelopeSource,
        request: PermissionRequest,
    ) -> Envelope {
        let choice = |it: &Value| {
            let member = |name: &str| it[name].as_str().map(str::to_owned);
            let (id, name) = (member("optionId")?, member("name"));
            let name = name.unwrap_or_else(|| id.clone());
            Some(PermissionChoice { name, id, kind: member("kind") })
        };
        let ev = EnvelopeEvent::PermissionRequest {
            ask: request.ask,
            call: self.call_id(&request.call.id),
            name: request.call.name,
            title: request.call.title,
            args: request.call.input,
            options: request.options.iter().filter_map(choice).collect(),
        };
        self.envelope(source, EnvelopeRole::Agent, "permission-request", ev)
    }

    fn turn_end(
        &mut self,
        source: EnvelopeSource,
        end: TurnEnd,
        context: Option<ContextUsage>,
    ) -> Envelope {
        let status = match end.summary.status {
            CompletionStatus::Completed => TurnStatus::Completed,
            CompletionStatus::Failed => TurnStatus::Failed,
            CompletionStatus::Cancelled => TurnStatus::Cancelled,
        };
        let error = end.summary.failure.filter(|_| self.has_additions).map(|it| it.message);
        let ev = EnvelopeEvent::TurnEnd { status, error };
        // One event may end a turn and start the next, if the log has no end of the first.
        let label = format!("turn-end {}", source.turn.unwrap_or(0));
        let envelope = self.envelope(source, EnvelopeRole::Agent, &label, ev);
        let usage = envelope_usage(&end.tokens, context).filter(|_| self.has_additions);
        Envelope { usage, ..envelope }
    }

    fn envelope(
        &mut self,
        source: EnvelopeSource,
        role: EnvelopeRole,
        label: &str,
        ev: EnvelopeEvent,
    ) -> Envelope {
        self.time = self.time.saturating_add(1).max(source.at.min(TIME_MAX));
        let seq = source.seq.to_string();
        let id = cuid::derive_id(&["envelope", &self.session, &seq, label]);
        let turn = source.turn.map(|it| self.derive_id("turn", &it.to_string()));
        Envelope { id, time: self.time, role, turn, subagent: None, usage: None, ev }
    }

    fn with_subagent(&self, envelope: Envelope, parent: Option<&str>) -> Envelope {
        Envelope { subagent: parent.map(|it| self.derive_id("subagent", it)), ..envelope }
    }

    fn call_id(&self, id: &str) -> String {
        self.derive_id("call", id)
    }

    fn derive_id(&self, kind: &str, name: &str) -> String {
        cuid::derive_id(&[kind, &self.session, name])
    }
}

fn envelope_usage(tokens: &TokenCounts, context: Option<ContextUsage>) -> Option<EnvelopeUsage> {
    Some(EnvelopeUsage {
        input_tokens: tokens.input?,
        output_tokens: tokens.output?,
        cache_creation_input_tokens: tokens.cached_write,
        cache_read_input_tokens: tokens.cached_read,
        context_window: context.and_then(|it| it.size).filter(|it| *it != 0),
        thought_tokens: tokens.thought,
        total_tokens: tokens.total,
    })
}
