//! Prompts that carry a key: whoever says one again gets the turn that it began, and not another one.

use super::{Json, Outcome};
use crate::limits;
use jackfield_wire::{Fault, Frame};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc};

/// Why a prompt was withdrawn when its session was cancelled: that is answered as ACP wants it.
pub(crate) const CANCELLED: &str = "the session was cancelled";

/// The last prompts of a session that had a key, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys(VecDeque<Keyed>);

/// A prompt with a key, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    pub key: Arc<str>,
    /// Its number, if it had to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
    /// The turn that it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// How that ended, or why there will be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Keys {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latest prompt with this key.
    pub fn find(&self, key: &str) -> Option<&Keyed> {
        self.0.iter().rfind(|it| &*it.key == key)
    }

    pub(super) fn queued(&mut self, frame: &Json, prompt: u64) {
        self.add(frame, Some(prompt), None);
    }

    pub(super) fn began(&mut self, frame: &Json, prompt: Option<u64>, turn: u64) {
        let waited = self.0.iter_mut().rfind(|it| prompt.is_some() && it.prompt == prompt);
        match waited {
            Some(it) => it.turn = Some(turn),
            None => self.add(frame, prompt, Some(turn)),
        }
    }

    pub(super) fn ended(&mut self, turn: u64, outcome: &Outcome) {
        if let Some(it) = self.0.iter_mut().rfind(|it| it.turn == Some(turn)) {
            it.outcome = Some(kept(outcome));
        }
    }

    pub(super) fn withdrawn(&mut self, prompt: u64, why: &str) {
        if let Some(it) = self.0.iter_mut().rfind(|it| it.prompt == Some(prompt)) {
            it.outcome = Some(if why == CANCELLED {
                Outcome::Stopped(Json::trusted(r#"{"stopReason":"cancelled"}"#))
            } else {
                let fault = Fault::Interrupted { why: why.to_owned() };
                Outcome::Interrupted(Json::trusted(fault.to_json()))
            });
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, frame: &Json, prompt: Option<u64>, turn: Option<u64>) {
        let Some(key) = Frame::parse(frame.bytes().clone()).ok().and_then(|it| key_of(&it).ok()?)
        else {
            return;
        };
        // What has no outcome yet is bounded by the queue.
        if limits::KEYS_MAX <= self.0.len()
            && let Some(oldest) = self.0.iter().position(|it| it.outcome.is_some())
        {
            self.0.remove(oldest);
        }
        self.0.push_back(Keyed { key, prompt, turn, outcome: None });
    }
}

/// The key of a prompt, `params._meta.jackfield.key`, or what is wrong with it.
pub(crate) fn key_of(prompt: &Frame) -> Result<Option<Arc<str>>, String> {
    let meta: Value =
        prompt.meta().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let Some(key) = meta.pointer("/jackfield/key") else { return Ok(None) };
    let text = key.as_str().filter(|it| (1..=limits::KEY_BYTES_MAX).contains(&it.len()));
    let max = limits::KEY_BYTES_MAX;
    let why = || format!("`_meta.jackfield.key` must be a text of 1 to {max} bytes");
    text.map(|it| Some(it.into())).ok_or_else(why)
}

/// An outcome as it is said again: of one that is too large to be kept, what matters most.
fn kept(outcome: &Outcome) -> Outcome {
    if outcome.json().bytes().len() <= limits::KEYED_OUTCOME_BYTES_MAX {
        return outcome.clone();
    }
    let value: Value = serde_json::from_str(outcome.json().as_str()).unwrap_or_default();
    let error = || {
        let message = value["message"].as_str().unwrap_or_default().chars();
        let message: String = message.take(limits::KEYED_OUTCOME_BYTES_MAX / 8).collect();
        Json::trusted(json!({ "code": value["code"].as_i64(), "message": message }).to_string())
    };
    match outcome {
        Outcome::Stopped(_) => {
            let reason = outcome.stop_reason();
            Outcome::Stopped(Json::trusted(json!({ "stopReason": reason }).to_string()))
        }
        Outcome::Failed(_) => Outcome::Failed(error()),
        Outcome::Interrupted(_) => Outcome::Interrupted(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Seq, Time,
        log::{Body, Event, State},
    };

    fn prompt(key: &str) -> Json {
        let text = format!(
            r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"s-1","_meta":{{"jackfield":{{"key":"{key}"}}}},"prompt":[]}}}}"#
        );
        Json::trusted(text)
    }

    fn state(bodies: impl IntoIterator<Item = Body>) -> State {
        let mut state = State::default();
        for body in bodies {
            state.fold(&Event { seq: state.upto().next(), at: Time(1), body });
        }
        state
    }

    fn prompted(turn: u64, key: &str) -> Body {
        Body::Prompted { turn, by: "zed".into(), prompt: None, frame: prompt(key) }
    }

    fn ended(turn: u64) -> Body {
        let outcome = Outcome::Stopped(Json::trusted(r#"{"stopReason":"end_turn"}"#));
        Body::Ended { turn, outcome }
    }

    #[test]
    fn a_key_leads_to_its_turn_and_then_to_its_outcome() {
        let open = state([prompted(1, "a")]);
        let known = open.keys.find("a").unwrap();
        assert_eq!((known.turn, &known.outcome), (Some(1), &None));
        assert!(open.keys.find("b").is_none());
        let over = state([prompted(1, "a"), ended(1)]);
        let outcome = over.keys.find("a").unwrap().outcome.clone().unwrap();
        assert_eq!(outcome.stop_reason().as_deref(), Some("end_turn"));
    }

    #[test]
    fn a_key_that_waited_keeps_its_number_and_gets_a_turn_or_a_reason() {
        let by: Arc<str> = "zed".into();
        let queued = || Body::Queued { prompt: 1, by: by.clone(), frame: prompt("a") };
        let began = Body::Prompted { turn: 1, by: by.clone(), prompt: Some(1), frame: prompt("a") };
        let known = state([queued(), began]).keys.find("a").unwrap().clone();
        assert_eq!((known.prompt, known.turn, known.outcome), (Some(1), Some(1), None));
        let withdrawn = |why: &str| Body::Withdrawn { prompt: 1, why: why.into() };
        let cancelled = state([queued(), withdrawn(CANCELLED)]).keys.find("a").unwrap().clone();
        assert_eq!(cancelled.outcome.unwrap().stop_reason().as_deref(), Some("cancelled"));
        let closed = state([queued(), withdrawn("closed")]).keys.find("a").unwrap().clone();
        assert!(closed.outcome.unwrap().json().as_str().contains("interrupted: closed"));
    }

    #[test]
    fn the_summary_has_the_keys_and_an_old_one_has_none() {
        let state = state([prompted(1, "a"), ended(1), prompted(2, "b")]);
        assert_eq!(State::from_summary(&state.to_summary()).unwrap(), state);
        let old = State::from_summary(br#"{"seq":3,"turns":1}"#).unwrap();
        assert_eq!((old.upto(), old.keys.is_empty()), (Seq(3), true));
    }

    #[test]
    fn the_oldest_that_is_over_is_forgotten_first() {
        let turns = 1..=limits::KEYS_MAX as u64 + 1;
        let open = prompted(0, "open");
        let turns = turns.flat_map(|it| [prompted(it, &it.to_string()), ended(it)]);
        let state = state(std::iter::once(open).chain(turns));
        assert_eq!(state.keys.0.len(), limits::KEYS_MAX);
        assert!(state.keys.find("open").is_some() && state.keys.find("3").is_some());
        assert!(state.keys.find("1").is_none() && state.keys.find("2").is_none());
    }

    #[test]
    fn of_a_huge_outcome_the_reason_is_kept() {
        let more = "x".repeat(limits::KEYED_OUTCOME_BYTES_MAX);
        let result = json!({ "stopReason": "end_turn", "_meta": more }).to_string();
        let outcome = Outcome::Stopped(Json::trusted(result));
        assert_eq!(kept(&outcome).json().as_str(), r#"{"stopReason":"end_turn"}"#);
        let error = json!({ "code": -5, "message": "no", "data": more }).to_string();
        let outcome = Outcome::Failed(Json::trusted(error));
        assert_eq!(kept(&outcome).json().as_str(), r#"{"code":-5,"message":"no"}"#);
    }

    #[test]
    fn a_key_is_a_short_text() {
        let with = |key: &str| {
            let meta = format!(r#"{{"jackfield":{{"key":{key}}}}}"#);
            let text =
                format!(r#"{{"id":1,"method":"session/prompt","params":{{"_meta":{meta}}}}}"#);
            key_of(&Frame::parse_str(&text).unwrap())
        };
        assert_eq!(with(r#""a""#), Ok(Some("a".into())));
        for bad in ["1", "\"\"", "null", &format!("\"{}\"", "x".repeat(129))] {
            assert!(with(bad).unwrap_err().contains("1 to 128 bytes"), "{bad}");
        }
        let none = Frame::parse_str(r#"{"id":1,"method":"session/prompt","params":{}}"#).unwrap();
        assert_eq!(key_of(&none), Ok(None));
    }
}
