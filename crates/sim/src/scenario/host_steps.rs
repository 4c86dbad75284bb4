//! Sessions that move between hosts: `host adopts $session from west`.

use super::runner::ScenarioRunner;
use jackfield_events::SessionSummary;
use jackfield_hub::{AppendFailure, Input, SessionId};

impl ScenarioRunner {
    pub(super) fn run_host_step(&mut self, action: &str, location: &str) {
        let action = self.placeholders.fill_text(action);
        match action.split(' ').collect::<Vec<_>>()[..] {
            ["releases", session] => {
                self.feed_input(Input::ReleaseSession { session: session.into() });
            }
            ["has", "released", session] => {
                assert!(self.released.remove(session), "{location}: {session} is not released");
            }
            ["has", "not", "released", session] => {
                assert!(!self.released.contains(session), "{location}: {session} is released");
            }
            ["adopts", session, "from", host] => self.adopt(session.into(), Some(host)),
            ["adopts", session] => self.adopt(session.into(), None),
            ["loses", session] => {
                let why = AppendFailure::Fenced;
                self.feed_input(Input::AppendFailed { session: session.into(), why });
            }
            _ => panic!("{location}: `host {action}` is not a step"),
        }
    }

    fn adopt(&mut self, session: SessionId, from: Option<&str>) {
        let state = Box::new(self.fold_session(&session));
        self.feed_input(Input::Adopted { session, state, from: from.map(Into::into) });
    }

    /// The state of a session according to the journal.
    pub(super) fn fold_session(&self, session: &SessionId) -> SessionSummary {
        let mut state = SessionSummary::default();
        for event in self.journal.get(session).into_iter().flatten() {
            state.fold(event);
        }
        state
    }
}
