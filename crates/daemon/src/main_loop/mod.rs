//! The loop: receive inputs, run the hub, carry out its outputs, append to the journal, flush.
//!
//! `receivers.rs` has the channels into the loop, `fleet_calls.rs` handles the calls of the fleet,
//! `proxy_messages.rs` those of network proxies, `reload.rs` applies changed configuration.

mod fleet_calls;
mod proxy_messages;
mod receivers;
mod reload;

pub(crate) use receivers::LoopReceivers;

use crate::{
    added_listeners::AddedListeners, clock, effects::HubEffects, freed_memory::FreedMemory,
    metrics::MetricsSnapshot, notify::UserNotifier, peers, policy_store::PolicyStore,
    pressure::PressureMonitor, recorder::InputRecorder, service_manager::ServiceManager,
    signals::DaemonSignal,
};
use jackfield_agents::{AgentProcessEvent, StopUrgency};
use jackfield_hub::{AgentId, ConnId, Exit, Hub, Input, Output, PolicySet, Time};
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES, Frame, Kind, acp::Method};
use jackfield_transport::{ClientEvent, ClientStream};
use receivers::LoopEvent;
use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::Sender;

/// Messages that are handled before everything is appended and flushed: bounds how long a flood on
/// one connection delays the others.
const BATCH_MAX: usize = 128;

/// What the loop is built from.
pub(crate) struct LoopParts {
    pub(crate) hub: Hub,
    pub(crate) effects: HubEffects,
    pub(crate) policy_store: PolicyStore,
    pub(crate) recorder: InputRecorder,
    pub(crate) notifier: UserNotifier,
    pub(crate) manager: ServiceManager,
    pub(crate) client_events: Sender<(ConnId, ClientEvent)>,
    /// The daemon stops when it was idle for this long.
    pub(crate) idle_after: Option<Duration>,
}

pub(crate) struct MainLoop {
    hub: Hub,
    effects: HubEffects,
    policy_store: PolicyStore,
    recorder: InputRecorder,
    notifier: UserNotifier,
    manager: ServiceManager,
    client_events: Sender<(ConnId, ClientEvent)>,
    next_conn: u64,
    idle_after: Option<Duration>,
    pressure_monitor: PressureMonitor,
    freed_memory: FreedMemory,
    /// Number of stop signals received.
    signals: u32,
}

impl MainLoop {
    pub(crate) fn new(parts: LoopParts) -> MainLoop {
        MainLoop {
            hub: parts.hub,
            effects: parts.effects,
            policy_store: parts.policy_store,
            recorder: parts.recorder,
            notifier: parts.notifier,
            manager: parts.manager,
            client_events: parts.client_events,
            next_conn: 0,
            idle_after: parts.idle_after,
            pressure_monitor: PressureMonitor::new(),
            freed_memory: FreedMemory::default(),
            signals: 0,
        }
    }

    /// Sets the addresses that clients can change, and the browsers that have logged in there.
    pub(crate) fn set_listeners(&mut self, listeners: AddedListeners) {
        self.notifier.set_logins(listeners.logins());
        self.effects.listeners = Some(listeners);
    }

    /// Reports to the service manager that clients can connect.
    pub(crate) fn send_ready(&self) {
        self.manager.send_ready();
    }

    /// Runs until the hub has stopped and every process has ended.
    pub(crate) async fn run(mut self, mut receivers: LoopReceivers) {
        self.flush_all();
        while !self.is_stopped() {
            let event = self.next_event(&mut receivers).await;
            self.handle_event(event);
            for _ in 0..BATCH_MAX {
                match receivers.try_next_event() {
                    Some(event) => self.handle_event(event),
                    None => break,
                }
            }
            self.flush_all();
        }
        for (_, mut conn) in std::mem::take(&mut self.effects.conns) {
            conn.flush();
            conn.close_after_flush();
        }
        // Late completions of the journal have no receiver, and the journal must not wait for one.
        drop(receivers);
        self.effects.journal_port.stop();
        self.notifier.finish().await;
    }

    /// The hub has written everything, and no process is left.
    fn is_stopped(&self) -> bool {
        self.effects.stopped && self.has_no_process()
    }

