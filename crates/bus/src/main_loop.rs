//! The loop: receive inputs, run the bus, carry out its outputs, flush.

use crate::clock::MonotonicClock;
use crate::config::{ConfigSource, LoadedConfig};
use crate::effects::BusEffects;
use crate::listener::AcceptedClient;
use crate::metrics::SnapshotRequest;
use crate::poll_window::PollWindow;
use crate::routing::{Bus, BusInput, WorkerId};
use jackfield_agents::{AgentProcessEvent, StdoutNoise, StopUrgency};
use jackfield_catalog::Catalog;
use jackfield_hub::{ConnId, Exit, Time};
use jackfield_protocol::{Fault, Frame, chain};
use jackfield_transport::{ClientEvent, ClientHandle};
use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};

/// Frames that are handled before everything is flushed: bounds how long a flood on one connection
/// delays the others.
const FRAMES_MAX: usize = 512;
/// After the bus has stopped, a client that reads nothing for this long is disconnected.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client that has read everything may take to close first, so that the system does not
/// discard unread bytes.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

/// One bounded channel per source.
pub(crate) struct BusLoopReceivers {
    pub(crate) workers: Receiver<(WorkerId, AgentProcessEvent)>,
    pub(crate) clients: Receiver<(ConnId, ClientEvent)>,
    pub(crate) accepted: Receiver<AcceptedClient>,
    pub(crate) snapshot_requests: Receiver<SnapshotRequest>,
    pub(crate) signals: Receiver<BusSignal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BusSignal {
    Stop,
    Reload,
}

/// What the configuration is read from again.
pub(crate) struct ReloadSource {
    pub(crate) config: ConfigSource,
    pub(crate) catalog: Catalog,
}

pub(crate) struct BusLoop {
    bus: Bus,
    clock: MonotonicClock,
    effects: BusEffects,
    source: ReloadSource,
    client_events: Sender<(ConnId, ClientEvent)>,
    /// The bus stops with its only client.
    is_stdio: bool,
    next_conn: u64,
    /// Unauthenticated clients that have not sent a valid frame yet.
    unauthenticated: BTreeSet<ConnId>,
    /// A stop was requested.
    stopping: bool,
    /// How long to poll before sleeping.
    poll_window: PollWindow,
    /// The time of this iteration.
    now: Time,
}

/// Why the loop woke up.
enum BusLoopEvent {
    Worker(WorkerId, AgentProcessEvent),
    Client(ConnId, ClientEvent),
    Accepted(AcceptedClient),
    Snapshot(SnapshotRequest),
    Signal(BusSignal),
    Tick,
}

impl BusLoop {
    pub(crate) fn new(
        bus: Bus,
        clock: MonotonicClock,
        effects: BusEffects,
        source: ReloadSource,
        client_events: Sender<(ConnId, ClientEvent)>,
        is_stdio: bool,
    ) -> BusLoop {
        BusLoop {
            bus,
            clock,
            effects,
            source,
            client_events,
            is_stdio,
            next_conn: 0,
            unauthenticated: BTreeSet::new(),
            stopping: false,
            poll_window: PollWindow::default(),
            now: clock.now(),
        }
    }

    /// Runs until the bus has stopped and every process has ended.
    pub(crate) async fn run(mut self, mut receivers: BusLoopReceivers) {
        self.flush_all();
        while !self.effects.is_stopped() {
            let event = self.next_event(&mut receivers).await;
            self.now = self.clock.now();
            let mut frames = self.handle_event(event);
            let mut side = ReceiveSide::Clients;
            while frames < FRAMES_MAX {
                match try_next_event(&mut receivers, &mut side) {
                    Some(event) => frames += 1.max(self.handle_event(event)),
                    None => break,
                }
            }
            self.handle_rare_events(&mut receivers);
            self.flush_all();
        }
        self.drain_clients(&mut receivers).await;
    }

