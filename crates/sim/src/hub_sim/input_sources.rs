//! The order in which inputs reach the hub, and the steps of the disk.

use super::{HubWorld, disk::AppendOutcome};
use jackfield_hub::{AgentId, ConnId, Input, SessionId};

/// A source of inputs. The order within one source is kept; the order between sources is random.
#[derive(Debug, Clone)]
enum InputSource {
    Client(ConnId),
    Written(ConnId),
    Agent(AgentId),
    Writer(SessionId),
    Reader(SessionId),
    Copier,
}

impl HubWorld {
    /// The next input of a random source reaches the hub.
    pub(super) fn deliver_input(&mut self) -> bool {
        let sources = self.ready_sources();
        if sources.is_empty() {
            return false;
        }
        let input = match &sources[self.rng.index(sources.len())] {
            InputSource::Client(conn) => {
                self.conns.get_mut(conn).and_then(|it| it.sent.pop_front())
            }
            InputSource::Written(conn) => {
                let it = self.conns.get_mut(conn).expect("found above");
                let whole = self.faults_stopped || self.rng.chance(70);
                let bytes = if whole { it.written } else { 1 + self.rng.index(it.written) };
                it.written -= bytes;
                Some(Input::ClientWrote { conn: *conn, bytes })
            }
            InputSource::Agent(agent) => {
                self.procs.get_mut(agent).and_then(|it| it.outbox.pop_front())
            }
            InputSource::Writer(session) => {
                let stream = self.disk.streams.get_mut(session).expect("found above");
                let input = stream.done.pop_front();
                stream.answered(matches!(input, Some(Input::AppendFailed { .. })));
                input
            }
            InputSource::Copier => self.disk.copied.pop_front(),
            InputSource::Reader(session) => {
                self.disk.streams.get_mut(session).and_then(|it| it.answers.pop_front())
            }
        };
        self.feed_input(input.expect("sources have something"));
        true
    }

    fn ready_sources(&self) -> Vec<InputSource> {
        let mut sources = Vec::new();
        for (&conn, it) in &self.conns {
            if !it.sent.is_empty() {
                sources.push(InputSource::Client(conn));
            }
            if 0 < it.written && !it.has_left {
                sources.push(InputSource::Written(conn));
            }
        }
        for (&agent, it) in &self.procs {
            if !it.outbox.is_empty() && (!it.paused || it.has_exited) {
                sources.push(InputSource::Agent(agent));
            }
        }
        if !self.disk.copied.is_empty() {
            sources.push(InputSource::Copier);
        }
        for (session, stream) in &self.disk.streams {
            if !stream.done.is_empty() {
                sources.push(InputSource::Writer(session.clone()));
            }
            if !stream.answers.is_empty() {
                sources.push(InputSource::Reader(session.clone()));
            }
        }
        sources
    }

    /// The disk runs one step for one session.
    pub(super) fn run_disk_step(&mut self) -> bool {
        if self.rng.chance(self.fault_rates.slow_disk) {
            return false;
        }
        if !self.disk.copies.is_empty() && self.rng.chance(30) {
            self.continue_copy();
            return true;
        }
        let busy = |it: &super::disk::SessionStream| it.can_append() || it.has_reads();
        let busy: Vec<SessionId> =
            self.disk.streams.iter().filter(|(_, it)| busy(it)).map(|(id, _)| id.clone()).collect();
        if busy.is_empty() {
            return !self.disk.copies.is_empty();
        }
        let session = busy[self.rng.index(busy.len())].clone();
        let outcome = self.pick_append_outcome(&session);
        let stale = self.rng.chance(self.fault_rates.stale).then(|| self.rng.index(3));
        let fails = self.rng.chance(self.fault_rates.read_fails);
        let reads_first = self.rng.chance(40);
        let stream = self.disk.streams.get_mut(&session).expect("found above");
        if stream.has_reads() && (reads_first || !stream.can_append()) {
            self.tally.count(if fails { "reads failed" } else { "reads" });
            stream.perform_read(&session, stale, fails);
        } else {
            let landed = stream.continue_append(&session, outcome);
            self.on_durable(&session, &landed);
        }
        true
    }

    fn pick_append_outcome(&mut self, session: &SessionId) -> AppendOutcome {
        if !self.disk.streams[session].is_deciding() {
            AppendOutcome::Good
        } else if self.rng.chance_per_ten_thousand(self.fault_rates.fenced) {
            AppendOutcome::Fenced
        } else if self.rng.chance(self.fault_rates.append_fails) {
            self.rng.pick(&[AppendOutcome::Failed, AppendOutcome::FailedButLanded])
        } else {
            AppendOutcome::Good
        }
    }
}
