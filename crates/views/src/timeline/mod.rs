//! The timeline of a session: turns, text, tool calls and permission requests, each started and ended
//! once. The views render the timeline in their own formats; the meaning of an event is decided here.
//!
//! **Invariant:** an event is applied once. Folding an earlier event again changes nothing.
//!
//! **Invariant:** a reader that starts in the middle of a turn gets nothing that a reader from the
//! beginning does not get, except for tool calls that started before. From the next turn on both get the
//! same. What cannot be known in the middle (was there a thought before this one, was this call reported?)
//! is therefore treated as reported.

mod agent_update;
mod content;
mod step;
mod tool_call;
mod tool_calls;
mod tool_name;
mod turn_summary;

pub(crate) use content::content_text;
pub(crate) use step::{PermissionRequest, TimelineEntry, TimelineStep, TimelineUpdate, TurnEnd};
pub(crate) use tool_call::ToolCallStart;
pub(crate) use turn_summary::{CompletionStatus, TurnSummary};

use crate::{
    current_model::find_current_model,
    usage::{SessionUsage, TurnUsageRow},
};
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, RestoreStep, ServedOutcome, SettingChanged, TurnEnded,
    TurnStarted, UnaskedCall, UserAnswered, UserAsked,
};
use jackfield_protocol::acp::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use tool_calls::TimelineToolCalls;

/// The state of the fold. It may start at any event.
#[derive(Debug, Default)]
pub(crate) struct SessionTimeline {
    /// The sequence number of the last folded event.
    seq: Option<u64>,
    turn: TurnState,
    /// When the turn started, until its first text.
    waiting_since: Option<u64>,
    last_output: LastOutput,
    calls: TimelineToolCalls,
    /// Open permission requests, and the call of each.
    open_requests: BTreeMap<u64, String>,
    model: Option<String>,
    usage: SessionUsage,
    /// The cost of the session at the start of the turn is known, so the cost of the turn is too.
    is_cost_known: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum TurnState {
    /// The reader started in the middle and has not seen an event of a turn.
    #[default]
    Unknown,
    Open(u64),
    Ended(u64),
}

/// What the agent sent last in its turn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LastOutput {
    #[default]
    Unknown,
    Nothing,
    Text,
    Thought,
}

impl SessionTimeline {
    /// Folds the next event and returns its steps.
    pub(crate) fn fold_event(&mut self, event: &ReceivedEvent) -> TimelineUpdate {
        // Events that are read from a file have no position: they start at the first one.
        let next = || self.seq.map_or(1, |it| it.saturating_add(1));
        let seq = event.seq.map_or_else(next, |it| it.0);
        let mut out = TimelineUpdate::new(seq, event.at.0);
        if self.seq.is_some_and(|it| seq <= it) {
            return out;
        }
        if self.seq.is_none() && seq == 1 {
            self.start_session();
        }
        self.seq = Some(seq);
        self.usage.mark_activity(event);
        self.fold_body(event, &mut out);
        out
    }

    /// The model in use, if the agent has reported it.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Sets the state before the first event of a session.
    fn start_session(&mut self) {
        self.turn = TurnState::Ended(0);
        self.last_output = LastOutput::Nothing;
        self.calls.start_turn();
        self.is_cost_known = true;
    }

