//! Adopting a session: this host becomes its owner, and nobody else is any more. From then on it is
//! as if it had been here from the start; what was running where it was is over.

use super::Session;
use crate::{Hub, Note, Output, SessionId};
use jackfield_events::{EventBody, HostId, SessionMoved, SessionSummary};
use jackfield_protocol::is_planted;

impl Hub {
    pub(crate) fn on_adopted(
        &mut self,
        id: &SessionId,
        mut state: SessionSummary,
        from: Option<HostId>,
    ) {
        let is_served = self.sessions.contains_key(id) && !is_planted("take-over-own-session");
        if self.cx.is_stopping || is_served || self.forks.contains_key(id) {
            return;
        }
        if state.importing {
            // An import that the end of its host cut short: nobody was told of it.
            return self.cx.outputs.push_back(Output::Delete { session: id.clone() });
        }
        let torn = state.open_turn.is_some() || !state.open_asks.is_empty();
        self.cx.shared_texts.share_all(&mut state);
        let mut session = Session::recovered(state);
        session.count_queue(&self.cx.retained_bytes);
        self.sessions.insert(id.clone(), session);
        self.index_keys(id);
        match &from {
            Some(from) => {
                let lost = format!("host `{from}` was lost");
                let why = if torn { lost.clone() } else { format!("host `{from}` has left it") };
                let to = self.cx.config.host.clone();
                self.append(
                    id,
                    EventBody::Moved(SessionMoved { from: from.clone(), to, why: why.into() }),
                );
                if !is_planted("take-over-without-ending-turn") {
                    self.settle(id, &lost, &format!("{lost} during the turn"));
                }
            }
            None => self.settle_here(id),
        }
        self.note(Note::SessionAdopted { session: id.clone(), from });
        self.is_unattended(id);
    }
}
