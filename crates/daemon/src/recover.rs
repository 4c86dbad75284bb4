//! From the journal to the hub's memory: each session's summary, and the events after it folded in.

use crate::copy::UNFINISHED;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{Recovered, Seq, SessionId, log::Texts};
use jackfield_journal::{Journal, ReadError, StreamInfo};

const SLICE_EVENTS: usize = 4096;
const SLICE_BYTES: usize = 4 * 1024 * 1024;

/// Reads every session. One that cannot be read is left alone and reported, never guessed.
pub(crate) fn recover(journal: &Journal) -> Result<Vec<Recovered>, ReadError> {
    let (mut recovered, mut unfinished) = (Vec::new(), Vec::new());
    let mut texts = Texts::default();
    // Most summaries are whole. They are taken one at a time, or ten thousand of them would leave
    // their mark on the memory of a daemon that needs none of it.
    journal.for_each_stream(|stream| match SessionSummary::from_summary(&stream.summary) {
        Ok(state) if state.upto() == Seq(stream.head) => {
            recovered.push(shared(&mut texts, stream.name.into(), state));
        }
        _ => unfinished.push(stream),
    })?;
    for stream in unfinished.into_iter().filter(|it| it.head != 0) {
        if *stream.summary == *UNFINISHED {
            // The last daemon died over it, and nobody was told that it is there.
            forget(journal, &stream);
            continue;
        }
        match state(journal, &stream) {
            Ok(state) => recovered.push(shared(&mut texts, stream.name.into(), state)),
            Err(why) => {
                tracing::error!(session = %stream.name, why, "a session cannot be read; it is left as it is");
            }
        }
    }
    Ok(recovered)
}

fn forget(journal: &Journal, stream: &StreamInfo) {
    let session = &stream.name;
    match journal.delete_stream(session) {
        Ok(()) => tracing::info!(%session, "a copy that was never finished is gone"),
        Err(error) => {
            tracing::warn!(%session, %error, "a copy that was never finished is still there");
        }
    }
}

fn shared(texts: &mut Texts, session: SessionId, mut state: SessionSummary) -> Recovered {
    texts.share_all(&mut state);
    Recovered { session, state }
}

/// What the log of a session says: its summary, and the events after it.
pub(crate) fn state(journal: &Journal, stream: &StreamInfo) -> Result<SessionSummary, String> {
    let summary =
        (!stream.summary.is_empty()).then(|| SessionSummary::from_summary(&stream.summary));
    let mut state = summary.transpose().map_err(|error| error.to_string())?.unwrap_or_default();
    while state.upto() < Seq(stream.head) {
        let events = journal
            .read_events(&stream.name, state.upto().0, SLICE_EVENTS, SLICE_BYTES)
            .map_err(|error| error.to_string())?;
        if events.is_empty() {
            return Err(format!("the log ends at {}, not at {}", state.upto().0, stream.head));
        }
        for event in events {
            let event =
                SessionEvent::decode(Seq(event.seq), &event.line).map_err(|error| error.why)?;
            state.fold(&event);
        }
    }
    Ok(state)
}

/// How many records an earlier daemon has acknowledged that the journal does not have.
pub(crate) fn report_lost_records(journal: &Journal) -> Option<u64> {
    let records = journal.lost_records()?.count;
    tracing::error!(
        records,
        "the journal lacks its last records, which were acknowledged: its WAL was removed or cut, an older copy was \
         put in its place, or the power failed"
    );
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Fork;
    use jackfield_events::{AgentMessage, EventBody, RawJson, SessionForked, SessionOpened};
    use jackfield_hub::{SessionId, Time};
    use jackfield_journal::{AppendRequest, JournalCompletion, LineTranslator, NonBlockingJournal};
    use std::{sync::mpsc, time::Duration};

    fn event(seq: u64, body: EventBody) -> SessionEvent {
        SessionEvent { seq: Seq(seq), at: Time(seq), body }
    }

    fn said(session: &str, text: &str) -> EventBody {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","t":"{text}"}}}}"#
        );
        EventBody::Said(AgentMessage { turn: 0, late: false, frame: RawJson::trusted(frame) })
    }

    fn opened() -> EventBody {
        EventBody::Opened(SessionOpened {
            agent: "claude".into(),
            argv: Vec::new(),
            cwd: "/x".into(),
            params: RawJson::trusted("{}"),
            agent_session: "a1".into(),
            setup: RawJson::null(),
            fallback: None,
        })
    }

    fn forked() -> EventBody {
        let (from, cwd) = ("s-1".into(), "/y".into());
        EventBody::Forked(SessionForked {
            from,
            seq_there: Seq(2),
            cwd,
            params: RawJson::trusted("{}"),
        })
    }

    /// A session of three events.
    fn journal() -> Journal {
        let journal = Journal::in_memory();
        let mut state = SessionSummary::default();
        let (mut body, mut count) = (Vec::new(), 0);
        for fact in [opened(), said("s-1", "one"), said("s-1", "two")] {
            count += 1;
            let event = event(count, fact);
            if count != 1 {
                body.push(b'\n');
            }
            event.encode(&mut body);
            state.fold(&event);
        }
        let epoch = journal.claim_stream("s-1").unwrap().epoch;
        let (stream, body, summary) = ("s-1".into(), body.into(), Some(state.to_summary()));
        let append = AppendRequest { stream, epoch, first: 1, count: 3, body, summary };
        journal.append_batch(&[append]).remove(0).unwrap();
        journal
    }

    #[test]
    fn a_fork_is_recovered_as_the_hub_was_told() {
        let journal = journal();
        let (tx, done) = mpsc::channel();
        let port = NonBlockingJournal::start(journal.clone(), move |it| tx.send(it).unwrap());
        let to: SessionId = "s-2".into();
        let fork = Box::new(Fork::new(to.clone(), event(3, forked())));
        assert!(port.start_copy("s-1".into(), 2, to.into(), fork).is_none());
        let done = done.recv_timeout(Duration::from_secs(30)).unwrap();
        let JournalCompletion::Copied { summary, .. } = done else { panic!("{done:?}") };
        port.stop();
        let mut recovered = recover(&journal).unwrap();
        let fork = recovered.remove(1);
        assert_eq!((&*fork.session, fork.state.upto()), ("s-2", Seq(3)));
        assert_eq!(fork.state, SessionSummary::from_summary(&summary).unwrap());
        assert_eq!((&*fork.state.agent_session, &*fork.state.cwd), ("", "/y"));
        assert_eq!(&*fork.state.forked.unwrap().agent_session, "a1");
        let lines = journal.read_events("s-2", 0, 10, 10_000).unwrap();
        let second = SessionEvent::decode(Seq(2), &lines[1].line).unwrap();
        assert_eq!(second.body, said("s-2", "one"));
    }

    #[test]
    fn a_copy_that_a_crash_cut_is_no_session_and_is_gone() {
        let journal = journal();
        let unfinished = Fork::new("s-2".into(), event(3, forked())).unfinished_summary();
        let epoch = journal.claim_stream("s-2").unwrap().epoch;
        let mut body = Vec::new();
        event(1, opened()).encode(&mut body);
        let (stream, body, summary) = ("s-2".into(), body.into(), Some(unfinished));
        let append = AppendRequest { stream, epoch, first: 1, count: 1, body, summary };
        journal.append_batch(&[append]).remove(0).unwrap();
        let recovered = recover(&journal).unwrap();
        assert_eq!(recovered.len(), 1);
        assert_eq!(journal.list_streams().unwrap().len(), 1);
    }
}
