//! What a fact may mean: the words in which a story is told to the views.

use super::{Began, Outcome};
use crate::usage::{Context, Cost, Tokens};
use serde_json::{Map, Value};

/// What one fact meant: nothing, one thing or several, in order.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) seq: u64,
    pub(crate) at: u64,
    pub(crate) steps: Vec<Placed>,
}

/// A step, and the turn that it belongs to.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) turn: Option<u64>,
    pub(crate) step: Step,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// The session has an agent: it was opened, or woken by a rung of the ladder.
    Awake {
        rung: Option<String>,
        model: Option<String>,
    },
    Model(String),
    Mode(String),
    /// Config options and their values.
    Options(Map<String, Value>),
    TurnBegan {
        prompt: Vec<Value>,
    },
    /// A piece of the answer; the first of a turn says how long it was waited for.
    Text {
        text: String,
        message: Option<String>,
        ttft_ms: Option<u64>,
    },
    /// A piece of thought, and whether a new train of thought begins with it.
    Thought {
        text: String,
        message: Option<String>,
        starts: bool,
    },
    /// A part of the answer that is no text: an image, a file, a link.
    Block(Value),
    CallBegan(Box<Began>),
    CallEnded {
        id: String,
        parent: Option<String>,
        content: String,
        is_error: bool,
    },
    Plan(Vec<Value>),
    Asked(Box<Asked>),
    /// No option: nobody's answer counts any more, or it was cancelled.
    Answered {
        ask: u64,
        call: Option<String>,
        option: Option<String>,
        by: String,
    },
    /// How full the context is stands beside the end, if anyone has said.
    TurnEnded {
        ended: Box<TurnEnded>,
        context: Option<Context>,
    },
    /// A line of a foreign program that its adapter could make nothing of.
    Unmapped(Value),
    /// Anything else worth a word.
    Note {
        label: String,
        detail: Option<String>,
        ms: Option<u64>,
    },
}

/// An ask for a permission.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) ask: u64,
    /// What it is about, as far as the agent has told.
    pub(crate) call: Began,
    /// The options, in the agent's words.
    pub(crate) options: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct TurnEnded {
    pub(crate) outcome: Outcome,
    pub(crate) tokens: Tokens,
    pub(crate) cost: Option<Cost>,
    pub(crate) ms: Option<u64>,
}

impl Told {
    pub(super) fn new(seq: u64, at: u64) -> Told {
        Told { seq, at, steps: Vec::new() }
    }

    /// A step outside of any turn.
    pub(super) fn put(&mut self, step: Step) {
        self.put_in(None, step);
    }

    pub(super) fn put_all(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            self.put(step);
        }
    }

    /// Turns count from 1; what is said before the first belongs to none.
    pub(super) fn put_in(&mut self, turn: Option<u64>, step: Step) {
        self.steps.push(Placed { turn: turn.filter(|it| *it != 0), step });
    }
}

impl Step {
    pub(super) fn note(label: &str, detail: Option<&str>, ms: Option<u64>) -> Step {
        let detail = detail.filter(|it| !it.is_empty()).map(str::to_owned);
        Step::Note { label: label.to_owned(), detail, ms }
    }
}

/// What `session_info_update` says: a title, or what an adapter had no other words for.
pub(super) fn info(update: &Value) -> impl Iterator<Item = Placed> {
    let ours = &update["_meta"]["jackfield"];
    let title = update["title"].as_str();
    let title = title.map(|it| Step::note("session_info_update", Some(it), None));
    let notice = ours["notice"].as_str().map(|it| Step::note("notice", Some(it), None));
    let unmapped = ours.get("unmapped").map(|it| Step::Unmapped(it.clone()));
    [title, notice, unmapped].into_iter().flatten().map(|step| Placed { turn: None, step })
}

/// What an update of a kind that we do not know says for people, if it says so in a usual place.
pub(super) fn detail(update: &Value) -> Option<&str> {
    let places = ["title", "message", "description", "text", "detail"];
    let inside = || update["content"]["text"].as_str();
    places.iter().find_map(|it| update[*it].as_str()).or_else(inside)
}
