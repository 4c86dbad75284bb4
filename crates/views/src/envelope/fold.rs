//! The fold from facts to envelopes.

use super::{Choice, Envelope, Ev, Role, TurnStatus, TurnUsage, block, cuid};
use crate::story::{Asked, Began, Placed, Status, Step, Story, TurnEnded};
use crate::usage::{Context, Tokens};
use jackfield_events::ReceivedEvent;
use serde_json::Value;

/// Folded from the facts of one session, in order, from any fact on.
#[derive(Debug)]
pub struct Envelopes {
    session: String,
    story: Story,
    /// The last time that was given.
    time: u64,
    /// Words that wait for more, if they are put together.
    speech: Option<Speech>,
    accumulates: bool,
}

/// Pieces of one text, in one envelope.
#[derive(Debug)]
struct Speech {
    turn: Option<u64>,
    thinking: bool,
    message: Option<String>,
    text: String,
    /// The fact with the first piece, and when the last was said.
    seq: u64,
    at: u64,
}

/// A piece of text.
#[derive(Debug)]
struct Words {
    thinking: bool,
    message: Option<String>,
    text: String,
}

/// Where an envelope comes from.
#[derive(Debug, Clone, Copy)]
struct Place {
    seq: u64,
    at: u64,
    turn: Option<u64>,
}

/// JavaScript counts milliseconds no further; a time that is nonsense must leave room for the next.
const TIME_MAX: u64 = 1 << 53;

impl Envelopes {
    /// One envelope for each piece of text, as it comes.
    pub fn new(session: &str) -> Envelopes {
        let (story, speech) = (Story::default(), None);
        Envelopes { session: session.to_owned(), story, time: 0, speech, accumulates: false }
    }

    /// One envelope for each text: the pieces are put together until the agent thinks instead of
    /// speaking or the other way round, begins another message, uses a tool, or ends its turn. Line breaks at both ends are
    /// taken off, and a text of nothing else is none. What may still grow is not told before
    /// [`Envelopes::finish`].
    pub fn accumulating(session: &str) -> Envelopes {
        Envelopes { accumulates: true, ..Envelopes::new(session) }
    }

    pub fn fold(&mut self, event: &ReceivedEvent) -> Vec<Envelope> {
        let told = self.story.fold(event);
        let mut envelopes = Vec::new();
        for Placed { turn, step } in told.steps {
            let place = Place { seq: told.seq, at: told.at, turn };
            self.tell(place, step, &mut envelopes);
        }
        envelopes
    }

    /// There are no more facts for now: words that waited for more.
    pub fn finish(&mut self) -> Vec<Envelope> {
        let mut envelopes = Vec::new();
        self.flush(&mut envelopes);
        envelopes
    }

    fn tell(&mut self, place: Place, step: Step, out: &mut Vec<Envelope>) {
        match step {
            Step::Text { text, message, .. } => {
                return self.say(place, Words { thinking: false, message, text }, out);
            }
            Step::Thought { text, message, .. } => {
                return self.say(place, Words { thinking: true, message, text }, out);
            }
            // A word about the session, and not about what is being said.
            Step::Awake { .. }
            | Step::Model(_)
            | Step::Mode(_)
            | Step::Options(_)
            | Step::Plan(_)
            | Step::Unmapped(_) => return,
            Step::Note { ref label, .. } if label != "question" => return,
            _ => self.flush(out),
        }
        match step {
            Step::TurnBegan { prompt } => {
                for (index, block) in prompt.iter().enumerate() {
                    let asked = Place { turn: None, ..place };
                    self.block(asked, Role::User, index, block, out);
                }
                out.push(self.envelope(place, Role::Agent, "turn-start", Ev::TurnStart));
            }
            Step::TurnEnded { ended, context } => out.push(self.turn_end(place, *ended, context)),
            Step::Block(block) => self.block(place, Role::Agent, 0, &block, out),
            Step::CallBegan(call) => out.push(self.call_start(place, *call)),
            Step::CallEnded { id, parent, .. } => {
                let ev = Ev::ToolCallEnd { call: self.call(&id) };
                let label = format!("tool-call-end {id}");
                let ended = self.envelope(place, Role::Agent, &label, ev);
                out.push(self.of_subagent(ended, parent.as_deref()));
            }
            Step::Asked(asked) => out.push(self.asked(place, *asked)),
            Step::Answered { ask, call, option, by } => {
                let call = call.map(|it| self.call(&it));
                let ev = Ev::PermissionResponse { ask, call, option, by };
                out.push(self.envelope(place, Role::User, "permission-response", ev));
            }
            Step::Note { detail: Some(text), .. } => {
                out.push(self.envelope(place, Role::Agent, "service", Ev::Service { text }));
            }
            _ => {}
        }
    }

