//! How a session's log becomes another's: each event under the new name, and the fact of the fork
//! behind them.

use bytes::Bytes;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{Seq, SessionId};
use jackfield_journal::{LineTranslator, StoredEvent};

/// Stands where the summary of a session stands, as long as the copy is not whole. No summary can
/// be read from it, so nobody takes the copy for a session.
pub(crate) const UNFINISHED: &[u8] = b"a copy that is not finished";

pub(crate) struct Fork {
    to: SessionId,
    state: SessionSummary,
    last: SessionEvent,
}

impl Fork {
    pub(crate) fn new(to: SessionId, last: SessionEvent) -> Fork {
        Fork { to, state: SessionSummary::default(), last }
    }
}

impl LineTranslator for Fork {
    fn unfinished_summary(&self) -> Bytes {
        Bytes::from_static(UNFINISHED)
    }

    fn translate_line(&mut self, line: &StoredEvent, out: &mut Vec<u8>) -> Result<(), String> {
        let event = SessionEvent::decode(Seq(line.seq), &line.line).map_err(|error| error.why)?;
        let event = event.with_session_id(&self.to);
        self.state.fold(&event);
        event.encode(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Bytes {
        self.state.fold(&self.last);
        self.last.encode(out);
        self.state.to_summary()
    }
}
