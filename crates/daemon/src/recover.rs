//! Recovers sessions from the journal: each session's summary, with the later events folded in.

use crate::copy::UNFINISHED_SUMMARY;
use jackfield_events::{SessionEvent, SessionSummary};
use jackfield_hub::{Recovered, Seq, SessionId, log::Texts};
use jackfield_journal::{Journal, ReadError, StreamInfo};

const READ_EVENTS_MAX: usize = 4096;
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Recovers every session. One that cannot be read is left unchanged and reported.
pub(crate) fn recover_sessions(journal: &Journal) -> Result<Vec<Recovered>, ReadError> {
    let (mut recovered, mut unfinished) = (Vec::new(), Vec::new());
    let mut texts = Texts::default();
    // Most summaries are complete. They are read one at a time, since ten thousand at once would
    // permanently increase the memory of the daemon.
    journal.for_each_stream(|stream| match SessionSummary::from_summary(&stream.summary) {
        Ok(state) if state.upto() == Seq(stream.head) => {
            recovered.push(intern_texts(&mut texts, stream.name.into(), state));
        }
        _ => unfinished.push(stream),
    })?;
    for stream in unfinished.into_iter().filter(|it| it.head != 0) {
        if *stream.summary == *UNFINISHED_SUMMARY {
            // The last daemon died during the copy, and no client knows of it.
            delete_unfinished(journal, &stream);
            continue;
        }
        match read_state(journal, &stream) {
            Ok(state) => {
                recovered.push(intern_texts(&mut texts, stream.name.into(), state));
            }
            Err(why) => {
                tracing::error!(session = %stream.name, why, "failed to read session; leaving it unchanged");
            }
        }
    }
    Ok(recovered)
}

fn delete_unfinished(journal: &Journal, stream: &StreamInfo) {
    let session = &stream.name;
    match journal.delete_stream(session) {
        Ok(()) => tracing::info!(%session, "deleted unfinished copy of a session"),
        Err(error) => {
            tracing::warn!(%session, %error, "failed to delete unfinished copy of a session");
        }
    }
}

fn intern_texts(texts: &mut Texts, session: SessionId, mut state: SessionSummary) -> Recovered {
    texts.share_all(&mut state);
    Recovered { session, state }
}

/// The state of a session: its summary, and the later events.
pub(crate) fn read_state(journal: &Journal, stream: &StreamInfo) -> Result<SessionSummary, String> {
    let summary =
        (!stream.summary.is_empty()).then(|| SessionSummary::from_summary(&stream.summary));
    let mut state = summary.transpose().map_err(|error| error.to_string())?.unwrap_or_default();
    while state.upto() < Seq(stream.head) {
        let events = journal
            .read_events(&stream.name, state.upto().0, READ_EVENTS_MAX, READ_BYTES_MAX)
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
    use crate::copy::ForkTranslator;
    use jackfield_events::{
        AgentMessage, EventBody, PromptCapabilities, RawJson, SessionForked, SessionOpened,
    };
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
            variant: None,
            fallback: None,
            sandbox: None,
            prompt_capabilities: PromptCapabilities::default(),
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
    fn fork_is_recovered_as_it_was_reported() {
        let journal = journal();
        let (tx, done) = mpsc::channel();
        let port = NonBlockingJournal::start(journal.clone(), move |it| tx.send(it).unwrap());
        let to: SessionId = "s-2".into();
        let fork = Box::new(ForkTranslator::new(to.clone(), event(3, forked())));
        assert!(port.start_copy("s-1".into(), 2, to.into(), fork).is_none());
        let done = done.recv_timeout(Duration::from_secs(30)).unwrap();
        let JournalCompletion::Copied { summary, .. } = done else { panic!("{done:?}") };
        port.stop();
        let mut recovered = recover_sessions(&journal).unwrap();
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
    fn unfinished_copy_is_deleted_and_not_recovered() {
        let journal = journal();
        let unfinished = ForkTranslator::new("s-2".into(), event(3, forked())).unfinished_summary();
        let epoch = journal.claim_stream("s-2").unwrap().epoch;
        let mut body = Vec::new();
        event(1, opened()).encode(&mut body);
        let (stream, body, summary) = ("s-2".into(), body.into(), Some(unfinished));
        let append = AppendRequest { stream, epoch, first: 1, count: 1, body, summary };
        journal.append_batch(&[append]).remove(0).unwrap();
        let recovered = recover_sessions(&journal).unwrap();
        assert_eq!(recovered.len(), 1);
        assert_eq!(journal.list_streams().unwrap().len(), 1);
    }
}
