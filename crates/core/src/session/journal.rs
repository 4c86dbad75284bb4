//! When the journal cannot append: hold, try again, or let the session go if it is another's now.

use crate::{AppendFailure, Hub, Note, Output, SessionId, limits, timer::Timer};
use jackfield_wire::Fault;

impl Hub {
    pub(crate) fn on_append_failed(&mut self, id: &SessionId, why: AppendFailure) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match why {
            AppendFailure::Fenced => {
                let held = session.gate.held().count();
                let fault = Fault::Fenced { session: id.to_string() };
                self.remove(id, &fault);
                self.note(Note::SessionFenced { session: id.clone(), held });
                self.after_stop();
            }
            AppendFailure::Unavailable { why } => {
                let pause = limits::APPEND_RETRY_MS << session.append_failures.min(16);
                let pause = pause.min(limits::APPEND_RETRY_MS_MAX);
                session.append_failures += 1;
                session.stalled = true;
                let held = session.gate.held().count();
                self.timers.set(self.now.plus(pause), Timer::AppendRetry(id.clone()));
                self.note(Note::AppendRetried { session: id.clone(), held, why });
            }
        }
    }

    /// Sends everything held once more. What the journal already has of it, it skips.
    pub(crate) fn append_again(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stalled = false;
        let summary = session.state.to_summary();
        let head = session.gate.head();
        for event in session.gate.held() {
            let summary = (event.seq == head).then(|| summary.clone());
            let event = event.clone();
            self.outputs.push_back(Output::Append { session: id.clone(), event, summary });
        }
    }
}
