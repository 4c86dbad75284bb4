//! The turns of a session as spans of time: waiting in the queue, for the model, for tools and for the user.

mod turn;

use crate::{
    timeline::{CompletionStatus, SessionTimeline, TimelineStep, TurnEnd},
    usage::TokenCounts,
};
use jackfield_events::{EventBody, ReceivedEvent, TurnStarted};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use turn::EventMoment;
pub use turn::{ReportedTurnUsage, SpanKind, TurnSpan, TurnSpans};

/// Builds the turns of a session from its events, and keeps the last ones.
#[derive(Debug)]
pub struct TurnSpansView {
    /// Only turns before this one.
    before: u64,
    turns_max: usize,
    turns: VecDeque<TurnSpans>,
    has_more: bool,
    timeline: SessionTimeline,
    /// The time and the event of each queued prompt.
    queued: BTreeMap<u64, EventMoment>,
    /// The last turn, unless it is not wanted.
    turn: Option<TurnSpans>,
    open: OpenSpans,
}

/// The spans of the last turn that have not ended, by their index.
#[derive(Debug, Default)]
struct OpenSpans {
    /// The text or thought whose chunks arrive.
    output: Option<usize>,
    calls: BTreeMap<String, usize>,
    asks: BTreeMap<u64, usize>,
    /// Since when the agent has sent nothing.
    idle_since: EventMoment,
}

impl TurnSpansView {
    /// Keeps the last `turns_max` turns before the turn `before`.
    pub fn new(before: Option<u64>, turns_max: usize) -> TurnSpansView {
        TurnSpansView {
            before: before.unwrap_or(u64::MAX),
            turns_max,
            turns: VecDeque::new(),
            has_more: false,
            timeline: SessionTimeline::default(),
            queued: BTreeMap::new(),
            turn: None,
            open: OpenSpans::default(),
        }
    }

    pub fn fold_event(&mut self, event: &ReceivedEvent) {
        let update = self.timeline.fold_event(event);
        let now = EventMoment { seq: update.seq, at: update.at };
        for entry in update.entries {
            self.fold_step(entry.step, event, now);
        }
        match &event.body {
            EventBody::Queued(queued) => _ = self.queued.insert(queued.prompt, now),
            EventBody::Withdrawn(withdrawn) => _ = self.queued.remove(&withdrawn.prompt),
            // The timeline has no requests without a tool call.
            EventBody::Asked(asked) => {
                let params = &asked.frame["params"];
                let title = params["toolCall"]["title"].as_str().or(params["message"].as_str());
                let span = self.begin_span(SpanKind::Ask, title, now);
                self.open.asks.extend(span.map(|it| (asked.ask, it)));
            }
            EventBody::Answered(answered) => {
                let span = self.open.asks.remove(&answered.ask);
                self.end_span(span, now);
            }
            _ => {}
        }
    }

    /// The turns in ascending order, and whether there are earlier ones.
    pub fn finish(mut self) -> (Vec<TurnSpans>, bool) {
        self.keep_turn();
        (self.turns.into(), self.has_more)
    }

    fn fold_step(&mut self, step: TimelineStep, event: &ReceivedEvent, now: EventMoment) {
        match step {
            TimelineStep::TurnStarted { .. } => {
                if let EventBody::Prompted(started) = &event.body {
                    self.start_turn(started, now);
                }
            }
            TimelineStep::Text { .. } | TimelineStep::Block(_) => {
                self.add_output(SpanKind::Text, now);
            }
            TimelineStep::Thought { .. } => self.add_output(SpanKind::Thinking, now),
            TimelineStep::CallStarted(call) => {
                let title = if call.title.is_empty() { &call.name } else { &call.title };
                let span = self.begin_span(SpanKind::Tool, Some(title), now);
                self.open.calls.extend(span.map(|it| (call.id.clone(), it)));
            }
            TimelineStep::CallEnded { id, .. } => {
                let span = self.open.calls.remove(&id);
                self.end_span(span, now);
            }
            TimelineStep::TurnEnded { end, .. } => self.end_turn(*end, now),
            _ => {}
        }
    }