    fn has_no_process(&self) -> bool {
        self.effects.agents.is_empty() && self.effects.served.is_over()
    }

    async fn next_event(&mut self, receivers: &mut LoopReceivers) -> LoopEvent {
        let timeout = self.hub.poll_timeout().map(clock::until);
        let is_listening =
            self.effects.listeners.as_ref().is_some_and(AddedListeners::is_any_added);
        let is_idle = self.hub.is_idle() && self.has_no_process() && !is_listening;
        let idle = self.idle_after.filter(|_| is_idle);
        let batch_delay =
            self.effects.append_queue.next_wait_end().map(|it| it.duration_since(Instant::now()));
        let pressure_delay =
            (!self.effects.agents.is_empty()).then(|| self.pressure_monitor.until_next_read());
        // Durable events are delivered before new input is accepted.
        tokio::select! {
            biased;
            Some(done) = receivers.journal.recv() => LoopEvent::Journal(done),
            Some((agent, event)) = receivers.agents.recv() => LoopEvent::Agent(agent, event),
            Some((conn, event)) = receivers.clients.recv() => LoopEvent::Client(conn, event),
            Some(done) = receivers.served.recv() => LoopEvent::Served(done),
            Some((id, event)) = receivers.terminals.recv() => LoopEvent::Terminal(id, event),
            Some((agent, it)) = receivers.proxy_messages.recv() => LoopEvent::Proxy(agent, it),
            Some(accepted) = receivers.accepted.recv() => LoopEvent::Accepted(accepted),
            Some(request) = receivers.snapshot_requests.recv() => LoopEvent::Snapshot(request),
            Some(signal) = receivers.signals.recv() => LoopEvent::Signal(signal),
            Some(call) = receivers.fleet.recv() => LoopEvent::Fleet(call),
            () = sleep_for(timeout) => LoopEvent::Tick,
            () = sleep_for(batch_delay) => LoopEvent::BatchReady,
            () = sleep_for(idle) => LoopEvent::Idle,
            () = sleep_for(pressure_delay) => LoopEvent::CheckPressure,
        }
    }

    fn handle_event(&mut self, event: LoopEvent) {
        match event {
            LoopEvent::Journal(done) => {
                self.effects.on_journal_completion(done);
                self.feed_all();
            }
            LoopEvent::Agent(agent, event) => self.on_agent(agent, event),
            LoopEvent::Client(conn, event) => self.on_client(conn, event),
            LoopEvent::Served(done) => {
                let answer = self.effects.served.on_done(done);
                self.effects.add_served_inputs(answer);
                self.feed_all();
            }
            LoopEvent::Terminal(id, event) => {
                let answers = self.effects.served.on_terminal(id, event);
                self.effects.add_served_inputs(answers);
                self.feed_all();
            }
            LoopEvent::Proxy(agent, message) => self.on_proxy_message(agent, message),
            LoopEvent::Accepted(accepted) => self.on_accepted(accepted),
            LoopEvent::Snapshot(request) => {
                let snapshot = MetricsSnapshot::new(self.hub.gauges(), &self.effects.counters);
                // The requester may be gone.
                let _ignored = request.send(snapshot);
            }
            LoopEvent::Signal(DaemonSignal::Stop) => self.on_stop_signal(),
            LoopEvent::Signal(DaemonSignal::Reload) => self.reload(),
            LoopEvent::Fleet(call) => self.on_call(call),
            LoopEvent::Tick => self.feed(Input::Tick),
            LoopEvent::BatchReady => {}
            LoopEvent::CheckPressure => {
                if self.pressure_monitor.is_high() {
                    self.feed(Input::Pressure);
                }
            }
            LoopEvent::Idle => {
                tracing::info!("idle timeout reached; stopping");
                self.feed(Input::Stop);
            }
        }
    }

    /// The first signal stops gracefully, the second one kills the agents, the third one does not
    /// wait for the journal.
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

