//! The progress of restoring a session: the steps that were tried, what the session waits for, and which updates of the
//! agent are a replay of the conversation.

use super::{reseed::LogRecall, settings::PendingSettings};
use crate::{Time, agent::RestoreMethod, limits};
use jackfield_events::{AgentSessionId, RestoreStep};
use jackfield_protocol::{Frame, is_planted};
use serde_json::{Value, json};

/// Updates about the current state of a session. Titles and modes are not among them: in a replay they are old, and
/// the journal has the latest.
const CURRENT_STATE: [&str; 3] =
    ["available_commands_update", "config_option_update", "usage_update"];

/// Updates that are part of the conversation. An agent that has no conversation sends none of them.
const CONVERSATION: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

/// The progress of restoring a session.
#[derive(Debug, Default)]
pub(crate) struct SessionRestore {
    pub(super) tried: Vec<Value>,
    pub(super) way: Option<RestoreMethod>,
    pub(super) step: Step,
    /// It sent user messages without a prompt, so it replays the conversation.
    pub(super) retells: bool,
    /// It sent a part of the conversation.
    pub(super) tells: bool,
    pub(super) found: Option<RestoredSession>,
    /// It was refused once because another process has the session open.
    pub(super) was_locked: bool,
    /// The prompt that showed that an earlier step had not worked. It is sent again.
    pub(super) again: Option<(u64, Frame)>,
}

/// What the session waits for.
#[derive(Debug, Default)]
pub(super) enum Step {
    /// The response of the agent, or its start.
    #[default]
    Asked,
    /// The end of the replay after the response.
    Listening { setup: String, quiet_at: Time, latest: Time },
    /// The time of a retry.
    Pausing { until: Time },
    /// Events from the journal.
    Recalling(LogRecall),
    /// The responses to settings.
    Settling(PendingSettings),
}

/// The step that worked.
#[derive(Debug)]
pub(super) struct RestoredSession {
    pub(super) step: RestoreStep,
    pub(super) setup: String,
    /// The session id of the agent, if it is new.
    pub(super) agent_session_id: Option<AgentSessionId>,
    pub(super) digest: Option<String>,
}

impl SessionRestore {
    /// The session id of the agent, if it has reported a new one.
    pub(crate) fn agent_session_id(&self) -> Option<&AgentSessionId> {
        self.found.as_ref()?.agent_session_id.as_ref()
    }

    /// Whether a new session was requested and its id is not reported yet.
    pub(crate) fn is_nameless(&self) -> bool {
        self.found.is_none() && matches!(self.way, Some(RestoreMethod::New | RestoreMethod::Fork))
    }

    /// Whether the agent knows which session is meant.
    pub(crate) fn has_named(&self) -> bool {
        self.found.is_some()
            || matches!(self.way, Some(RestoreMethod::Resume | RestoreMethod::Load))
    }

    /// Handles an update during the restore. Returns it if it is not part of a replay.
    pub(crate) fn filter_replay(
        &mut self,
        frame: Frame,
        journaled: bool,
        now: Time,
    ) -> Option<Frame> {
        let past = journaled && self.found.is_none() && self.is_past(&frame, now);
        (!past || is_planted("log-replay-of-load")).then_some(frame)
    }

    /// Whether an update is part of a replay. Some agents replay on `session/resume`, which they should not, and some
    /// continue after they have answered `session/load`.
    pub(super) fn is_past(&mut self, update: &Frame, now: Time) -> bool {
        let kind = update.update().unwrap_or_default();
        if CURRENT_STATE.contains(&&*kind) {
            return false;
        }
        self.retells |= kind == "user_message_chunk";
        self.tells |= CONVERSATION.contains(&&*kind);
        if let Step::Listening { quiet_at, latest, .. } = &mut self.step {
            *quiet_at = now.plus(limits::LOAD_QUIET_MS).min(*latest);
        }
        self.way != Some(RestoreMethod::Resume) || self.retells
    }

    pub(super) fn give_reason(&mut self, step: RestoreStep, why: impl Into<String>) {
        self.tried.push(json!({ "restore": step.as_str(), "why": why.into() }));
    }

    /// A step turned out not to work: the next one is tried, with the prompt that showed it.
    pub(super) fn after_all(
        tried: Vec<Value>,
        step: RestoreStep,
        why: String,
        again: (u64, Frame),
    ) -> SessionRestore {
        let mut restoring =
            SessionRestore { tried, again: Some(again), ..SessionRestore::default() };
        restoring.tried.retain(|it| it["restore"].is_string() && it["restore"] != step.as_str());
        restoring.give_reason(step, why);
        restoring
    }

    pub(super) fn was_tried(&self, way: RestoreMethod) -> bool {
        self.tried.iter().any(|it| it["restore"] == way.step().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_without_end_is_waited_for_only_so_long() {
        let said = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}"#;
        let said = Frame::parse_str(said).unwrap();
        let (quiet_at, latest) = (Time(100), Time(5_000));
        let step = Step::Listening { setup: String::new(), quiet_at, latest };
        let mut restoring =
            SessionRestore { way: Some(RestoreMethod::Load), step, ..SessionRestore::default() };
        let mut quiet_at = |now: u64| {
            assert!(restoring.is_past(&said, Time(now)));
            let Step::Listening { quiet_at, .. } = &restoring.step else { panic!("it listens") };
            *quiet_at
        };
        assert_eq!(quiet_at(90), Time(90 + limits::LOAD_QUIET_MS));
        assert_eq!(quiet_at(4_990), Time(5_000));
    }
}
