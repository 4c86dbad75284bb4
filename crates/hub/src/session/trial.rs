//! An agent that says it has a session may have none: the first prompt shows it, and if it does, the
//! climb goes on with that prompt.

use super::{Stage, Waking, refusal::Refusal};
use crate::{AgentId, Hub, SessionId, Time};
use jackfield_events::AgentSessionId;
use jackfield_events::Rung;
use jackfield_protocol::{Frame, is_planted};
use serde_json::Value;

/// How a session stands with the agent it was woken in.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// When its last process is not waited for any longer.
    pub(super) parted_at: Option<Time>,
    /// Told to the agent before the next prompt, until a turn has ended well.
    pub(super) digest: Option<String>,
    /// What the agent called the session before it was given another: it may still answer about it.
    pub(super) former: Option<AgentSessionId>,
    /// The agent said that it has the session, and no turn has shown it yet.
    pub(super) trial: Option<Trial>,
}

#[derive(Debug)]
pub(super) struct Trial {
    pub(super) rung: Rung,
    pub(super) tried: Vec<Value>,
    /// The first prompt since.
    pub(super) prompt: Option<(u64, Frame)>,
}

impl Hub {
    /// The agent said something in a turn, so it has the session.
    pub(crate) fn prove(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id).filter(|it| it.turn.is_some()) {
            session.standing.trial = None;
        }
    }

    /// The agent answered a prompt. If it was the first since it said that it has the session, and
    /// it now says that there is none, the climb goes on with the same prompt: nothing of it was
    /// done. True if so.
    pub(crate) fn disowns(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        turn: u64,
        frame: &Frame,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let trial = session.standing.trial.take();
        let overdue = session.turn.as_ref().is_some_and(super::turn::Turn::is_overdue);
        if !overdue
            && frame.result().is_some_and(|it| !is_cancelled(it))
            && !is_planted("repeat-digest")
        {
            session.standing.digest = None;
        }
        let refusal = Refusal::of(frame);
        if frame.result().is_some() || !refusal.is_unknown() || !session.is_bound() {
            return false;
        }
        let Some(Trial { rung, tried, prompt: Some(prompt) }) = trial else { return false };
        let runs = |it: &super::turn::Turn| it.number == turn && !it.is_cancelled();
        if !session.turn.as_ref().is_some_and(runs) {
            // Nobody wants this prompt any more; the next one shows the same.
            session.standing.trial = Some(Trial { rung, tried, prompt: None });
            return false;
        }
        let why = format!("the first prompt was refused: {}", refusal.words());
        session.stage = Stage::Waking(Waking::after_all(tried, rung, why, prompt));
        self.climb(agent, id);
        true
    }
}

fn is_cancelled(result: &str) -> bool {
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    result["stopReason"] == "cancelled"
}
