//! The one loop: take what there is, let the bus think, carry out what it asks, send.

use crate::clock::Clock;
use crate::config::{Loaded, Source};
use crate::door::Arrival;
use crate::effects::Effects;
use crate::metrics::{Scrape, Snapshot};
use crate::routing::{Bus, BusInput, WorkerId};
use jackfield_agents::{AgentEvent, StdoutNoise, StopUrgency};
use jackfield_hub::{ConnId, Exit, Patience, Time};
use jackfield_protocol::{Fault, Frame, chain};
use jackfield_transport::{ClientEvent, ClientHandle};
use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};

/// Frames taken in one go before everything is sent: bounds how long a flood on one edge can keep
/// the others waiting.
const FRAMES_MAX: usize = 512;
/// When the bus is over, a client that takes nothing for so long does not hear the rest.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// One that has heard everything gets this long to close first: the system then knows that nothing of
/// it was lost.
const FAREWELL: Duration = Duration::from_millis(250);

/// One bounded mailbox per edge.
pub(crate) struct Mailboxes {
    pub(crate) workers: Receiver<(WorkerId, AgentEvent)>,
    pub(crate) clients: Receiver<(ConnId, ClientEvent)>,
    pub(crate) arrivals: Receiver<Arrival>,
    pub(crate) scrapes: Receiver<Scrape>,
    pub(crate) signals: Receiver<Signal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Stop,
    Reload,
}

pub(crate) struct MainLoop {
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    pub(crate) effects: Effects,
    pub(crate) source: Source,
    pub(crate) client_events: Sender<(ConnId, ClientEvent)>,
    /// It ends with its one client.
    pub(crate) is_stdio: bool,
    pub(crate) next_conn: u64,
    /// Nothing of these was understood yet, and nobody has asked who they are.
    pub(crate) unproved: BTreeSet<ConnId>,
    /// Somebody has asked it to end.
    pub(crate) stopping: bool,
    pub(crate) patience: Patience,
    /// The time of this turn.
    pub(crate) now: Time,
}

/// What the loop woke up for.
enum Woken {
    Worker(WorkerId, AgentEvent),
    Client(ConnId, ClientEvent),
    Arrival(Arrival),
    Scrape(Scrape),
    Signal(Signal),
    Tick,
}

impl MainLoop {
    /// Runs until the bus has stopped and every process is gone.
    pub(crate) async fn run(mut self, mut mail: Mailboxes) {
        self.settle();
        while !self.is_over() {
            let woken = self.next(&mut mail).await;
            self.now = self.clock.now();
            let mut frames = self.take(woken);
            let mut side = Side::Clients;
            while frames < FRAMES_MAX {
                match more(&mut mail, &mut side) {
                    Some(woken) => frames += 1.max(self.take(woken)),
                    None => break,
                }
            }
            self.look_around(&mut mail);
            self.settle();
        }
        self.say_goodbye(&mut mail).await;
    }

