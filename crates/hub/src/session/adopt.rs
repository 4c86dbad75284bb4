//! Takes over a session: this host owns it from now on. Turns and requests that were open at its last host are ended.

use super::Session;
use crate::{Note, Output, SessionId, context::HubContext, session::Sessions};
use jackfield_events::{EventBody, HostId, SessionMoved, SessionSummary};
use jackfield_protocol::is_planted;

impl Sessions {
    pub(crate) fn on_taken_over(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        mut state: SessionSummary,
        from: Option<HostId>,
    ) {
        let is_served = self.by_id.contains_key(id) && !is_planted("take-over-own-session");
        if cx.is_stopping || is_served || self.forks.contains_key(id) {
            return;
        }
        if state.importing {
            // An incomplete import of a host that ended: no client knows it.
            return cx.outputs.push_back(Output::Delete { session: id.clone() });
        }
        let torn = state.open_turn.is_some() || !state.open_asks.is_empty();
        cx.shared_texts.share_all(&mut state);
        let mut session = Session::recovered(id.clone(), state);
        session.count_queue(&cx.retained_bytes);
        self.by_id.insert(id.clone(), session);
        self.index_keys(cx, id);
        match &from {
            Some(from) => {
                let lost = format!("host `{from}` was lost");
                let why = if torn { lost.clone() } else { format!("host `{from}` has left it") };
                let to = cx.config.host.clone();
                self.append_event(
                    cx,
                    id,
                    EventBody::Moved(SessionMoved { from: from.clone(), to, why: why.into() }),
                );
                if !is_planted("take-over-without-ending-turn") {
                    self.end_open_work(cx, id, &lost, &format!("{lost} during the turn"));
                }
            }
            None => self.end_turn_of_last_daemon(cx, id),
        }
        cx.note(Note::SessionAdopted { session: id.clone(), from });
        cx.schedule_unattended_check(id);
    }
}
