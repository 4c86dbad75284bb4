//! Copies of sessions: slow, interrupted by crashes, and sometimes failing.

use super::{HubWorld, check, disk::SessionStream};
use bytes::Bytes;
use jackfield_events::{EventBody, SessionEvent, SessionSummary};
use jackfield_hub::{Input, Seq, SessionId};

/// A copy in progress. It becomes readable when it is complete.
#[derive(Debug)]
pub(super) struct SessionCopy {
    pub(super) from: SessionId,
    pub(super) upto: Seq,
    pub(super) to: SessionId,
    pub(super) last: SessionEvent,
    events: Vec<SessionEvent>,
}

impl SessionCopy {
    pub(super) fn new(
        from: SessionId,
        upto: Seq,
        to: SessionId,
        last: SessionEvent,
    ) -> SessionCopy {
        SessionCopy { from, upto, to, last, events: Vec::new() }
    }
}

impl HubWorld {
    /// Copies some more events.
    pub(super) fn continue_copy(&mut self) {
        let at = self.rng.index(self.disk.copies.len());
        let fails = self.rng.chance(self.fault_rates.append_fails);
        let slice = 1 + self.rng.index(8);
        let copying = &mut self.disk.copies[at];
        let source = self.disk.streams.get(&copying.from).filter(|_| !fails);
        let Some(source) = source else {
            let SessionCopy { to, .. } = self.disk.copies.remove(at);
            self.tally.count("forks failed");
            let why = "the disk is away".to_owned();
            return self.disk.copied.push_back(Input::CopyFailed { to, why });
        };
        let upto = usize::try_from(copying.upto.0).expect("logs are short");
        let copied_count = copying.events.len();
        let next = &source.events[copied_count..upto.min(copied_count + slice)];
        copying.events.extend(next.iter().map(|it| it.with_session_id(&copying.to)));
        if copying.events.len() == upto {
            let copying = self.disk.copies.remove(at);
            self.finish_copy(copying);
        }
    }

    fn finish_copy(&mut self, copying: SessionCopy) {
        let SessionCopy { from, to, last, mut events, .. } = copying;
        let mut state = SessionSummary::default();
        for event in &events {
            state.fold(event);
        }
        self.log_tracker.on_copied(&to, &state);
        self.queue_tracker.on_copied(&to, &state);
        state.fold(&last);
        self.restore_tracker.on_copied(&to, &state);
        events.push(last);
        let line = |event: &SessionEvent| {
            let mut line = Vec::new();
            event.encode(&mut line);
            Bytes::from(line)
        };
        let lines: Vec<Bytes> = events.iter().map(line).collect();
        let source = &self.disk.streams[&from];
        let last = &events.last().expect("pushed above").body;
        check::fork_is_a_copy_of_its_source((&from, &source.lines), (&to, &lines), last);
        let stream = SessionStream::whole(lines, events, state.to_summary());
        let known = self.disk.streams.insert(to.clone(), stream);
        assert!(known.is_none(), "a copy has a name of its own");
        self.tally.count("sessions forked");
        self.disk.copied.push_back(Input::Copied { to, state: Box::new(state) });
    }

    /// The sequence number of the fork event, if the session is a fork.
    pub(super) fn fork_seq(&self, session: &SessionId) -> Option<u64> {
        let events = &self.disk.streams.get(session)?.events;
        let at = events.iter().rposition(|it| matches!(it.body, EventBody::Forked(_)))?;
        Some(at as u64 + 1)
    }
}
