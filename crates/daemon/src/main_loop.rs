//! The one loop: take what there is, let the hub think, carry out what it asks, write it down, send.

use crate::{
    clock,
    effects::{Effects, FOR_THE_HUB},
    fleet::Call,
    freed_memory::FreedMemory,
    metrics::{Scrape, Snapshot},
    notify::Notify,
    peers,
    pressure::Gauge,
    recorder::Recorder,
    rulebook::Rulebook,
    served::{self, TerminalId},
    service_manager::ServiceManager,
    signals::DaemonSignal,
};
use jackfield_agents::{AgentEvent, StopUrgency};
use jackfield_events::SessionEvent;
use jackfield_hub::{AgentId, ConnId, Exit, Hub, Input, Output, Patience, Seq, SessionId, Time};
use jackfield_journal::JournalCompletion;
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES, Kind};
use jackfield_transport::{ClientEvent, ClientStream};
use std::{
    convert::Infallible,
    future::pending,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{Receiver, Sender};

/// Mailbox messages taken in one go before everything is written down and sent: bounds how long a
/// flood on one edge can keep the others waiting.
const BATCH_MAX: usize = 128;

/// One bounded mailbox per edge.
pub(crate) struct Mailboxes {
    pub(crate) journal: Receiver<JournalCompletion>,
    pub(crate) agents: Receiver<(AgentId, AgentEvent)>,
    pub(crate) clients: Receiver<(ConnId, ClientEvent)>,
    pub(crate) served: Receiver<served::Done>,
    pub(crate) terminals: Receiver<(TerminalId, AgentEvent)>,
    pub(crate) accepted: Receiver<ClientStream>,
    pub(crate) scrapes: Receiver<Scrape>,
    pub(crate) signals: Receiver<DaemonSignal>,
    /// Where this daemon is one of many.
    pub(crate) fleet: Receiver<Call>,
}

pub(crate) struct MainLoop {
    pub(crate) hub: Hub,
    pub(crate) effects: Effects,
    pub(crate) rulebook: Rulebook,
    pub(crate) recorder: Recorder,
    pub(crate) notify: Notify,
    pub(crate) manager: ServiceManager,
    pub(crate) client_events: Sender<(ConnId, ClientEvent)>,
    pub(crate) next_conn: u64,
    /// Ends by itself when nothing was alive for this long.
    pub(crate) idle_after: Option<Duration>,
    pub(crate) gauge: Gauge,
    pub(crate) freed_memory: FreedMemory,
    /// How often it was asked to stop by signal.
    pub(crate) signals: u32,
    pub(crate) patience: Patience,
}

/// What the loop woke up for.
enum Woken {
    Journal(JournalCompletion),
    Agent(AgentId, AgentEvent),
    Client(ConnId, ClientEvent),
    Served(served::Done),
    Terminal(TerminalId, AgentEvent),
    Accepted(ClientStream),
    Scrape(Scrape),
    Signal(DaemonSignal),
    Fleet(Call),
    Tick,
    /// What was gathered may be written.
    Rested,
    Look,
    Idle,
}

impl MainLoop {
    /// Runs until the hub has stopped and every process is gone.
    pub(crate) async fn run(mut self, mut mail: Mailboxes) {
        self.settle();
        while !self.is_over() {
            let woken = self.next(&mut mail).await;
            self.take(woken);
            for _ in 0..BATCH_MAX {
                match more(&mut mail) {
                    Some(woken) => self.take(woken),
                    None => break,
                }
            }
            self.settle();
        }
        for (_, mut conn) in std::mem::take(&mut self.effects.conns) {
            conn.flush();
            conn.close_after_flush();
        }
        // Answers of the journal that come now are for nobody, and must not wait to be taken.
        drop(mail);
        self.effects.port.stop();
        self.notify.finish().await;
    }

    /// The hub has written everything, and no process of ours is left.
    fn is_over(&self) -> bool {
        self.effects.stopped && self.has_no_process()
    }

    fn has_no_process(&self) -> bool {
        self.effects.agents.is_empty() && self.effects.served.is_over()
    }

    async fn next(&mut self, mail: &mut Mailboxes) -> Woken {
        let timeout = self.hub.poll_timeout().map(clock::until);
        let idle = self.idle_after.filter(|_| self.hub.is_idle() && self.has_no_process());
        let rest = self.effects.chunks.next_wake().map(|it| it.duration_since(Instant::now()));
        let look = (!self.effects.agents.is_empty()).then(|| self.gauge.pause());
        let since = Instant::now();
        // What is already durable is heard before anything new is taken in.
        let woken = tokio::select! {
            biased;
            Some(done) = mail.journal.recv() => Woken::Journal(done),
            Some((agent, event)) = mail.agents.recv() => Woken::Agent(agent, event),
            Some((conn, event)) = mail.clients.recv() => Woken::Client(conn, event),
            Some(done) = mail.served.recv() => Woken::Served(done),
            Some((id, event)) = mail.terminals.recv() => Woken::Terminal(id, event),
            Some(accepted) = mail.accepted.recv() => Woken::Accepted(accepted),
            Some(scrape) = mail.scrapes.recv() => Woken::Scrape(scrape),
            Some(signal) = mail.signals.recv() => Woken::Signal(signal),
            Some(call) = mail.fleet.recv() => Woken::Fleet(call),
            () = elapsed(timeout) => Woken::Tick,
            () = elapsed(rest) => Woken::Rested,
            () = elapsed(idle) => Woken::Idle,
            () = elapsed(look) => Woken::Look,
            never = stay_awake(self.patience, since) => match never {},
        };
        self.patience.learn(since.elapsed());
        woken
    }

    fn take(&mut self, woken: Woken) {
        match woken {
            Woken::Journal(done) => {
                self.effects.on_done(done);
                self.feed_all();
            }
            Woken::Agent(agent, event) => self.on_agent(agent, event),
            Woken::Client(conn, event) => self.on_client(conn, event),
            Woken::Served(done) => {
                let answer = self.effects.served.on_done(done);
                self.effects.answer_served(answer);
                self.feed_all();
            }
            Woken::Terminal(id, event) => {
                let answers = self.effects.served.on_terminal(id, event);
                self.effects.answer_served(answers);
                self.feed_all();
            }
            Woken::Accepted(accepted) => self.on_accepted(accepted),
            Woken::Scrape(scrape) => {
                let snapshot = Snapshot::new(self.hub.gauges(), &self.effects.meters);
                // Whoever asked may have left.
                let _unheard = scrape.send(snapshot);
            }
            Woken::Signal(DaemonSignal::Stop) => self.on_stop_signal(),
            Woken::Signal(DaemonSignal::Reload) => self.reload(),
            Woken::Fleet(call) => self.on_call(call),
            Woken::Tick => self.feed(Input::Tick),
            Woken::Rested => {}
            Woken::Look => {
                if self.gauge.is_high() {
                    self.feed(Input::Pressure);
                }
            }
            Woken::Idle => {
                tracing::info!("nothing was alive for a while; the daemon ends");
                self.feed(Input::Stop);
            }
        }
    }

    /// Once is polite, twice kills the agents, three times does not even wait for the journal.
    fn on_stop_signal(&mut self) {
        self.signals += 1;
        self.feed(Input::Stop);
        if 1 < self.signals {
            for agent in self.effects.agents.values_mut() {
                agent.stop(StopUrgency::Now);
            }
            self.effects.served.end_now();
        }
        if 2 < self.signals {
            self.effects.stopped = true;
        }
    }

    fn on_agent(&mut self, agent: AgentId, event: AgentEvent) {
        match event {
            AgentEvent::Started { pid } => {
                self.effects.meters.on_started(agent);
                self.feed(Input::AgentStarted { agent, pid });
            }
            AgentEvent::Frames(frames) => {
                let now = clock::now();
                for frame in frames {
                    if frame.kind() == Kind::Request {
                        self.refresh_rules(agent);
                    }
                    self.feed_at(now, Input::AgentSpoke { agent, frame });
                }
            }
            AgentEvent::Oversized(line) => {
                tracing::warn!(%agent, size = line.size, limit = line.limit, "a message is too large");
                self.feed(Input::AgentSentOversized { agent, line });
            }
            AgentEvent::Noise(noise) => {
                tracing::debug!(%agent, lines = noise.lines, first = noise.first, "not protocol");
            }
            // Lines are what adapters hear, and bytes come from terminals; agents speak frames.
            AgentEvent::Wrote { .. } | AgentEvent::Lines(_) | AgentEvent::Output(_) => {}
            AgentEvent::Gone(exit) => {
                self.effects.served.on_gone(agent);
                self.feed(Input::AgentGone { agent, exit: in_words(exit) });
            }
            AgentEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(%agent, ?survivors, "processes could not be ended");
                }
                self.effects.agents.remove(&agent);
            }
        }
    }

    fn on_client(&mut self, conn: ConnId, event: ClientEvent) {
        match event {
            ClientEvent::Opened => {}
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    self.feed(Input::ClientSpoke { conn, frame });
                }
            }
            ClientEvent::InvalidFrame(fault) => {
                self.feed(Input::ClientSentInvalidFrame { conn, fault });
            }
            ClientEvent::Wrote(bytes) => self.feed(Input::ClientWrote { conn, bytes }),
            ClientEvent::Finished => self.feed(Input::ClientFinished { conn }),
            ClientEvent::Gone => {
                self.effects.conns.remove(&conn);
                self.feed(Input::ClientGone { conn });
                self.freed_memory.on_client_gone();
            }
        }
    }

    /// What an agent asks for is judged by the rules as their files are now.
    fn refresh_rules(&mut self, agent: AgentId) {
        if let Some(policies) = self.rulebook.refresh(self.hub.folders_of(agent)) {
            self.feed(Input::PolicyChanged { policies });
        }
    }

    pub(crate) fn on_accepted(&mut self, stream: ClientStream) {
        self.open_client(stream, FRAME_BYTES_MAX);
    }

    /// A client of a gateway, which has added to what the client sent.
    pub(crate) fn on_host_conn(&mut self, stream: ClientStream) {
        self.open_client(stream, FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    }

    fn open_client(&mut self, stream: ClientStream, frame_bytes_max: usize) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let peer = peers::identify(&stream, &self.effects.ground);
        let events = self.client_events.clone();
        let handle = jackfield_transport::open_connection(stream, conn, events, frame_bytes_max);
        self.effects.conns.insert(conn, handle);
        self.refresh_files();
        self.feed(Input::ClientOpened { conn, peer });
    }

    pub(crate) fn feed(&mut self, input: Input) {
        self.feed_at(clock::now(), input);
    }

    fn feed_at(&mut self, now: Time, input: Input) {
        if matches!(input, Input::Stop) {
            self.manager.send_stopping();
        }
        self.recorder.record(now, &input);
        self.hub.handle(now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.hub.poll_output() {
            if let Output::Note(note) = &output {
                self.notify.on_note(note, &self.hub);
            }
            self.effects.carry_out(output);
        }
    }

    fn feed_all(&mut self) {
        while let Some(input) = self.effects.inputs.pop_front() {
            self.feed(input);
        }
    }

    /// Writes down what was appended and sends what may be heard, until there is nothing more to do.
    fn settle(&mut self) {
        self.drain();
        loop {
            self.feed_all();
            self.effects.append();
            if !self.effects.inputs.is_empty() {
                continue;
            }
            self.effects.flush();
            if self.effects.inputs.is_empty() {
                break;
            }
        }
        if std::mem::take(&mut self.effects.stop_asked) {
            self.feed(Input::Stop);
            self.settle();
        }
    }
}

