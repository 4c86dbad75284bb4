//! What the facts of a session mean together: turns, words, tool calls, asks, each begun and ended
//! once. The views retell a story in their own words; what a fact means is decided here.
//!
//! **Invariant:** a fact is told once: what was folded before changes nothing when it comes again.
//!
//! **Invariant:** a reader who starts in the middle of a turn hears nothing that a reader from the
//! beginning does not, save of tool calls that began before it came; from the next turn on both hear
//! the same. So what cannot be known in the middle (was there a thought before this one, was this
//! call told of?) is taken as told.

mod call;
mod calls;
mod content;
mod model;
mod outcome;
mod step;
mod tool;

pub(crate) use call::Began;
pub(crate) use content::text_of;
pub(crate) use outcome::{Outcome, Status};
pub(crate) use step::{Asked, Placed, Step, Told, TurnEnded};

use crate::usage::{Turn as Used, Usage};
use calls::Calls;
use jackfield_events::{
    AgentMessage, EventBody, ReceivedEvent, Rung, ServedOutcome, SettingChanged,
    TurnEnded as EndedEvent, TurnStarted, UnaskedCall, UserAnswered, UserAsked,
};
use jackfield_protocol::acp::Method;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fold's state. It may start at any fact.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// The last fact that was folded in.
    seq: Option<u64>,
    turn: Turn,
    /// When the turn began, until its first text.
    waits_since: Option<u64>,
    speech: Speech,
    calls: Calls,
    /// Open asks for a permission, and the call each is about.
    asks: BTreeMap<u64, String>,
    model: Option<String>,
    usage: Usage,
    /// What the session had cost when the turn began is known, so the turn's part is.
    knows_cost: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The reader came in the middle and has not heard of any.
    #[default]
    Unknown,
    Open(u64),
    Over(u64),
}

/// What the agent said last in its turn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Speech {
    #[default]
    Unknown,
    Nothing,
    Text,
    Thought,
}

impl Story {
    /// Folds the next event in and returns what it means.
    pub(crate) fn fold(&mut self, event: &ReceivedEvent) -> Told {
        // Events that are read from a file have no position: they start at the first one.
        let next = || self.seq.map_or(1, |it| it.saturating_add(1));
        let seq = event.seq.map_or_else(next, |it| it.0);
        let mut told = Told::new(seq, event.at.0);
        if self.seq.is_some_and(|it| seq <= it) {
            return told;
        }
        if self.seq.is_none() && seq == 1 {
            self.begin();
        }
        self.seq = Some(seq);
        self.fold_body(event, &mut told);
        told
    }

    /// The model in use, as far as anyone has said.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Nothing was before.
    fn begin(&mut self) {
        self.turn = Turn::Over(0);
        self.speech = Speech::Nothing;
        self.calls.begin();
        self.knows_cost = true;
    }

    fn fold_body(&mut self, event: &ReceivedEvent, told: &mut Told) {
        match &event.body {
            EventBody::Opened(opened) => self.awake(None, &opened.setup, told),
            EventBody::Bound(bound) => self.awake(Some(bound.rung), &bound.setup, told),
            EventBody::Prompted(started) => self.prompted(started, event, told),
            EventBody::Said(message) => self.said(message, event, told),
            EventBody::Ended(ended) => self.ended(ended, event, told),
            EventBody::Asked(asked) => self.asked(asked, told),
            EventBody::Answered(answered) => self.answered(answered, told),
            EventBody::Configured(changed) => self.configured(changed, told),
            EventBody::Cancelled(cancelled) => {
                let since = self.usage.turns.last().and_then(|it| it.began_at);
                let ms = since.map(|it| told.at.saturating_sub(it));
                told.put_in(Some(cancelled.turn), Step::note("cancelling", None, ms));
            }
            EventBody::Gone(exited) => self.stopped("gone", Some(&exited.status), told),
            EventBody::Slept(suspended) => self.stopped("asleep", Some(&suspended.why), told),
            EventBody::Closed => self.stopped("closed", None, told),
            // The process on the other host is over; an event of its own ends the turn.
            EventBody::Moved(moved) => self.stopped("moved", Some(&moved.why), told),
            EventBody::Queued(_) => told.put(Step::note("queued", None, None)),
            EventBody::Withdrawn(withdrawn) => {
                told.put(Step::note("withdrawn", Some(&withdrawn.why), None));
            }
            EventBody::Quiet(quiet) => {
                let ms = told.at.saturating_sub(quiet.since.0);
                told.put(Step::note("quiet", Some(&quiet.waits), Some(ms)));
            }
            EventBody::Unasked(UnaskedCall { call }) => {
                let what = call["title"].as_str().or(call["tool"].as_str());
                told.put(Step::note("unasked", what, None));
            }
            EventBody::Served(served) => {
                if let ServedOutcome::Denied(why) = &served.outcome {
                    told.put(Step::note("denied", Some(why), None));
                }
            }
            // These are not about what the agent does.
            EventBody::Forked(_)
            | EventBody::Imported(_)
            | EventBody::Learned(_)
            | EventBody::LeftOut(_)
            | EventBody::Refused(_) => {}
        }
    }

