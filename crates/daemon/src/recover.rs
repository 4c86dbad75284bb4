//! From the journal to the hub's memory: each session's summary, and the events after it folded in.

use jackfield_core::{
    Recovered, Seq,
    log::{Event, State},
};
use jackfield_journal::{Journal, ReadError, Stream};

const SLICE_EVENTS: usize = 4096;
const SLICE_BYTES: usize = 4 * 1024 * 1024;

/// Reads every session. One that cannot be read is left alone and reported, never guessed.
pub(crate) fn recover(journal: &Journal) -> Result<Vec<Recovered>, ReadError> {
    let mut recovered = Vec::new();
    for stream in journal.streams()? {
        if stream.head == 0 {
            continue;
        }
        match state(journal, &stream) {
            Ok(state) => recovered.push(Recovered { session: stream.name, state }),
            Err(why) => {
                tracing::error!(session = %stream.name, why, "a session cannot be read; it is left as it is");
            }
        }
    }
    Ok(recovered)
}

fn state(journal: &Journal, stream: &Stream) -> Result<State, String> {
    let summary = (!stream.summary.is_empty()).then(|| State::from_summary(&stream.summary));
    let mut state = summary.transpose().map_err(|error| error.to_string())?.unwrap_or_default();
    while state.upto() < Seq(stream.head) {
        let events = journal
            .read(&stream.name, state.upto().0, SLICE_EVENTS, SLICE_BYTES)
            .map_err(|error| error.to_string())?;
        if events.is_empty() {
            return Err(format!("the log ends at {}, not at {}", state.upto().0, stream.head));
        }
        for event in events {
            let event = Event::decode(Seq(event.seq), &event.line).map_err(|error| error.why)?;
            state.fold(&event);
        }
    }
    Ok(state)
}
