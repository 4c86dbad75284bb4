//! An agent may accept a session that it does not have. If the first prompt shows that, the next restore step is tried
//! with the same prompt.

use super::{SessionRestore, SessionStage, refusal::AgentRefusal};
use crate::{AgentId, Hub, SessionId, Time, session::Sessions};
use jackfield_events::{AgentSessionId, Rung};
use jackfield_protocol::{Frame, is_planted};
use serde_json::Value;

/// What is known about the last restore of a session.
#[derive(Debug, Default)]
pub(crate) struct RestoreHistory {
    /// Until when the end of its last process is awaited.
    pub(super) parted_at: Option<Time>,
    /// The digest that is sent before the next prompt, until a turn has completed.
    pub(super) digest: Option<String>,
    /// The former session id of the agent, which it may still use.
    pub(super) former: Option<AgentSessionId>,
    /// The agent claims to have the session, and no turn has verified it yet.
    pub(super) trial: Option<RestoreTrial>,
}

#[derive(Debug)]
pub(super) struct RestoreTrial {
    pub(super) rung: Rung,
    pub(super) tried: Vec<Value>,
    /// The first prompt after the restore.
    pub(super) prompt: Option<(u64, Frame)>,
}

impl Sessions {
    /// The agent sent something in a turn, so it has the session.
    pub(crate) fn confirm_restored(&mut self, id: &SessionId) {
        if let Some(session) = self.by_id.get_mut(id).filter(|it| it.turn.is_some()) {
            session.restore_history.trial = None;
        }
    }
}

impl Hub {
    /// The agent answered a prompt. Returns true if it was the first since the session was restored and the agent
    /// answered that it has no such session. Then the next restore step is tried with the same prompt.
    pub(crate) fn disowns(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        turn: u64,
        frame: &Frame,
    ) -> bool {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return false };
        let trial = session.restore_history.trial.take();
        let overdue = session.turn.as_ref().is_some_and(super::turn::Turn::is_overdue);
        if !overdue
            && frame.result().is_some_and(|it| !is_cancelled(it))
            && !is_planted("repeat-digest")
        {
            session.restore_history.digest = None;
        }
        let refusal = AgentRefusal::of(frame);
        if frame.result().is_some() || !refusal.is_unknown() || !session.is_bound() {
            return false;
        }
        let Some(RestoreTrial { rung, tried, prompt: Some(prompt) }) = trial else { return false };
        let runs = |it: &super::turn::Turn| it.number == turn && !it.is_cancelled();
        if !session.turn.as_ref().is_some_and(runs) {
            // The prompt was canceled; the next one shows the same.
            session.restore_history.trial = Some(RestoreTrial { rung, tried, prompt: None });
            return false;
        }
        let why = format!("the first prompt was refused: {}", refusal.words());
        session.stage =
            SessionStage::Restoring(SessionRestore::after_all(tried, rung, why, prompt));
        self.try_next_step(agent, id);
        true
    }
}

fn is_cancelled(result: &str) -> bool {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    result["stopReason"] == "cancelled"
}