    fn fold_body(&mut self, event: &ReceivedEvent, out: &mut TimelineUpdate) {
        match &event.body {
            EventBody::Opened(opened) => self.on_agent_ready(None, &opened.setup, out),
            EventBody::Bound(bound) => self.on_agent_ready(Some(bound.restore), &bound.setup, out),
            EventBody::Prompted(started) => self.on_turn_started(started, event, out),
            EventBody::Said(message) => self.on_message(message, event, out),
            EventBody::Ended(ended) => self.on_turn_ended(ended, event, out),
            EventBody::Asked(asked) => self.on_asked(asked, out),
            EventBody::Answered(answered) => self.on_answered(answered, out),
            EventBody::Configured(changed) => self.on_configured(changed, out),
            EventBody::Cancelled(cancelled) => {
                let since = self.usage.turns.last().and_then(|it| it.began_at);
                let ms = since.map(|it| out.at.saturating_sub(it));
                let step = TimelineStep::note("cancelling", None, ms);
                out.push_in_turn(Some(cancelled.turn), step);
            }
            EventBody::Gone(exited) => self.on_agent_stopped("gone", Some(&exited.status), out),
            EventBody::Slept(suspended) => {
                self.on_agent_stopped("asleep", Some(&suspended.why), out);
            }
            EventBody::Closed => self.on_agent_stopped("closed", None, out),
            // The process on the other host has ended; a separate event ends the turn.
            EventBody::Moved(moved) => self.on_agent_stopped("moved", Some(&moved.why), out),
            EventBody::Queued(_) => out.push_step(TimelineStep::note("queued", None, None)),
            EventBody::Withdrawn(withdrawn) => {
                out.push_step(TimelineStep::note("withdrawn", Some(&withdrawn.why), None));
            }
            EventBody::Quiet(quiet) => {
                let ms = out.at.saturating_sub(quiet.since.0);
                out.push_step(TimelineStep::note("quiet", Some(&quiet.waits), Some(ms)));
            }
            EventBody::Unasked(UnaskedCall { call }) => {
                let title = call["title"].as_str().or(call["tool"].as_str());
                out.push_step(TimelineStep::note("unasked", title, None));
            }
            EventBody::Served(served) => {
                if let ServedOutcome::Denied(why) = &served.outcome {
                    out.push_step(TimelineStep::note("denied", Some(why), None));
                }
            }
            // These are not about the work of the agent.
            EventBody::Forked(_)
            | EventBody::Imported(_)
            | EventBody::Learned(_)
            | EventBody::LeftOut(_)
            | EventBody::Refused(_)
            | EventBody::Sandboxed(_)
            | EventBody::HostRefused(_)
            | EventBody::Reordered(_) => {}
        }
    }

    fn on_agent_ready(
        &mut self,
        restored_by: Option<RestoreStep>,
        setup: &Value,
        out: &mut TimelineUpdate,
    ) {
        if restored_by == Some(RestoreStep::Failed) {
            let detail = Some("the session could not be restored");
            return out.push_step(TimelineStep::note("failed", detail, None));
        }
        let model = find_current_model(setup);
        let restored_by = restored_by.map(|it| it.as_str().to_owned());
        out.push_step(TimelineStep::AgentReady { restored_by, model: model.clone() });
        if let Some(model) = model {
            self.set_model(model, out);
        }
    }

    fn set_model(&mut self, model: String, out: &mut TimelineUpdate) {
        out.push_step(TimelineStep::ModelChanged(model.clone()));
        self.model = Some(model);
    }

    fn on_turn_started(
        &mut self,
        started: &TurnStarted<Value>,
        event: &ReceivedEvent,
        out: &mut TimelineUpdate,
    ) {
        let turn = started.turn;
        match self.turn {
            TurnState::Open(open) if open == turn => return,
            // Turns do not nest, so the open turn has ended although its end is not in the log.
            TurnState::Open(open) => self.end_turn(open, TurnSummary::without_end(), out),
            TurnState::Ended(_) | TurnState::Unknown => self.close_calls(None, out),
        }
        self.is_cost_known |= self.usage.cost.is_some();
        self.usage.turns.clear();
        self.usage.fold_event(event);
        self.turn = TurnState::Open(turn);
        self.waiting_since = Some(out.at);
        self.last_output = LastOutput::Nothing;
        self.calls.start_turn();
        let prompt = started.frame["params"]["prompt"].as_array().cloned().unwrap_or_default();
        out.push_in_turn(Some(turn), TimelineStep::TurnStarted { prompt });
    }

    fn on_turn_ended(
        &mut self,
        ended: &TurnEnded<Value>,
        event: &ReceivedEvent,
        out: &mut TimelineUpdate,
    ) {
        let turn = ended.turn;
        let is_open = match self.turn {
            TurnState::Open(open) => open == turn,
            TurnState::Unknown => turn != 0,
            TurnState::Ended(_) => false,
        };
        if !is_open {
            return;
        }
        if self.usage.turns.is_empty() {
            self.usage.turns.push(TurnUsageRow { turn, ..TurnUsageRow::default() });
        }
        self.usage.fold_event(event);
        self.end_turn(turn, TurnSummary::from_outcome(&ended.outcome), out);
    }