/// Whatever else is there already, in the same order of importance.
fn more(mail: &mut Mailboxes) -> Option<Woken> {
    if let Ok(done) = mail.journal.try_recv() {
        return Some(Woken::Journal(done));
    }
    if let Ok((agent, event)) = mail.agents.try_recv() {
        return Some(Woken::Agent(agent, event));
    }
    mail.clients.try_recv().ok().map(|(conn, event)| Woken::Client(conn, event))
}

/// Keeps the loop from sleeping while looking may pay: the runtime looks for news and comes back.
async fn stay_awake(patience: Patience, since: Instant) -> Infallible {
    while patience.lasts(since.elapsed()) {
        tokio::task::yield_now().await;
    }
    pending().await
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}

/// What the journal read, as events; a line nobody can read is a failed read, never a hole.
pub(crate) fn read_answer(
    token: u64,
    session: SessionId,
    after: u64,
    lines: &[jackfield_journal::StoredEvent],
) -> Input {
    let (conn, after) = (ConnId(token), Seq(after));
    let events = lines.iter().map(|it| SessionEvent::decode(Seq(it.seq), &it.line));
    match events.collect::<Result<Vec<_>, _>>() {
        Ok(events) if token == FOR_THE_HUB => Input::Recalled { session, after, events },
        Ok(events) => Input::Read { conn, session, after, events },
        Err(error) => {
            tracing::error!(%session, after = after.0, why = error.why, "an event cannot be read");
            if token == FOR_THE_HUB {
                return Input::RecallFailed { session, why: error.why };
            }
            Input::ReadFailed { conn, session, after, why: error.why, damaged: true }
        }
    }
}

fn in_words(exit: jackfield_agents::AgentExit) -> Exit {
    let status = match (&exit.failed_to_start, exit.code, exit.signal) {
        (Some(why), _, _) => why.clone(),
        (None, Some(code), _) => format!("exit status {code}"),
        (None, None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None, None) => "its guard was lost".to_owned(),
    };
    let started = exit.failed_to_start.is_none();
    Exit { status, stderr: exit.stderr_tail, started, shortage: exit.shortage }
}
