//! An agent may accept a session that it does not have. If the first prompt shows that, the next restore step is tried
//! with the same prompt.

use super::{Session, SessionRestore, SessionStage, refusal::AgentRefusal, turn::Turn};
use crate::{Time, message::HubMessage, parts::HubParts};
use jackfield_events::{AgentSessionId, RestoreStep};
use jackfield_protocol::{Frame, is_planted};
use serde_json::Value;

/// What is known about the last restore of a session.
#[derive(Debug, Default)]
pub(crate) struct RestoreHistory {
    /// Until when the end of its last process is awaited.
    pub(super) end_deadline: Option<Time>,
    /// The digest that is sent before the next prompt, until a turn has completed.
    pub(super) digest: Option<String>,
    /// The former session id of the agent, which it may still use.
    pub(super) former: Option<AgentSessionId>,
    /// The agent claims to have the session, and no turn has verified it yet.
    pub(super) trial: Option<RestoreTrial>,
}

#[derive(Debug)]
pub(super) struct RestoreTrial {
    pub(super) step: RestoreStep,
    pub(super) tried: Vec<Value>,
    /// The first prompt after the restore.
    pub(super) prompt: Option<(u64, Frame)>,
}

impl Session {
    /// The agent sent something in a turn, so it has the session.
    pub(super) fn confirm_restored(&mut self) {
        if self.turn.is_some() {
            self.restore_history.trial = None;
        }
    }

    /// The agent answered a prompt. Returns true if it was the first since the session was restored and the agent
    /// answered that it has no such session. Then the next restore step is tried with the same prompt.
    pub(super) fn retry_unknown_session(
        &mut self,
        parts: &mut HubParts,
        turn: u64,
        frame: &Frame,
    ) -> bool {
        let trial = self.restore_history.trial.take();
        let has_failed = self.turn.as_ref().is_some_and(Turn::has_failed);
        if !has_failed
            && frame.result().is_some_and(|it| !is_cancelled(it))
            && !is_planted("repeat-digest")
        {
            self.restore_history.digest = None;
        }
        let refusal = AgentRefusal::of(frame);
        if frame.result().is_some() || !refusal.is_unknown() || !self.is_bound() {
            return false;
        }
        let Some(RestoreTrial { step, tried, prompt: Some(prompt) }) = trial else { return false };
        let runs = |it: &Turn| it.number == turn && !it.is_cancelled();
        if !self.turn.as_ref().is_some_and(runs) {
            // The prompt was canceled; the next one shows the same.
            self.restore_history.trial = Some(RestoreTrial { step, tried, prompt: None });
            return false;
        }
        let why = format!("the first prompt was refused: {}", refusal.message());
        self.stage = SessionStage::Restoring(SessionRestore::after_all(tried, step, why, prompt));
        parts.cx.post(HubMessage::TryRestoreStep(self.id.clone()));
        true
    }
}

fn is_cancelled(result: &str) -> bool {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    result["stopReason"] == "cancelled"
}