    fn end_turn(&mut self, turn: u64, summary: TurnSummary, out: &mut TimelineUpdate) {
        self.close_calls(Some(turn), out);
        self.turn = TurnState::Ended(turn);
        self.waiting_since = None;
        let usage = self.usage.turns.last().cloned().unwrap_or_default();
        // Agents report the cost of the session: without the previous report, the cost of the turn is
        // unknown.
        let cost = usage.cost.filter(|_| self.is_cost_known || self.usage.cost.is_none());
        let cost = cost.or_else(|| summary.cost.clone());
        let end = TurnEnd { summary, tokens: usage.tokens, cost, ms: usage.ms };
        let context = self.usage.context;
        out.push_in_turn(Some(turn), TimelineStep::TurnEnded { end: Box::new(end), context });
    }

    /// Ends all open calls.
    fn close_calls(&mut self, turn: Option<u64>, out: &mut TimelineUpdate) {
        let turn = turn.or(match self.turn {
            TurnState::Ended(turn) => Some(turn),
            TurnState::Open(_) | TurnState::Unknown => None,
        });
        for step in self.calls.close_all() {
            out.push_in_turn(turn, step);
        }
    }

    fn on_agent_stopped(&mut self, label: &str, why: Option<&str>, out: &mut TimelineUpdate) {
        let turn = self.open_turn();
        self.close_calls(turn, out);
        out.push_in_turn(turn, TimelineStep::note(label, why, None));
    }

    fn open_turn(&self) -> Option<u64> {
        match self.turn {
            TurnState::Open(turn) => Some(turn),
            TurnState::Ended(_) | TurnState::Unknown => None,
        }
    }

    fn on_message(
        &mut self,
        message: &AgentMessage<Value>,
        event: &ReceivedEvent,
        out: &mut TimelineUpdate,
    ) {
        let turn = message.turn;
        if self.turn == TurnState::Unknown {
            // The first event of a turn for this reader: the turn is open unless the message is late.
            let is_late = turn == 0 || message.late;
            self.turn = if is_late { TurnState::Ended(turn) } else { TurnState::Open(turn) };
        }
        self.usage.fold_event(event);
        let mut steps = TimelineUpdate::new(out.seq, out.at);
        self.on_update(&message.frame, &mut steps);
        for entry in steps.entries {
            out.push_in_turn(Some(turn), entry.step);
        }
    }

    fn on_configured(&mut self, changed: &SettingChanged<Value>, out: &mut TimelineUpdate) {
        let (params, answer) = (&changed.frame["params"], &changed.answer);
        if let Some(mode) = params["modeId"].as_str() {
            out.push_step(TimelineStep::ModeChanged(mode.to_owned()));
        }
        if let Some(model) = params["modelId"].as_str() {
            self.set_model(model.to_owned(), out);
        }
        if answer["configOptions"].is_array() {
            self.on_options(&answer["configOptions"], out);
        } else if let Some(option) = params["configId"].as_str() {
            let values = [(option.to_owned(), params["value"].clone())].into_iter().collect();
            out.push_step(TimelineStep::OptionsChanged(values));
        }
    }

    fn on_asked(&mut self, asked: &UserAsked<Value>, out: &mut TimelineUpdate) {
        let (params, ask) = (&asked.frame["params"], asked.ask);
        let turn = self.open_turn();
        if asked.frame["method"] != Method::SessionRequestPermission.name() {
            let message = params["message"].as_str();
            return out.push_in_turn(turn, TimelineStep::note("question", message, None));
        }
        let call = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
        for step in self.calls.on_permission_request(call) {
            out.push_in_turn(turn, step);
        }
        let request = self.calls.permission_request(call, params, ask);
        self.open_requests.insert(ask, request.call.id.clone());
        out.push_in_turn(turn, TimelineStep::PermissionRequested(Box::new(request)));
    }

    fn on_answered(&mut self, answered: &UserAnswered<Value>, out: &mut TimelineUpdate) {
        let (ask, answer) = (answered.ask, &answered.answer);
        let call = self.open_requests.remove(&ask);
        let outcome = &answer["result"]["outcome"];
        // The answer to an elicitation is an action, not an option.
        if let Some(action) = answer["result"]["action"].as_str() {
            let step = TimelineStep::note("answer", Some(action), None);
            return out.push_in_turn(self.open_turn(), step);
        }
        let by = answered.by.to_string();
        let option = outcome["optionId"].as_str().map(str::to_owned);
        let step = TimelineStep::PermissionAnswered { ask, call, option, by };
        out.push_in_turn(self.open_turn(), step);
    }
}