    fn start_turn(&mut self, started: &TurnStarted<Value>, now: EventMoment) {
        self.keep_turn();
        self.open = OpenSpans { idle_since: now, ..OpenSpans::default() };
        let queued = started.prompt.and_then(|it| self.queued.remove(&it));
        if self.before <= started.turn {
            return;
        }
        let queued_ms = queued.map_or(0, |it| now.at.saturating_sub(it.at));
        let queue = queued.filter(|_| 0 < queued_ms).map(|it| TurnSpan {
            kind: SpanKind::Queue,
            title: None,
            start_ms: -i64::try_from(queued_ms).unwrap_or(i64::MAX),
            duration_ms: queued_ms,
            seq: it.seq,
        });
        self.turn = Some(TurnSpans {
            turn: started.turn,
            by: started.by.to_string(),
            started_at: now.at,
            ended_at: None,
            outcome: None,
            queued_ms,
            spans: queue.into_iter().collect(),
            usage: None,
        });
    }

    /// Keeps the last turn, and forgets the first one if there are too many.
    fn keep_turn(&mut self) {
        self.turns.extend(self.turn.take());
        while self.turns_max < self.turns.len() {
            self.turns.pop_front();
            self.has_more = true;
        }
    }

    fn end_turn(&mut self, end: TurnEnd, now: EventMoment) {
        let open = std::mem::take(&mut self.open);
        let is_idle = open.calls.is_empty() && open.asks.is_empty();
        // A turn that was ended later has the time of its last event.
        let ms = end.ms.unwrap_or_default();
        let Some(turn) = self.turn.as_mut().filter(|it| it.ended_at.is_none()) else { return };
        let ended = EventMoment { at: turn.started_at.saturating_add(ms).min(now.at), ..now };
        for span in open.calls.values().chain(open.asks.values()) {
            turn.end_span(*span, ended.at);
        }
        if is_idle {
            turn.add_wait(open.idle_since, ended);
        }
        turn.ended_at = Some(ended.at);
        let outcome = match (&end.summary.stop_reason, end.summary.status) {
            (Some(reason), _) => reason,
            (None, CompletionStatus::Completed) => "end_turn",
            (None, CompletionStatus::Failed) => "failed",
            (None, CompletionStatus::Cancelled) => "cancelled",
        };
        turn.outcome = Some(outcome.to_owned());
        let is_known = end.tokens != TokenCounts::default() || end.cost.is_some();
        turn.usage = is_known.then_some(ReportedTurnUsage { tokens: end.tokens, cost: end.cost });
    }

    /// A chunk of a text or a thought arrived.
    fn add_output(&mut self, kind: SpanKind, now: EventMoment) {
        let Some(turn) = self.turn.as_mut().filter(|it| it.ended_at.is_none()) else { return };
        let last = self.open.output.filter(|it| turn.spans[*it].kind == kind);
        if let Some(last) = last {
            turn.end_span(last, now.at);
        } else {
            self.open.output = self.begin_span(kind, None, now);
        }
        self.open.idle_since = now;
    }

    /// Begins a span, after the time in which the agent sent nothing. Returns its index.
    fn begin_span(
        &mut self,
        kind: SpanKind,
        title: Option<&str>,
        now: EventMoment,
    ) -> Option<usize> {
        let turn = self.turn.as_mut().filter(|it| it.ended_at.is_none())?;
        if self.open.calls.is_empty() && self.open.asks.is_empty() {
            turn.add_wait(self.open.idle_since, now);
        }
        self.open.output = None;
        self.open.idle_since = now;
        turn.add_span(kind, title, now)
    }