    fn on_agent(&mut self, agent: AgentId, event: AgentProcessEvent) {
        match event {
            AgentProcessEvent::Started { pid } => {
                self.effects.counters.on_started(agent);
                self.feed(Input::AgentStarted { agent, pid });
            }
            AgentProcessEvent::Frames(frames) => {
                let now = clock::now();
                for frame in frames {
                    if frame.kind() == Kind::Request {
                        let changed = self.policy_store.refresh(self.hub.folders_of(agent));
                        self.apply_policies(changed);
                    }
                    self.feed_at(now, Input::AgentSpoke { agent, frame });
                }
            }
            AgentProcessEvent::Oversized(line) => {
                tracing::warn!(%agent, size = line.size, limit = line.limit, "message of agent exceeds the limit");
                self.feed(Input::AgentSentOversized { agent, line });
            }
            AgentProcessEvent::Noise(noise) => {
                tracing::debug!(%agent, lines = noise.lines, first = noise.first, "agent wrote lines that are not messages");
            }
            // Adapters use lines and terminals use bytes; agents send frames.
            AgentProcessEvent::Wrote { .. }
            | AgentProcessEvent::Lines(_)
            | AgentProcessEvent::Output(_)
            | AgentProcessEvent::Stderr(_) => {}
            AgentProcessEvent::Gone(exit) => {
                self.effects.on_agent_gone(agent);
                self.feed(Input::AgentGone { agent, exit: to_exit(exit) });
            }
            AgentProcessEvent::Swept { survivors } => {
                if !survivors.is_empty() {
                    tracing::error!(%agent, ?survivors, "failed to end processes of agent");
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
                    if is_opening(&frame) {
                        let changed = self
                            .policy_store
                            .refresh(frame.params_value()["cwd"].as_str().into_iter());
                        self.apply_policies(changed);
                    }
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

    /// Requests of an agent are judged by the current policy files, and sessions get the current profile of their
    /// project.
    fn apply_policies(&mut self, changed: Option<Arc<PolicySet>>) {
        if let Some(policies) = changed {
            self.feed(Input::PolicyChanged { policies });
        }
    }

    pub(crate) fn on_accepted(&mut self, stream: ClientStream) {
        self.open_client(stream, FRAME_BYTES_MAX);
    }

    /// A client of a gateway; the gateway adds members to frames.
    fn on_host_conn(&mut self, stream: ClientStream) {
        self.open_client(stream, FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    }

    fn open_client(&mut self, stream: ClientStream, frame_bytes_max: usize) {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let peer = peers::identify_peer(&stream, &self.effects.spawn_context);
        let events = self.client_events.clone();
        let handle = jackfield_transport::open_connection(stream, conn, events, frame_bytes_max);
        self.effects.conns.insert(conn, handle);
        self.refresh_files();
        self.feed(Input::ClientOpened { conn, peer });
    }

    fn feed(&mut self, input: Input) {
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
                self.notifier.on_note(note, &self.hub);
            }
            self.effects.carry_out(output);
        }
    }

    fn feed_all(&mut self) {
        while let Some(input) = self.effects.inputs.pop_front() {
            self.feed(input);
        }
    }

    /// Appends and flushes until no inputs are left.
    fn flush_all(&mut self) {
        self.drain();
        loop {
            self.feed_all();
            self.effects.append_batches();
            if !self.effects.inputs.is_empty() {
                continue;
            }
            self.effects.flush();
            if self.effects.inputs.is_empty() {
                break;
            }
        }
        if std::mem::take(&mut self.effects.stop_requested) {
            self.feed(Input::Stop);
            self.flush_all();
        }
    }
}

async fn sleep_for(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}

fn to_exit(exit: jackfield_agents::AgentExit) -> Exit {
    let status = match (&exit.failed_to_start, exit.code, exit.signal) {
        (Some(why), _, _) => why.clone(),
        (None, Some(code), _) => format!("exit status {code}"),
        (None, None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None, None) => "its guard was lost".to_owned(),
    };
    let started = exit.failed_to_start.is_none();
    Exit { status, stderr: exit.stderr_tail, started, shortage: exit.shortage }
}

/// Whether a request chooses the sandbox of an agent.
fn is_opening(frame: &Frame) -> bool {
    frame.is_method(Method::SessionNew) || frame.is_method(Method::ControlConnect)
}