    /// Waits until all clients have read everything and closed, except those that do not read.
    async fn drain_clients(&mut self, receivers: &mut BusLoopReceivers) {
        while self.effects.has_conns() {
            let timeout =
                if self.effects.is_all_written() { CLOSE_TIMEOUT } else { UNREAD_TIMEOUT };
            match tokio::time::timeout(timeout, receivers.clients.recv()).await {
                Ok(Some((conn, ClientEvent::Gone))) => self.effects.remove_conn(conn),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Polls for a short while if that was useful lately, then sleeps.
    async fn next_event(&mut self, receivers: &mut BusLoopReceivers) -> BusLoopEvent {
        let (clock, started) = (self.clock, self.clock.elapsed());
        let waited = || clock.elapsed().saturating_sub(started);
        let mut side = ReceiveSide::Workers;
        loop {
            if let Some(event) = try_next_event(receivers, &mut side) {
                self.poll_window.record_wait(waited());
                return event;
            }
            if !self.poll_window.is_open(waited()) {
                break;
            }
            // Lets the other tasks run and polls the system without waiting.
            tokio::task::yield_now().await;
        }
        let event = self.wait_for_event(receivers).await;
        self.poll_window.record_wait(waited());
        event
    }

    async fn wait_for_event(&self, receivers: &mut BusLoopReceivers) -> BusLoopEvent {
        let timeout = self.bus.poll_timeout().map(|it| self.clock.until(it));
        tokio::select! {
            biased;
            Some((worker, event)) = receivers.workers.recv() => BusLoopEvent::Worker(worker, event),
            Some((conn, event)) = receivers.clients.recv() => BusLoopEvent::Client(conn, event),
            Some(client) = receivers.accepted.recv() => BusLoopEvent::Accepted(client),
            Some(signal) = receivers.signals.recv() => BusLoopEvent::Signal(signal),
            Some(request) = receivers.snapshot_requests.recv() => BusLoopEvent::Snapshot(request),
            () = sleep_until_timeout(timeout) => BusLoopEvent::Tick,
        }
    }

    /// Handles rare events, which must not wait for a flood to end.
    fn handle_rare_events(&mut self, receivers: &mut BusLoopReceivers) {
        if let Ok(signal) = receivers.signals.try_recv() {
            self.handle_event(BusLoopEvent::Signal(signal));
        }
        if let Ok(client) = receivers.accepted.try_recv() {
            self.handle_event(BusLoopEvent::Accepted(client));
        }
        if let Ok(request) = receivers.snapshot_requests.try_recv() {
            self.handle_event(BusLoopEvent::Snapshot(request));
        }
        if self.bus.poll_timeout().is_some_and(|it| it <= self.now) {
            self.feed(BusInput::Tick);
        }
    }

    /// Returns the number of frames.
    fn handle_event(&mut self, event: BusLoopEvent) -> usize {
        match event {
            BusLoopEvent::Worker(worker, AgentProcessEvent::Frames(frames)) => {
                let count = frames.len();
                for frame in frames {
                    self.feed(BusInput::WorkerSentFrame { worker, frame });
                }
                return count;
            }
            BusLoopEvent::Client(conn, ClientEvent::Frames(frames)) => {
                let count = frames.len();
                self.unauthenticated.remove(&conn);
                for frame in frames {
                    self.feed(BusInput::ClientSentFrame { conn, frame });
                }
                return count;
            }
            BusLoopEvent::Worker(worker, event) => self.on_worker(worker, event),
            BusLoopEvent::Client(conn, event) => self.on_client(conn, event),
            BusLoopEvent::Accepted(client) => self.on_accepted(client),
            BusLoopEvent::Snapshot(request) => {
                let snapshot = self.effects.create_snapshot(self.bus.gauges());
                // The requester may be gone.
                let _ignored = request.send(snapshot);
            }
            BusLoopEvent::Signal(BusSignal::Stop) => self.stop(),
            BusLoopEvent::Signal(BusSignal::Reload) => self.reload(),
            BusLoopEvent::Tick => self.feed(BusInput::Tick),
        }
        0
    }

    fn on_worker(&mut self, worker: WorkerId, event: AgentProcessEvent) {
        match event {
            AgentProcessEvent::Started { pid } => {
                self.effects.set_worker_pid(worker, pid);
                self.feed(BusInput::WorkerStarted { worker, pid });
            }
            AgentProcessEvent::Noise(noise) => self.on_noise(worker, &noise),
            AgentProcessEvent::Wrote { bytes } => self.feed(BusInput::WorkerWrote { worker, bytes }),
            // Workers send frames, and those are handled above.
            AgentProcessEvent::Frames(_)
            | AgentProcessEvent::Lines(_)
            | AgentProcessEvent::Output(_)
            | AgentProcessEvent::Stderr(_)
            // The noise event that comes with it ends the worker.
            | AgentProcessEvent::Oversized(_) => {}
            AgentProcessEvent::Gone(exit) => {
                let clean = exit.code == Some(0);
                self.feed(BusInput::WorkerGone { worker, exit: to_exit(exit), clean });
            }
            AgentProcessEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(%worker, ?survivors, "failed to end processes of worker");
                }
                self.effects.remove_worker(worker);
            }
        }
    }

    /// A line that is not a message is logged and ignored. A line that is too long may have been a
    /// response, and its client would wait forever, so the worker is stopped.
    fn on_noise(&mut self, worker: WorkerId, noise: &StdoutNoise) {
        tracing::warn!(%worker, lines = noise.lines, first = noise.first, "worker wrote lines that are not messages");
        if 0 < noise.too_long {
            let limit = self.effects.frame_bytes_max();
            tracing::error!(%worker, limit, "line of worker exceeds `max_input_buffer`; stopping the worker");
            self.effects.with_worker(worker, |it| it.stop(StopUrgency::Now));
        }
    }

    fn on_client(&mut self, conn: ConnId, event: ClientEvent) {
        match event {
            ClientEvent::Opened | ClientEvent::Frames(_) => {}
            ClientEvent::InvalidFrame(fault) if self.unauthenticated.remove(&conn) => {
                self.close_unauthenticated(conn, &fault);
            }
            ClientEvent::InvalidFrame(fault) => {
                self.feed(BusInput::ClientSentInvalidFrame { conn, fault });
            }
            ClientEvent::Wrote(bytes) => self.feed(BusInput::ClientWrote { conn, bytes }),
            ClientEvent::Finished => self.feed(BusInput::ClientFinished { conn }),
            ClientEvent::Gone => {
                self.unauthenticated.remove(&conn);
                self.effects.remove_conn(conn);
                self.feed(BusInput::ClientGone { conn });
                // A second stop would be an immediate one.
                if self.is_stdio && !self.stopping {
                    self.stop();
                }
            }
        }
    }

    /// Closes an unauthenticated client whose first line is not a message: a browser that a web
    /// page sent here sends `POST` first, and the page controls the following lines.
    fn close_unauthenticated(&mut self, conn: ConnId, fault: &Fault) {
        tracing::warn!(%conn, %fault, "first line of client is not a message; closing it");
        self.effects.send_to_client(conn, Frame::error_for("null", fault).into_bytes());
        self.effects.with_conn(conn, ClientHandle::close_after_flush);
        self.feed(BusInput::ClientGone { conn });
    }

    fn on_accepted(&mut self, AcceptedClient { stream, is_unauthenticated }: AcceptedClient) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let events = self.client_events.clone();
        let frame_bytes_max = self.effects.frame_bytes_max();
        let handle = jackfield_transport::open_connection(stream, conn, events, frame_bytes_max);
        self.effects.add_conn(conn, handle);
        if is_unauthenticated {
            self.unauthenticated.insert(conn);
        }
        self.feed(BusInput::ClientOpened { conn });
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.feed(BusInput::Stop);
    }