    /// Until everyone has heard everything and closed; who takes nothing is not waited for.
    async fn say_goodbye(&mut self, mail: &mut Mailboxes) {
        while self.effects.has_conns() {
            let patience = if self.effects.is_all_said() { FAREWELL } else { LAST_WORDS };
            match tokio::time::timeout(patience, mail.clients.recv()).await {
                Ok(Some((conn, ClientEvent::Gone))) => self.effects.remove_conn(conn),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Everyone has their answer, and no process of ours is left.
    fn is_over(&self) -> bool {
        self.effects.stopped && self.effects.workers.is_empty()
    }

    /// Looks for a short while if that has paid lately, then sleeps.
    async fn next(&mut self, mail: &mut Mailboxes) -> Woken {
        let (clock, begun) = (self.clock, self.clock.elapsed());
        let waited = || clock.elapsed().saturating_sub(begun);
        let mut side = Side::Workers;
        loop {
            if let Some(woken) = more(mail, &mut side) {
                self.patience.learn(waited());
                return woken;
            }
            if !self.patience.lasts(waited()) {
                break;
            }
            // The edges run, and the system is asked for news without waiting for any.
            tokio::task::yield_now().await;
        }
        let woken = self.sleep(mail).await;
        self.patience.learn(waited());
        woken
    }

    async fn sleep(&self, mail: &mut Mailboxes) -> Woken {
        let timeout = self.bus.poll_timeout().map(|it| self.clock.until(it));
        tokio::select! {
            biased;
            Some((worker, event)) = mail.workers.recv() => Woken::Worker(worker, event),
            Some((conn, event)) = mail.clients.recv() => Woken::Client(conn, event),
            Some(arrival) = mail.arrivals.recv() => Woken::Arrival(arrival),
            Some(signal) = mail.signals.recv() => Woken::Signal(signal),
            Some(scrape) = mail.scrapes.recv() => Woken::Scrape(scrape),
            () = elapsed(timeout) => Woken::Tick,
        }
    }

    /// What is rare must not wait for a flood to end.
    fn look_around(&mut self, mail: &mut Mailboxes) {
        if let Ok(signal) = mail.signals.try_recv() {
            self.take(Woken::Signal(signal));
        }
        if let Ok(arrival) = mail.arrivals.try_recv() {
            self.take(Woken::Arrival(arrival));
        }
        if let Ok(scrape) = mail.scrapes.try_recv() {
            self.take(Woken::Scrape(scrape));
        }
        if self.bus.poll_timeout().is_some_and(|it| it <= self.now) {
            self.feed(BusInput::Tick);
        }
    }

    /// Returns how many frames it was.
    fn take(&mut self, woken: Woken) -> usize {
        match woken {
            Woken::Worker(worker, AgentEvent::Frames(frames)) => {
                let count = frames.len();
                for frame in frames {
                    self.feed(BusInput::WorkerSpoke { worker, frame });
                }
                return count;
            }
            Woken::Client(conn, ClientEvent::Frames(frames)) => {
                let count = frames.len();
                self.unproved.remove(&conn);
                for frame in frames {
                    self.feed(BusInput::ClientSpoke { conn, frame });
                }
                return count;
            }
            Woken::Worker(worker, event) => self.on_worker(worker, event),
            Woken::Client(conn, event) => self.on_client(conn, event),
            Woken::Arrival(arrival) => self.on_arrival(arrival),
            Woken::Scrape(scrape) => {
                let snapshot = Snapshot::new(self.bus.gauges(), &self.effects);
                // Whoever asked may have left.
                let _unheard = scrape.send(snapshot);
            }
            Woken::Signal(Signal::Stop) => self.stop(),
            Woken::Signal(Signal::Reload) => self.reload(),
            Woken::Tick => self.feed(BusInput::Tick),
        }
        0
    }

    fn on_worker(&mut self, worker: WorkerId, event: AgentEvent) {
        match event {
            AgentEvent::Started { pid } => {
                if let Some(it) = self.effects.workers.get_mut(&worker) {
                    it.pid = Some(pid);
                }
                self.feed(BusInput::WorkerStarted { worker, pid });
            }
            AgentEvent::Noise(noise) => self.on_noise(worker, &noise),
            AgentEvent::Wrote { bytes } => self.feed(BusInput::WorkerWrote { worker, bytes }),
            // Workers speak frames, and those were taken above.
            AgentEvent::Frames(_)
            | AgentEvent::Lines(_)
            | AgentEvent::Output(_)
            // The noise that comes with it ends the worker.
            | AgentEvent::Oversized(_) => {}
            AgentEvent::Gone(exit) => {
                let clean = exit.code == Some(0);
                self.feed(BusInput::WorkerGone { worker, exit: in_words(exit), clean });
            }
            AgentEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(%worker, ?survivors, "processes could not be ended");
                }
                self.effects.workers.remove(&worker);
            }
        }
    }

    /// What is no message is told and passed over. A line that is too long may have been an answer:
    /// whoever waits for it would wait for ever.
    fn on_noise(&mut self, worker: WorkerId, noise: &StdoutNoise) {
        tracing::warn!(%worker, lines = noise.lines, first = noise.first, "not a message");
        if 0 < noise.too_long {
            let limit = self.effects.ground.frame_bytes_max;
            tracing::error!(%worker, limit, "a line is over `max_input_buffer`; the worker is ended");
            self.effects.with_worker(worker, |it| it.stop(StopUrgency::Now));
        }
    }

    fn on_client(&mut self, conn: ConnId, event: ClientEvent) {
        match event {
            ClientEvent::Opened | ClientEvent::Frames(_) => {}
            ClientEvent::InvalidFrame(fault) if self.unproved.remove(&conn) => {
                self.turn_away(conn, &fault);
            }
            ClientEvent::InvalidFrame(fault) => {
                self.feed(BusInput::ClientSentInvalidFrame { conn, fault });
            }
            ClientEvent::Wrote(bytes) => self.feed(BusInput::ClientWrote { conn, bytes }),
            ClientEvent::Finished => self.feed(BusInput::ClientFinished { conn }),
            ClientEvent::Gone => {
                self.unproved.remove(&conn);
                self.effects.remove_conn(conn);
                self.feed(BusInput::ClientGone { conn });
                // A second wish would be for haste.
                if self.is_stdio && !self.stopping {
                    self.stop();
                }
            }
        }
    }

    /// The first thing it said is no message, and nobody knows who it is: a browser that a page sent
    /// here says `POST` first, and what it says next is the page's.
    fn turn_away(&mut self, conn: ConnId, fault: &Fault) {
        tracing::warn!(%conn, why = %fault, "what a client said first is no message; it is closed");
        self.effects.tell_client(conn, Frame::error_for("null", fault).into_bytes());
        self.effects.with_conn(conn, ClientHandle::close_after_flush);
        self.feed(BusInput::ClientGone { conn });
    }

    fn on_arrival(&mut self, Arrival { stream, unproved }: Arrival) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let events = self.client_events.clone();
        let longest = self.effects.ground.frame_bytes_max;
        let handle = jackfield_transport::open_connection(stream, conn, events, longest);
        self.effects.add_conn(conn, handle);
        if unproved {
            self.unproved.insert(conn);
        }
        self.feed(BusInput::ClientOpened { conn });
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.feed(BusInput::Stop);
    }

