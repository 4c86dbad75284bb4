//! Updates that an agent sends before it reports the id of the session that they concern.

use super::Agents;
use crate::{AgentId, Note, context::HubContext};
use jackfield_protocol::{Frame, is_planted};

impl Agents {
    /// Retains an update in order, up to a limit; the error says which limit was exceeded.
    pub(crate) fn keep_early_update(
        &mut self,
        cx: &HubContext,
        id: AgentId,
        frame: Frame,
    ) -> Result<(), String> {
        let Some(agent) = self.processes.get_mut(&id) else { return Ok(()) };
        let max = cx.config.limits.early_max;
        let charge = cx.retained_bytes.charge(&agent.kept, frame.bytes().len());
        let charge = charge.map_err(|over| over.to_string())?;
        if max <= agent.early_updates.len() {
            return Err(format!("more than {max} messages"));
        }
        if is_planted("keep-last-early-update") {
            agent.early_updates.clear();
        }
        agent.early_updates.push((frame, charge));
        Ok(())
    }

    /// Takes the updates that the agent sent before it reported the id of this session.
    pub(crate) fn take_early_updates(&mut self, agent: AgentId, name: &str) -> Vec<Frame> {
        let Some(agent) = self.processes.get_mut(&agent) else { return Vec::new() };
        let has_one_session = agent.slots.only().is_some();
        let is_its = |it: &Frame| has_one_session || it.session_id().as_deref() == Some(name);
        let its = agent.early_updates.extract_if(.., |(it, _)| is_its(it));
        its.map(|(frame, _)| frame).collect()
    }

    /// All session ids are known: updates of unknown sessions are dropped.
    pub(crate) fn drop_unclaimed_updates(&mut self, cx: &mut HubContext, id: AgentId) {
        let agent = self.processes.get_mut(&id).filter(|it| !it.awaits_session_id());
        let Some(agent) = agent else { return };
        for _ in std::mem::take(&mut agent.early_updates) {
            cx.note(Note::Unclaimed { agent: id });
        }
    }
}