    fn awake(&mut self, rung: Option<Rung>, setup: &Value, told: &mut Told) {
        if rung == Some(Rung::Failed) {
            return told.put(Step::note("failed", Some("the session could not be woken"), None));
        }
        let model = model::current(setup);
        let rung = rung.map(|it| it.as_str().to_owned());
        told.put(Step::Awake { rung, model: model.clone() });
        if let Some(model) = model {
            self.use_model(model, told);
        }
    }

    fn use_model(&mut self, model: String, told: &mut Told) {
        told.put(Step::Model(model.clone()));
        self.model = Some(model);
    }

    fn prompted(&mut self, started: &TurnStarted<Value>, event: &ReceivedEvent, told: &mut Told) {
        let turn = started.turn;
        match self.turn {
            Turn::Open(open) if open == turn => return,
            // Its end is not in the log; it is over nevertheless, for turns do not nest.
            Turn::Open(open) => self.end(open, Outcome::missing(), told),
            Turn::Over(_) | Turn::Unknown => self.close_calls(None, told),
        }
        self.knows_cost |= self.usage.cost.is_some();
        self.usage.turns.clear();
        self.usage.fold(event);
        self.turn = Turn::Open(turn);
        self.waits_since = Some(told.at);
        self.speech = Speech::Nothing;
        self.calls.begin();
        let blocks = started.frame["params"]["prompt"].as_array().cloned().unwrap_or_default();
        told.put_in(Some(turn), Step::TurnBegan { prompt: blocks });
    }

    fn ended(&mut self, ended: &EndedEvent<Value>, event: &ReceivedEvent, told: &mut Told) {
        let turn = ended.turn;
        let ends = match self.turn {
            Turn::Open(open) => open == turn,
            Turn::Unknown => turn != 0,
            Turn::Over(_) => false,
        };
        if !ends {
            return;
        }
        if self.usage.turns.is_empty() {
            self.usage.turns.push(Used { turn, ..Used::default() });
        }
        self.usage.fold(event);
        self.end(turn, Outcome::of(&ended.outcome), told);
    }

    fn end(&mut self, turn: u64, outcome: Outcome, told: &mut Told) {
        self.close_calls(Some(turn), told);
        self.turn = Turn::Over(turn);
        self.waits_since = None;
        let used = self.usage.turns.last().cloned().unwrap_or_default();
        // The agents' sum of the session is no turn's cost unless one knows what it was before.
        let cost = used.cost.filter(|_| self.knows_cost || self.usage.cost.is_none());
        let cost = cost.or_else(|| outcome.cost.clone());
        let ended = TurnEnded { outcome, tokens: used.tokens, cost, ms: used.ms };
        let context = self.usage.context;
        told.put_in(Some(turn), Step::TurnEnded { ended: Box::new(ended), context });
    }

    /// What is still open will not end by itself any more.
    fn close_calls(&mut self, turn: Option<u64>, told: &mut Told) {
        let turn = turn.or(match self.turn {
            Turn::Over(turn) => Some(turn),
            Turn::Open(_) | Turn::Unknown => None,
        });
        for step in self.calls.close() {
            told.put_in(turn, step);
        }
    }

    /// The agent is no longer there.
    fn stopped(&mut self, label: &str, why: Option<&str>, told: &mut Told) {
        let turn = self.open_turn();
        self.close_calls(turn, told);
        told.put_in(turn, Step::note(label, why, None));
    }

    fn open_turn(&self) -> Option<u64> {
        match self.turn {
            Turn::Open(turn) => Some(turn),
            Turn::Over(_) | Turn::Unknown => None,
        }
    }

    fn said(&mut self, message: &AgentMessage<Value>, event: &ReceivedEvent, told: &mut Told) {
        let turn = message.turn;
        if self.turn == Turn::Unknown {
            // So the turn runs, or has ended, without having been heard to.
            let late = turn == 0 || message.late;
            self.turn = if late { Turn::Over(turn) } else { Turn::Open(turn) };
        }
        self.usage.fold(event);
        let mut said = Told::new(told.seq, told.at);
        self.update(&message.frame, &mut said);
        for placed in said.steps {
            told.put_in(Some(turn), placed.step);
        }
    }

