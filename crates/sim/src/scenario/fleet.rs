//! Sessions that come and go between hosts: `host adopts $session from west`.

use super::stage::Stage;
use jackfield_events::SessionSummary;
use jackfield_hub::{AppendFailure, Input, SessionId};

impl Stage {
    pub(super) fn moves(&mut self, deed: &str, place: &str) {
        let deed = self.names.fill(deed);
        match deed.split(' ').collect::<Vec<_>>()[..] {
            ["lets", session, "go"] => self.feed(Input::LetGo { session: session.into() }),
            ["has", "let", session, "go"] => {
                assert!(self.let_gone.remove(session), "{place}: it still has {session}");
            }
            ["has", "not", "let", session, "go"] => {
                assert!(!self.let_gone.contains(session), "{place}: it has let {session} go");
            }
            ["adopts", session, "from", host] => self.adopt(session.into(), Some(host)),
            ["adopts", session] => self.adopt(session.into(), None),
            ["loses", session] => {
                let why = AppendFailure::Fenced;
                self.feed(Input::AppendFailed { session: session.into(), why });
            }
            _ => panic!("{place}: `host {deed}` means nothing"),
        }
    }

    fn adopt(&mut self, session: SessionId, from: Option<&str>) {
        let state = Box::new(self.folded(&session));
        self.feed(Input::Adopted { session, state, from: from.map(Into::into) });
    }

    /// What the journal says about a session.
    pub(super) fn folded(&self, session: &SessionId) -> SessionSummary {
        let mut state = SessionSummary::default();
        for event in self.journal.get(session).into_iter().flatten() {
            state.fold(event);
        }
        state
    }
}
