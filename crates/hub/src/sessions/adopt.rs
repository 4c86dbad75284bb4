//! Takes over a session: this host owns it from now on. Turns and requests that were open at its last host are ended.

use super::Sessions;
use crate::{Note, Output, SessionId, context::HubContext, session::Session};
use jackfield_events::{EventBody, HostId, INTERRUPTED_LATER_SUFFIX, SessionMoved, SessionSummary};
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
        let had_open_work = state.open_turn.is_some() || !state.open_asks.is_empty();
        cx.shared_texts.share_all(&mut state);
        let mut session = Session::recovered(id.clone(), state);
        session.count_queue(&cx.retained_bytes);
        session.index_keys(cx);
        match &from {
            Some(from) => {
                let lost = format!("host `{from}` was lost");
                let why =
                    if had_open_work { lost.clone() } else { format!("host `{from}` has left it") };
                let to = cx.config.host.clone();
                let moved = SessionMoved { from: from.clone(), to, why: why.into() };
                session.append_event(cx, EventBody::Moved(moved));
                if !is_planted("take-over-without-ending-turn") {
                    session.end_open_work(cx, &lost, &format!("{lost}{INTERRUPTED_LATER_SUFFIX}"));
                }
            }
            None => session.end_turn_of_last_daemon(cx),
        }
        self.by_id.insert(session);
        cx.note(Note::SessionAdopted { session: id.clone(), from });
        cx.schedule_unattended_check(id);
    }
}