    /// A configuration that cannot be used changes nothing.
    fn reload(&mut self) {
        match self.source.load() {
            Ok(Loaded { config, frame_bytes_max, warnings }) => {
                for warning in &warnings {
                    tracing::warn!(config = self.source.name(), "{warning}");
                }
                // For those who come from now on.
                self.effects.ground.frame_bytes_max = frame_bytes_max;
                self.feed(BusInput::Reload { config });
            }
            Err(error) => {
                tracing::error!(why = chain(&error), "the configuration stays as it was");
            }
        }
    }

    fn feed(&mut self, input: BusInput) {
        self.bus.handle(self.now, input);
        while let Some(output) = self.bus.poll_output() {
            self.effects.carry_out(output);
        }
    }

    /// Sends what is queued and hears what left, until there is nothing more to do.
    fn settle(&mut self) {
        while let Some(output) = self.bus.poll_output() {
            self.effects.carry_out(output);
        }
        loop {
            while let Some(input) = self.effects.inputs.pop_front() {
                self.feed(input);
            }
            self.effects.flush();
            if self.effects.inputs.is_empty() {
                break;
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Workers,
    Clients,
}

/// Whatever else is there already; both sides in turn.
fn more(mail: &mut Mailboxes, side: &mut Side) -> Option<Woken> {
    for _ in 0..2 {
        let woken;
        (woken, *side) = match side {
            Side::Workers => {
                let mail = mail.workers.try_recv().ok();
                (mail.map(|(worker, event)| Woken::Worker(worker, event)), Side::Clients)
            }
            Side::Clients => {
                let mail = mail.clients.try_recv().ok();
                (mail.map(|(conn, event)| Woken::Client(conn, event)), Side::Workers)
            }
        };
        if woken.is_some() {
            return woken;
        }
    }
    None
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}

fn in_words(exit: jackfield_agents::AgentExit) -> Exit {
    let started = exit.failed_to_start.is_none();
    let status = exit.failed_to_start.clone().unwrap_or_else(|| exit.to_string());
    Exit { status, stderr: exit.stderr_tail, started, shortage: exit.shortage }
}
