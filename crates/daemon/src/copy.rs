//! How a session's log becomes another's: each event under the new name, and the fact of the fork
//! behind them.

use bytes::Bytes;
use jackfield_core::{
    Seq, SessionId,
    log::{Event, State},
};
use jackfield_journal::{Event as Line, Translate};

/// Stands where the summary of a session stands, as long as the copy is not whole. No summary can
/// be read from it, so nobody takes the copy for a session.
pub(crate) const UNFINISHED: &[u8] = b"a copy that is not finished";

pub(crate) struct Fork {
    to: SessionId,
    state: State,
    last: Event,
}

impl Fork {
    pub(crate) fn new(to: SessionId, last: Event) -> Fork {
        Fork { to, state: State::default(), last }
    }
}

impl Translate for Fork {
    fn unfinished(&self) -> Bytes {
        Bytes::from_static(UNFINISHED)
    }

    fn line(&mut self, line: &Line, out: &mut Vec<u8>) -> Result<(), String> {
        let event = Event::decode(Seq(line.seq), &line.line).map_err(|error| error.why)?;
        let event = event.moved_to(&self.to);
        self.state.fold(&event);
        event.encode(out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Bytes {
        self.state.fold(&self.last);
        self.last.encode(out);
        self.state.to_summary()
    }
}