    fn update(&mut self, frame: &Value, told: &mut Told) {
        let update = &frame["params"]["update"];
        let Some(kind) = update["sessionUpdate"].as_str() else {
            // A word of the agent's own, outside the protocol.
            let method = frame["method"].as_str().filter(|it| *it != Method::SessionUpdate.name());
            return told.put_all(method.map(|it| Step::note(it, None, None)));
        };
        match kind {
            "agent_message_chunk" => self.spoke(update, told),
            "agent_thought_chunk" => self.thought(update, told),
            "tool_call" | "tool_call_update" => {
                // What is said behind a tool is another speech.
                self.speech = Speech::Nothing;
                told.put_all(self.calls.update(update, kind == "tool_call"));
            }
            "plan" => {
                let entries = update["entries"].as_array().cloned().unwrap_or_default();
                told.put(Step::Plan(entries));
            }
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str().or(update["modeId"].as_str());
                told.put_all(mode.map(|it| Step::Mode(it.to_owned())));
            }
            "config_option_update" => self.options(&update["configOptions"], told),
            "session_info_update" => told.steps.extend(step::info(update)),
            // Usage is told at the end of the turn; prompts are facts; commands are a menu.
            "usage_update" | "user_message_chunk" | "available_commands_update" => {}
            other => told.put(Step::note(other, step::detail(update), None)),
        }
    }

    fn spoke(&mut self, update: &Value, told: &mut Told) {
        let content = &update["content"];
        let text = text_of(content);
        if text.as_deref() == Some("") {
            return;
        }
        told.put_all(self.calls.speak());
        self.speech = Speech::Text;
        match text {
            Some(text) => {
                let ttft_ms = self.waits_since.take().map(|it| told.at.saturating_sub(it));
                told.put(Step::Text { text, message: message_of(update), ttft_ms });
            }
            None => told.put(Step::Block(content.clone())),
        }
    }

    fn thought(&mut self, update: &Value, told: &mut Told) {
        let text = text_of(&update["content"]).filter(|it| !it.is_empty());
        let Some(text) = text else { return };
        told.put_all(self.calls.speak());
        let starts = matches!(self.speech, Speech::Nothing | Speech::Text);
        self.speech = Speech::Thought;
        told.put(Step::Thought { text, message: message_of(update), starts });
    }

    fn options(&mut self, options: &Value, told: &mut Told) {
        let current = model::values(options);
        if !current.is_empty() {
            told.put(Step::Options(current));
        }
        // Also if it is the same: who came later does not know that, and counts events too.
        if let Some(model) = model::of_options(options) {
            self.use_model(model, told);
        }
    }

    fn configured(&mut self, changed: &SettingChanged<Value>, told: &mut Told) {
        let (params, answer) = (&changed.frame["params"], &changed.answer);
        if let Some(mode) = params["modeId"].as_str() {
            told.put(Step::Mode(mode.to_owned()));
        }
        if let Some(model) = params["modelId"].as_str() {
            self.use_model(model.to_owned(), told);
        }
        if answer["configOptions"].is_array() {
            self.options(&answer["configOptions"], told);
        } else if let Some(option) = params["configId"].as_str() {
            let value = params["value"].clone();
            told.put(Step::Options([(option.to_owned(), value)].into_iter().collect()));
        }
    }

    fn asked(&mut self, asked: &UserAsked<Value>, told: &mut Told) {
        let (params, ask) = (&asked.frame["params"], asked.ask);
        let turn = self.open_turn();
        if asked.frame["method"] != Method::SessionRequestPermission.name() {
            let message = params["message"].as_str();
            return told.put_in(turn, Step::note("question", message, None));
        }
        let call = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
        for step in self.calls.ask(call) {
            told.put_in(turn, step);
        }
        let asked = self.calls.asked(call, params, ask);
        self.asks.insert(ask, asked.call.id.clone());
        told.put_in(turn, Step::Asked(Box::new(asked)));
    }

    fn answered(&mut self, answered: &UserAnswered<Value>, told: &mut Told) {
        let (ask, answer) = (answered.ask, &answered.answer);
        let call = self.asks.remove(&ask);
        let outcome = &answer["result"]["outcome"];
        // Whoever asked a question and not for a permission is answered with an action.
        if let Some(action) = answer["result"]["action"].as_str() {
            return told.put_in(self.open_turn(), Step::note("answer", Some(action), None));
        }
        let by = answered.by.to_string();
        let option = outcome["optionId"].as_str().map(str::to_owned);
        told.put_in(self.open_turn(), Step::Answered { ask, call, option, by });
    }
}

/// Which message a piece belongs to, if the agent says so.
fn message_of(update: &Value) -> Option<String> {
    update["messageId"].as_str().map(str::to_owned)
}