    /// An invalid configuration changes nothing.
    fn reload(&mut self) {
        let ReloadSource { config: source, catalog } = &self.source;
        match source.load(catalog) {
            // The listeners stay as they are.
            Ok(LoadedConfig { config, frame_bytes_max, warnings, insecure: _ }) => {
                for warning in &warnings {
                    tracing::warn!(config = source.name(), "{warning}");
                }
                self.effects.set_frame_bytes_max(frame_bytes_max);
                self.feed(BusInput::Reload { config });
            }
            Err(error) => {
                tracing::error!(
                    error = chain(&error),
                    "failed to reload the configuration; keeping the old one"
                );
            }
        }
    }

    fn feed(&mut self, input: BusInput) {
        self.bus.handle(self.now, input);
        while let Some(output) = self.bus.poll_output() {
            self.effects.carry_out(output);
        }
    }

    /// Flushes until no inputs are left.
    fn flush_all(&mut self) {
        while let Some(output) = self.bus.poll_output() {
            self.effects.carry_out(output);
        }
        loop {
            while let Some(input) = self.effects.pop_input() {
                self.feed(input);
            }
            self.effects.flush();
            if !self.effects.has_inputs() {
                break;
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum ReceiveSide {
    Workers,
    Clients,
}

/// The next event that is already there, alternating between workers and clients.
fn try_next_event(
    receivers: &mut BusLoopReceivers,
    side: &mut ReceiveSide,
) -> Option<BusLoopEvent> {
    for _ in 0..2 {
        let event;
        (event, *side) = match side {
            ReceiveSide::Workers => {
                let receivers = receivers.workers.try_recv().ok();
                (
                    receivers.map(|(worker, event)| BusLoopEvent::Worker(worker, event)),
                    ReceiveSide::Clients,
                )
            }
            ReceiveSide::Clients => {
                let receivers = receivers.clients.try_recv().ok();
                (
                    receivers.map(|(conn, event)| BusLoopEvent::Client(conn, event)),
                    ReceiveSide::Workers,
                )
            }
        };
        if event.is_some() {
            return event;
        }
    }
    None
}

async fn sleep_until_timeout(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}

fn to_exit(exit: jackfield_agents::AgentExit) -> Exit {
    let started = exit.failed_to_start.is_none();
    let status = exit.failed_to_start.clone().unwrap_or_else(|| exit.to_string());
    Exit { status, stderr: exit.stderr_tail, started, shortage: exit.shortage }
}
