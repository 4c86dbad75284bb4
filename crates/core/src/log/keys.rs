//! Prompts that carry a key: a client that sends one again gets the turn that it began, and not another one.

use super::{Json, Outcome, RequestKey};
use crate::{Seq, Time, limits};
use jackfield_wire::{Fault, Frame};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Why a prompt was withdrawn when its session was cancelled: that is answered as ACP wants it.
pub(crate) const CANCELLED: &str = "the session was cancelled";

/// The last prompts of a session that had a key, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys(VecDeque<Keyed>);

/// A prompt with a key, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    #[serde(flatten)]
    pub request: RequestKey,
    /// The first event of the prompt, and its time. Both are 0 in summaries of earlier versions.
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub at: u64,
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
        self.0.iter().rfind(|it| &*it.request.key == key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Keyed> {
        self.0.iter()
    }

    pub(crate) fn last(&self) -> Option<&Keyed> {
        self.0.back()
    }

    pub(super) fn queued(&mut self, (seq, at): (Seq, Time), frame: &Json, prompt: u64) {
        self.add((seq, at), frame, Some(prompt), None);
    }

    pub(super) fn began(
        &mut self,
        (seq, at): (Seq, Time),
        frame: &Json,
        prompt: Option<u64>,
        turn: u64,
    ) {
        let waited = self.0.iter_mut().rfind(|it| prompt.is_some() && it.prompt == prompt);
        match waited {
            Some(it) => it.turn = Some(turn),
            None => self.add((seq, at), frame, prompt, Some(turn)),
        }
    }

    pub(super) fn ended(&mut self, turn: u64, outcome: &Outcome) {
        if let Some(it) = self.0.iter_mut().rfind(|it| it.turn == Some(turn)) {
            it.outcome = Some(kept(outcome, it.outcome_bytes_max()));
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

    fn add(
        &mut self,
        (seq, at): (Seq, Time),
        frame: &Json,
        prompt: Option<u64>,
        turn: Option<u64>,
    ) {
        let frame = Frame::parse(frame.bytes().clone()).ok();
        let Some(request) = frame.and_then(|it| RequestKey::of_frame(&it).ok()?) else { return };
        self.0.retain(|it| it.outcome.is_none() || !it.is_expired(at));
        let is_alike =
            |it: &Keyed| it.request.fingerprint.is_some() == request.fingerprint.is_some();
        let max = match request.fingerprint {
            Some(_) => limits::FINGERPRINTED_KEYS_MAX,
            None => limits::KEYS_MAX,
        };
        // What has no outcome yet is bounded by the queue.
        if max <= self.0.iter().filter(|it| is_alike(it)).count()
            && let Some(oldest) = self.0.iter().position(|it| is_alike(it) && it.outcome.is_some())
        {
            self.0.remove(oldest);
        }
        self.0.push_back(Keyed { request, seq: seq.0, at: at.0, prompt, turn, outcome: None });
    }
}

impl Keyed {
    /// There may be many with a fingerprint: of their outcomes less is kept.
    fn outcome_bytes_max(&self) -> usize {
        match self.request.fingerprint {
            Some(_) => limits::FINGERPRINTED_OUTCOME_BYTES_MAX,
            None => limits::KEYED_OUTCOME_BYTES_MAX,
        }
    }

    /// Whether the key may be used for another request by now. One without a fingerprint is forgotten only
    /// when others take its place.
    pub(crate) fn is_expired(&self, now: Time) -> bool {
        self.request.fingerprint.is_some() && is_key_expired(Time(self.at), now)
    }
}

/// Whether a key that was first used at one time is free again at another.
pub(crate) fn is_key_expired(used: Time, now: Time) -> bool {
    limits::KEY_LIFETIME_MS < now.since(used)
}

/// An outcome as it is sent again: of one that is too large to be kept, what matters most.
fn kept(outcome: &Outcome, bytes_max: usize) -> Outcome {
    if outcome.json().bytes().len() <= bytes_max {
        return outcome.clone();
    }
    let value: Value = serde_json::from_str(outcome.json().as_str()).unwrap_or_default();
    let error = || {
        let message = value["message"].as_str().unwrap_or_default().chars();
        let message: String = message.take(bytes_max / 8).collect();
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
    use crate::log::{Body, Event, State};
    use std::sync::Arc;

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
        assert_eq!(
            kept(&outcome, limits::KEYED_OUTCOME_BYTES_MAX).json().as_str(),
            r#"{"stopReason":"end_turn"}"#
        );
        let error = json!({ "code": -5, "message": "no", "data": more }).to_string();
        let outcome = Outcome::Failed(Json::trusted(error));
        assert_eq!(
            kept(&outcome, limits::KEYED_OUTCOME_BYTES_MAX).json().as_str(),
            r#"{"code":-5,"message":"no"}"#
        );
    }

    fn with_fingerprint(turn: u64, key: &str) -> Body {
        let ours = format!(r#"{{"key":"{key}","fingerprint":"f"}}"#);
        let text = format!(
            r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"s-1","_meta":{{"jackfield":{ours}}},"prompt":[]}}}}"#
        );
        Body::Prompted { turn, by: "api".into(), prompt: None, frame: Json::trusted(text) }
    }

    #[test]
    fn keys_with_a_fingerprint_are_kept_apart_and_more_of_them() {
        let turns = 1..=limits::KEYS_MAX as u64 + 1;
        let turns = turns.flat_map(|it| [with_fingerprint(it, &it.to_string()), ended(it)]);
        let state = state([prompted(0, "a"), ended(0)].into_iter().chain(turns));
        assert!(state.keys.find("a").is_some() && state.keys.find("1").is_some());
        let first = state.keys.find("1").unwrap();
        assert_eq!((first.seq, first.at), (3, 1));
        assert_eq!(State::from_summary(&state.to_summary()).unwrap(), state);
    }

    #[test]
    fn a_key_with_a_fingerprint_expires_and_is_forgotten_by_the_next_one() {
        let mut state = state([with_fingerprint(1, "a"), ended(1), prompted(2, "b"), ended(2)]);
        let known = state.keys.find("a").unwrap();
        let last = Time(1 + limits::KEY_LIFETIME_MS);
        assert!(!known.is_expired(last) && known.is_expired(Time(last.0 + 1)));
        assert!(!state.keys.find("b").unwrap().is_expired(Time(last.0 + 1)));
        let next = with_fingerprint(3, "c");
        state.fold(&Event { seq: state.upto().next(), at: Time(last.0 + 1), body: next });
        assert!(state.keys.find("a").is_none() && state.keys.find("b").is_some());
    }
}
