//! Copies a session's log for a fork: each event with the new session id, followed by the fork
//! event.

use bytes::Bytes;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{Seq, SessionId};
use jackfield_journal::{LineTranslator, StoredEvent};

/// Stored in place of the summary until the copy is complete. It cannot be parsed as a summary, so
/// an incomplete copy is not taken for a session.
pub(crate) const UNFINISHED_SUMMARY: &[u8] = b"a copy that is not finished";

pub(crate) struct ForkTranslator {
    to: SessionId,
    state: SessionSummary,
    last: SessionEvent,
}

impl ForkTranslator {
    pub(crate) fn new(to: SessionId, last: SessionEvent) -> ForkTranslator {
        ForkTranslator { to, state: SessionSummary::default(), last }
    }
}

impl LineTranslator for ForkTranslator {
    fn unfinished_summary(&self) -> Bytes {
        Bytes::from_static(UNFINISHED_SUMMARY)
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