    fn end_span(&mut self, span: Option<usize>, now: EventMoment) {
        if let (Some(span), Some(turn)) = (span, self.turn.as_mut()) {
            turn.end_span(span, now.at);
            self.open.idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::build_event;
    use serde_json::json;

    fn update(seq: u64, at: u64, turn: u64, update: &Value) -> Value {
        let frame = json!({ "method": "session/update", "params": { "update": update } });
        json!({ "seq": seq, "at": at, "is": "said", "turn": turn, "frame": frame })
    }

    fn chunk(seq: u64, at: u64, kind: &str) -> Value {
        let content = json!({ "type": "text", "text": "x" });
        update(seq, at, 1, &json!({ "sessionUpdate": kind, "content": content }))
    }

    /// A turn that waits in the queue, thinks, runs a tool that asks, and answers.
    fn events() -> Vec<Value> {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Run it",
                           "kind": "execute", "status": "in_progress", "rawInput": { "command": "x" } });
        let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed" });
        let ask = json!({ "method": "session/request_permission", "params": {
            "toolCall": { "toolCallId": "c1", "title": "Run it" }, "options": [] } });
        vec![
            json!({ "seq": 1, "at": 0, "is": "opened" }),
            json!({ "seq": 2, "at": 500, "is": "queued", "prompt": 1 }),
            json!({ "seq": 3, "at": 1000, "is": "prompted", "turn": 1, "by": "editor", "prompt": 1 }),
            chunk(4, 1100, "agent_thought_chunk"),
            chunk(5, 1200, "agent_thought_chunk"),
            update(6, 1300, 1, &call),
            json!({ "seq": 7, "at": 1400, "is": "asked", "ask": 1, "frame": ask }),
            json!({ "seq": 8, "at": 1900, "is": "answered", "ask": 1, "answer": { "result": {} } }),
            update(9, 2500, 1, &done),
            chunk(10, 2700, "agent_message_chunk"),
            chunk(11, 2800, "agent_message_chunk"),
            json!({ "seq": 12, "at": 3000, "is": "ended", "turn": 1,
                    "answer": { "stopReason": "end_turn", "usage": { "totalTokens": 7 } } }),
        ]
    }

    fn fold(events: &[Value], before: Option<u64>, max: usize) -> (Vec<TurnSpans>, bool) {
        let mut view = TurnSpansView::new(before, max);
        for event in events {
            view.fold_event(&build_event(event));
        }
        view.finish()
    }

    #[test]
    fn turn_consists_of_spans_of_waiting_thinking_tools_and_text() {
        let (turns, has_more) = fold(&events(), None, 5);
        let [turn] = &turns[..] else { panic!("{turns:?}") };
        assert_eq!((turn.turn, &*turn.by, turn.queued_ms, has_more), (1, "editor", 500, false));
        assert_eq!((turn.started_at, turn.ended_at), (1000, Some(3000)));
        assert_eq!(turn.outcome.as_deref(), Some("end_turn"));
        assert_eq!(turn.usage.as_ref().unwrap().tokens.total, Some(7));
        let spans: Vec<_> =
            turn.spans.iter().map(|it| (it.kind, it.start_ms, it.duration_ms, it.seq)).collect();
        let expected = [
            (SpanKind::Queue, -500, 500, 2),
            (SpanKind::Model, 0, 100, 3),
            (SpanKind::Thinking, 100, 100, 4),
            (SpanKind::Model, 200, 100, 5),
            (SpanKind::Tool, 300, 1200, 6),
            (SpanKind::Ask, 400, 500, 7),
            (SpanKind::Model, 1500, 200, 9),
            (SpanKind::Text, 1700, 100, 10),
            (SpanKind::Model, 1800, 200, 11),
        ];
        assert_eq!(spans, expected);
        assert_eq!(turn.spans[4].title.as_deref(), Some("Run it"));
    }

    #[test]
    fn last_turns_are_kept_and_a_running_one_has_no_end() {
        let turn = |turn: u64| {
            let at = turn * 100;
            let answer = json!({ "stopReason": "end_turn" });
            [
                json!({ "seq": 2 * turn, "at": at, "is": "prompted", "turn": turn }),
                json!({ "seq": 2 * turn + 1, "at": at + 1, "is": "ended", "turn": turn, "answer": answer }),
            ]
        };
        let opened = [json!({ "seq": 1, "is": "opened" })];
        let mut events: Vec<Value> = opened.into_iter().chain((1..=4).flat_map(turn)).collect();
        events.pop();
        let numbers = |before, max| {
            let (turns, has_more) = fold(&events, before, max);
            (turns.iter().map(|it| it.turn).collect::<Vec<_>>(), has_more)
        };
        assert_eq!(numbers(None, 2), (vec![3, 4], true));
        assert_eq!(numbers(Some(3), 2), (vec![1, 2], false));
        assert_eq!(numbers(Some(1), 2), (vec![], false));
        assert_eq!(fold(&events, None, 1).0[0].ended_at, None);
    }
}