    fn say(&mut self, place: Place, words: Words, out: &mut Vec<Envelope>) {
        let Words { thinking, message, text } = words;
        if !self.accumulates {
            let ev = Ev::Text { text, thinking };
            out.push(self.envelope(place, Role::Agent, "text", ev));
            return;
        }
        if let Some(speech) = &mut self.speech
            && (speech.turn, speech.thinking, &speech.message) == (place.turn, thinking, &message)
        {
            speech.text.push_str(&text);
            speech.at = place.at;
            return;
        }
        self.flush(out);
        let Place { seq, at, turn } = place;
        self.speech = Some(Speech { turn, thinking, message, text, seq, at });
    }

    fn flush(&mut self, out: &mut Vec<Envelope>) {
        let Some(speech) = self.speech.take() else { return };
        let text = speech.text.trim_matches('\n');
        if text.is_empty() {
            return;
        }
        let place = Place { seq: speech.seq, at: speech.at, turn: speech.turn };
        let ev = Ev::Text { text: text.to_owned(), thinking: speech.thinking };
        // Another text than the piece that the same fact is without the others.
        out.push(self.envelope(place, Role::Agent, "whole text", ev));
    }

    fn block(
        &mut self,
        place: Place,
        role: Role,
        index: usize,
        block: &Value,
        out: &mut Vec<Envelope>,
    ) {
        let stands = format!("{}/{}/{index}", self.session, place.seq);
        if let Some(ev) = block::ev(block, &stands) {
            out.push(self.envelope(place, role, &format!("block {index}"), ev));
        }
    }

    fn call_start(&mut self, place: Place, call: Began) -> Envelope {
        let title = if call.title.is_empty() { call.name.clone() } else { call.title };
        let said = call.input.get("description").and_then(Value::as_str);
        let said = said.filter(|it| !it.is_empty()).map(str::to_owned);
        let description = said.unwrap_or_else(|| format!("Running {}", call.name));
        let label = format!("tool-call-start {}", call.id);
        let ev = Ev::ToolCallStart {
            call: self.call(&call.id),
            name: call.name,
            title,
            description,
            args: call.input,
        };
        let started = self.envelope(place, Role::Agent, &label, ev);
        self.of_subagent(started, call.parent.as_deref())
    }

    fn asked(&mut self, place: Place, asked: Asked) -> Envelope {
        let choice = |it: &Value| {
            let member = |name: &str| it[name].as_str().map(str::to_owned);
            let (id, name) = (member("optionId")?, member("name"));
            Some(Choice { name: name.unwrap_or_else(|| id.clone()), id, kind: member("kind") })
        };
        let ev = Ev::PermissionRequest {
            ask: asked.ask,
            call: self.call(&asked.call.id),
            name: asked.call.name,
            title: asked.call.title,
            args: asked.call.input,
            options: asked.options.iter().filter_map(choice).collect(),
        };
        self.envelope(place, Role::Agent, "permission-request", ev)
    }

    fn turn_end(&mut self, place: Place, ended: TurnEnded, context: Option<Context>) -> Envelope {
        let status = match ended.outcome.status {
            Status::Completed => TurnStatus::Completed,
            Status::Failed => TurnStatus::Failed,
            Status::Cancelled => TurnStatus::Cancelled,
        };
        let error = ended.outcome.failure.map(|it| it.message);
        let ev = Ev::TurnEnd { status, error };
        // One fact may end a turn and begin the next, if the first has no end of its own.
        let label = format!("turn-end {}", place.turn.unwrap_or(0));
        let envelope = self.envelope(place, Role::Agent, &label, ev);
        Envelope { usage: usage(&ended.tokens, context), ..envelope }
    }

    fn envelope(&mut self, place: Place, role: Role, label: &str, ev: Ev) -> Envelope {
        self.time = self.time.saturating_add(1).max(place.at.min(TIME_MAX));
        let seq = place.seq.to_string();
        let id = cuid::derived(&["envelope", &self.session, &seq, label]);
        let turn = place.turn.map(|it| self.derived("turn", &it.to_string()));
        Envelope { id, time: self.time, role, turn, subagent: None, usage: None, ev }
    }

    fn of_subagent(&self, envelope: Envelope, parent: Option<&str>) -> Envelope {
        Envelope { subagent: parent.map(|it| self.derived("subagent", it)), ..envelope }
    }

    fn call(&self, id: &str) -> String {
        self.derived("call", id)
    }

    fn derived(&self, what: &str, name: &str) -> String {
        cuid::derived(&[what, &self.session, name])
    }
}

fn usage(tokens: &Tokens, context: Option<Context>) -> Option<TurnUsage> {
    Some(TurnUsage {
        input_tokens: tokens.input?,
        output_tokens: tokens.output?,
        cache_creation_input_tokens: tokens.cached_write,
        cache_read_input_tokens: tokens.cached_read,
        context_window: context.and_then(|it| it.size).filter(|it| *it != 0),
        thought_tokens: tokens.thought,
        total_tokens: tokens.total,
    })
}
