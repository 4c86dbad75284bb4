//! Prompts that carry a key. A client that repeats such a prompt gets the turn that it started, and no
//! second one.

use crate::{
    RawJson, RequestKey, Seq, Time, TurnOutcome,
    limits::{
        FINGERPRINTED_KEYS_MAX, FINGERPRINTED_OUTCOME_BYTES_MAX, KEY_LIFETIME_MS,
        KEYED_OUTCOME_BYTES_MAX, KEYED_PROMPTS_MAX,
    },
};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The reason of a prompt that was withdrawn by `session/cancel`. It is answered with the stop reason
/// `cancelled`, as ACP requires.
pub const SESSION_CANCELLED: &str = "the session was cancelled";

/// The last prompts of a session that carried a key, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedPrompts(VecDeque<KeyedPrompt>);

/// A prompt with a key, and its turn and outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedPrompt {
    #[serde(flatten)]
    pub request: RequestKey,
    /// The first event of the prompt, and its time. Both are 0 in summaries of earlier versions.
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub at: u64,
    /// Its number in the queue, if it was queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
    /// The turn that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The outcome of the turn, or an error if the prompt was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TurnOutcome>,
}

impl KeyedPrompts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latest prompt with this key.
    pub fn find(&self, key: &str) -> Option<&KeyedPrompt> {
        self.0.iter().rfind(|it| &*it.request.key == key)
    }

    pub fn iter(&self) -> impl Iterator<Item = &KeyedPrompt> {
        self.0.iter()
    }

    pub fn last(&self) -> Option<&KeyedPrompt> {
        self.0.back()
    }

    pub(crate) fn on_queued(&mut self, (seq, at): (Seq, Time), frame: &RawJson, prompt: u64) {
        self.add((seq, at), frame, Some(prompt), None);
    }

    pub(crate) fn on_turn_started(
        &mut self,
        (seq, at): (Seq, Time),
        frame: &RawJson,
        prompt: Option<u64>,
        turn: u64,
    ) {
        let waited = self.0.iter_mut().rfind(|it| prompt.is_some() && it.prompt == prompt);
        match waited {
            Some(it) => it.turn = Some(turn),
            None => self.add((seq, at), frame, prompt, Some(turn)),
        }
    }

    pub(crate) fn on_ended(&mut self, turn: u64, outcome: &TurnOutcome) {
        if let Some(it) = self.0.iter_mut().rfind(|it| it.turn == Some(turn)) {
            it.outcome = Some(stored_outcome(outcome, it.outcome_bytes_max()));
        }
    }

    pub(crate) fn on_withdrawn(&mut self, prompt: u64, why: &str) {
        if let Some(it) = self.0.iter_mut().rfind(|it| it.prompt == Some(prompt)) {
            it.outcome = Some(if why == SESSION_CANCELLED {
                TurnOutcome::Stopped(RawJson::trusted(r#"{"stopReason":"cancelled"}"#))
            } else {
                let fault = Fault::Interrupted { why: why.to_owned() };
                TurnOutcome::Interrupted(RawJson::trusted(fault.to_json()))
            });
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn add(
        &mut self,
        (seq, at): (Seq, Time),
        frame: &RawJson,
        prompt: Option<u64>,
        turn: Option<u64>,
    ) {
        let frame = Frame::parse(frame.bytes().clone()).ok();
        let Some(request) = frame.and_then(|it| RequestKey::from_frame(&it).ok()?) else { return };
        self.0.retain(|it| it.outcome.is_none() || !it.is_expired(at));
        let is_alike =
            |it: &KeyedPrompt| it.request.fingerprint.is_some() == request.fingerprint.is_some();
        let max = match request.fingerprint {
            Some(_) => FINGERPRINTED_KEYS_MAX,
            None => KEYED_PROMPTS_MAX,
        };
        // Prompts without an outcome are bounded by the queue.
        let max = if is_planted("keep-one-prompt-key") { 1 } else { max };
        if max <= self.0.iter().filter(|it| is_alike(it)).count()
            && let Some(oldest) = self.0.iter().position(|it| is_alike(it) && it.outcome.is_some())
        {
            self.0.remove(oldest);
        }
        self.0.push_back(KeyedPrompt {
            request,
            seq: seq.0,
            at: at.0,
            prompt,
            turn,
            outcome: None,
        });
    }
}

impl KeyedPrompt {
    /// More prompts with a fingerprint are kept, so each outcome gets less room.
    fn outcome_bytes_max(&self) -> usize {
        match self.request.fingerprint {
            Some(_) => FINGERPRINTED_OUTCOME_BYTES_MAX,
            None => KEYED_OUTCOME_BYTES_MAX,
        }
    }

    /// Whether the key may be used for another request. A key without a fingerprint does not expire; it
    /// is forgotten when newer keys take its place.
    pub fn is_expired(&self, now: Time) -> bool {
        self.request.fingerprint.is_some() && is_key_expired(Time(self.at), now)
    }
}

/// Whether a key that was first used at one time has expired at another.
pub fn is_key_expired(first_used_at: Time, now: Time) -> bool {
    KEY_LIFETIME_MS < now.since(first_used_at)
}

/// The outcome as it is stored: one that is too large is reduced to its reason.
fn stored_outcome(outcome: &TurnOutcome, bytes_max: usize) -> TurnOutcome {
    if outcome.json().bytes().len() <= bytes_max {
        return outcome.clone();
    }
    let value: Value = serde_json::from_str(outcome.json().as_str()).unwrap_or_default();
    let error = || {
        let message = value["message"].as_str().unwrap_or_default().chars();
        let message: String = message.take(bytes_max / 8).collect();
        RawJson::trusted(json!({ "code": value["code"].as_i64(), "message": message }).to_string())
    };
    match outcome {
        TurnOutcome::Stopped(_) => {
            let reason = outcome.stop_reason();
            TurnOutcome::Stopped(RawJson::trusted(json!({ "stopReason": reason }).to_string()))
        }
        TurnOutcome::Failed(_) => TurnOutcome::Failed(error()),
        TurnOutcome::Interrupted(_) => TurnOutcome::Interrupted(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EventBody, PromptQueued, PromptWithdrawn, SessionEvent, SessionSummary, TurnEnded,
        TurnStarted,
    };
    use std::sync::Arc;

    fn prompt(key: &str) -> RawJson {
        let text = format!(
            r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"s-1","_meta":{{"jackfield":{{"key":"{key}"}}}},"prompt":[]}}}}"#
        );
        RawJson::trusted(text)
    }

    fn state(bodies: impl IntoIterator<Item = EventBody>) -> SessionSummary {
        let mut state = SessionSummary::default();
        for body in bodies {
            state.fold(&SessionEvent { seq: state.upto().next(), at: Time(1), body });
        }
        state
    }

    fn prompted(turn: u64, key: &str) -> EventBody {
        EventBody::Prompted(TurnStarted {
            turn,
            by: "zed".into(),
            prompt: None,
            frame: prompt(key),
        })
    }

    fn ended(turn: u64) -> EventBody {
        let outcome = TurnOutcome::Stopped(RawJson::trusted(r#"{"stopReason":"end_turn"}"#));
        EventBody::Ended(TurnEnded { turn, outcome })
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
        let queued =
            || EventBody::Queued(PromptQueued { prompt: 1, by: by.clone(), frame: prompt("a") });
        let began = EventBody::Prompted(TurnStarted {
            turn: 1,
            by: by.clone(),
            prompt: Some(1),
            frame: prompt("a"),
        });
        let known = state([queued(), began]).keys.find("a").unwrap().clone();
        assert_eq!((known.prompt, known.turn, known.outcome), (Some(1), Some(1), None));
        let withdrawn =
            |why: &str| EventBody::Withdrawn(PromptWithdrawn { prompt: 1, why: why.into() });
        let cancelled =
            state([queued(), withdrawn(SESSION_CANCELLED)]).keys.find("a").unwrap().clone();
        assert_eq!(cancelled.outcome.unwrap().stop_reason().as_deref(), Some("cancelled"));
        let closed = state([queued(), withdrawn("closed")]).keys.find("a").unwrap().clone();
        assert!(closed.outcome.unwrap().json().as_str().contains("interrupted: closed"));
    }

    #[test]
    fn the_summary_has_the_keys_and_an_old_one_has_none() {
        let state = state([prompted(1, "a"), ended(1), prompted(2, "b")]);
        assert_eq!(SessionSummary::from_summary(&state.to_summary()).unwrap(), state);
        let old = SessionSummary::from_summary(br#"{"seq":3,"turns":1}"#).unwrap();
        assert_eq!((old.upto(), old.keys.is_empty()), (Seq(3), true));
    }

    #[test]
    fn the_oldest_that_is_over_is_forgotten_first() {
        let turns = 1..=KEYED_PROMPTS_MAX as u64 + 1;
        let open = prompted(0, "open");
        let turns = turns.flat_map(|it| [prompted(it, &it.to_string()), ended(it)]);
        let state = state(std::iter::once(open).chain(turns));
        assert_eq!(state.keys.0.len(), KEYED_PROMPTS_MAX);
        assert!(state.keys.find("open").is_some() && state.keys.find("3").is_some());
        assert!(state.keys.find("1").is_none() && state.keys.find("2").is_none());
    }

    #[test]
    fn of_a_huge_outcome_the_reason_is_stored_outcome() {
        let more = "x".repeat(KEYED_OUTCOME_BYTES_MAX);
        let result = json!({ "stopReason": "end_turn", "_meta": more }).to_string();
        let outcome = TurnOutcome::Stopped(RawJson::trusted(result));
        assert_eq!(
            stored_outcome(&outcome, KEYED_OUTCOME_BYTES_MAX).json().as_str(),
            r#"{"stopReason":"end_turn"}"#
        );
        let error = json!({ "code": -5, "message": "no", "data": more }).to_string();
        let outcome = TurnOutcome::Failed(RawJson::trusted(error));
        assert_eq!(
            stored_outcome(&outcome, KEYED_OUTCOME_BYTES_MAX).json().as_str(),
            r#"{"code":-5,"message":"no"}"#
        );
    }

    fn with_fingerprint(turn: u64, key: &str) -> EventBody {
        let ours = format!(r#"{{"key":"{key}","fingerprint":"f"}}"#);
        let text = format!(
            r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"s-1","_meta":{{"jackfield":{ours}}},"prompt":[]}}}}"#
        );
        EventBody::Prompted(TurnStarted {
            turn,
            by: "api".into(),
            prompt: None,
            frame: RawJson::trusted(text),
        })
    }

    #[test]
    fn keys_with_a_fingerprint_are_kept_apart_and_more_of_them() {
        let turns = 1..=KEYED_PROMPTS_MAX as u64 + 1;
        let turns = turns.flat_map(|it| [with_fingerprint(it, &it.to_string()), ended(it)]);
        let state = state([prompted(0, "a"), ended(0)].into_iter().chain(turns));
        assert!(state.keys.find("a").is_some() && state.keys.find("1").is_some());
        let first = state.keys.find("1").unwrap();
        assert_eq!((first.seq, first.at), (3, 1));
        assert_eq!(SessionSummary::from_summary(&state.to_summary()).unwrap(), state);
    }

    #[test]
    fn a_key_with_a_fingerprint_expires_and_is_forgotten_by_the_next_one() {
        let mut state = state([with_fingerprint(1, "a"), ended(1), prompted(2, "b"), ended(2)]);
        let known = state.keys.find("a").unwrap();
        let last = Time(1 + KEY_LIFETIME_MS);
        assert!(!known.is_expired(last) && known.is_expired(Time(last.0 + 1)));
        assert!(!state.keys.find("b").unwrap().is_expired(Time(last.0 + 1)));
        let next = with_fingerprint(3, "c");
        state.fold(&SessionEvent { seq: state.upto().next(), at: Time(last.0 + 1), body: next });
        assert!(state.keys.find("a").is_none() && state.keys.find("b").is_some());
    }
}
