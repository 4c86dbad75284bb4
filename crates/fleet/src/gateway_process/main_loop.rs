//! The loop: receive inputs, run the gateway, carry out its outputs, flush.

use super::{clock::MonotonicClock, effects::GatewayEffects, session_locator::SessionLocator};
use crate::gateway::{Gateway, GatewayConfig, GatewayGauges, GatewayInput, Host, HostConnectionId};
use crate::{AuditLog, FleetConnection, HostEntry};
use jackfield_hub::ConnId;
use jackfield_journal::StreamOwnership;
use jackfield_protocol::FRAME_BYTES_MAX;
use jackfield_transport::{ClientEvent, ClientStream};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::sync::{
    mpsc::{self, Receiver, Sender},
    oneshot, watch,
};

/// Capacity of the channels from connections to the loop.
const CHANNEL_CAPACITY: usize = 64;
/// Messages that are handled before everything is flushed.
const BATCH_MAX: usize = 128;
/// Free processes for one agent: hosts limit only their total.
const AGENT_PROCESSES_MAX: usize = 1 << 16;

/// A request for the current gauges.
pub type GaugesRequest = oneshot::Sender<GatewayGauges>;

/// A gateway process before it runs.
pub struct GatewayProcess {
    pub config: GatewayConfig,
    pub connection: FleetConnection,
    pub ownership: StreamOwnership,
    pub hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    /// Receives the actions of clients.
    pub audit_log: AuditLog,
    /// Connections of authenticated clients.
    pub accepted: Receiver<ClientStream>,
    pub gauges_requests: Receiver<GaugesRequest>,
    /// Requests to stop.
    pub stop: Receiver<()>,
}

struct GatewayLoop {
    gateway: Gateway,
    clock: MonotonicClock,
    effects: GatewayEffects,
    client_events: Sender<(ConnId, ClientEvent)>,
    next_conn: u64,
}

enum GatewayLoopEvent {
    Client(ConnId, ClientEvent),
    HostConnection(HostConnectionId, ClientEvent),
    LookupResult(GatewayInput),
    Accepted(ClientStream),
    Hosts,
    Gauges(GaugesRequest),
    Stop,
    Tick,
}

struct GatewayLoopReceivers {
    clients: Receiver<(ConnId, ClientEvent)>,
    host_conns: Receiver<(HostConnectionId, ClientEvent)>,
    results: Receiver<GatewayInput>,
    accepted: Receiver<ClientStream>,
    hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    gauges_requests: Receiver<GaugesRequest>,
    stop: Receiver<()>,
}

impl GatewayProcess {
    /// Runs until it is asked to stop and every client is closed.
    pub async fn run(self) {
        let (client_events, clients) = mpsc::channel(CHANNEL_CAPACITY);
        let (host_conn_events, host_conns) = mpsc::channel(CHANNEL_CAPACITY);
        let (results_tx, results) = mpsc::channel(CHANNEL_CAPACITY);
        let GatewayProcess {
            config,
            connection,
            ownership,
            hosts,
            audit_log,
            accepted,
            gauges_requests,
            stop,
        } = self;
        let locator = SessionLocator {
            connection,
            ownership,
            hosts: hosts.clone(),
            results: results_tx,
            recent: Arc::default(),
        };
        let clock = MonotonicClock::start();
        let mut it = GatewayLoop {
            gateway: Gateway::new(config, clock.now()),
            clock,
            effects: GatewayEffects::new(host_conn_events, locator, audit_log),
            client_events,
            next_conn: 0,
        };
        let receivers = GatewayLoopReceivers {
            clients,
            host_conns,
            results,
            accepted,
            hosts,
            gauges_requests,
            stop,
        };
        it.update_hosts(&receivers.hosts.borrow().clone());
        it.run(receivers).await;
    }
}

impl GatewayLoop {
    async fn run(&mut self, mut receivers: GatewayLoopReceivers) {
        self.flush_all();
        while !self.effects.stopped {
            let timeout = self.gateway.poll_timeout().map(|it| self.clock.until(it));
            let event = tokio::select! {
                biased;
                Some((host_conn, event)) = receivers.host_conns.recv() => GatewayLoopEvent::HostConnection(host_conn, event),
                Some((conn, event)) = receivers.clients.recv() => GatewayLoopEvent::Client(conn, event),
                Some(input) = receivers.results.recv() => GatewayLoopEvent::LookupResult(input),
                Some(stream) = receivers.accepted.recv() => GatewayLoopEvent::Accepted(stream),
                Ok(()) = receivers.hosts.changed() => GatewayLoopEvent::Hosts,
                Some(request) = receivers.gauges_requests.recv() => GatewayLoopEvent::Gauges(request),
                Some(()) = receivers.stop.recv() => GatewayLoopEvent::Stop,
                () = sleep_until_timeout(timeout) => GatewayLoopEvent::Tick,
            };
            self.handle_event(event, &receivers);
            for _ in 0..BATCH_MAX {
                if let Ok((host_conn, event)) = receivers.host_conns.try_recv() {
                    self.handle_event(
                        GatewayLoopEvent::HostConnection(host_conn, event),
                        &receivers,
                    );
                } else if let Ok((conn, event)) = receivers.clients.try_recv() {
                    self.handle_event(GatewayLoopEvent::Client(conn, event), &receivers);
                } else {
                    break;
                }
            }
            self.flush_all();
        }
    }

    fn handle_event(&mut self, event: GatewayLoopEvent, receivers: &GatewayLoopReceivers) {
        match event {
            GatewayLoopEvent::Client(conn, event) => self.on_client(conn, event),
            GatewayLoopEvent::HostConnection(host_conn, event) => {
                self.on_host_conn(host_conn, event);
            }
            GatewayLoopEvent::LookupResult(input) => self.feed(input),
            GatewayLoopEvent::Accepted(stream) => {
                self.next_conn += 1;
                let conn = ConnId(self.next_conn);
                let events = self.client_events.clone();
                let handle =
                    jackfield_transport::open_connection(stream, conn, events, FRAME_BYTES_MAX);
                self.effects.add_conn(conn, handle);
                self.feed(GatewayInput::ClientOpened { conn });
            }
            GatewayLoopEvent::Hosts => self.update_hosts(&receivers.hosts.borrow().clone()),
            GatewayLoopEvent::Gauges(request) => {
                // The requester may be gone.
                let _ignored = request.send(self.gateway.gauges());
            }
            GatewayLoopEvent::Stop => self.feed(GatewayInput::Stop),
            GatewayLoopEvent::Tick => self.feed(GatewayInput::Tick),
        }
    }

    fn on_client(&mut self, conn: ConnId, event: ClientEvent) {
        match event {
            ClientEvent::Opened => {}
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    self.feed(GatewayInput::ClientSentFrame { conn, frame });
                }
            }
            ClientEvent::InvalidFrame(fault) => {
                self.feed(GatewayInput::ClientSentInvalidFrame { conn, fault });
            }
            ClientEvent::Wrote(bytes) => self.feed(GatewayInput::ClientWrote { conn, bytes }),
            ClientEvent::Finished => self.feed(GatewayInput::ClientFinished { conn }),
            ClientEvent::Gone => {
                self.effects.remove_conn(conn);
                self.feed(GatewayInput::ClientGone { conn });
            }
        }
    }

    fn on_host_conn(&mut self, host_conn: HostConnectionId, event: ClientEvent) {
        match event {
            ClientEvent::Opened => {}
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    self.feed(GatewayInput::HostSentFrame { host_conn, frame });
                }
            }
            ClientEvent::InvalidFrame(fault) => {
                tracing::error!(%host_conn, %fault, "host sent an invalid frame");
            }
            ClientEvent::Wrote(bytes) => {
                self.feed(GatewayInput::HostConnectionWrote { host_conn, bytes });
            }
            // A host that sends nothing more does not read either.
            ClientEvent::Finished | ClientEvent::Gone => {
                self.effects.remove_host_conn(host_conn);
                let reason = "the connection to the host ended".to_owned();
                self.feed(GatewayInput::HostConnectionGone { host_conn, reason });
            }
        }
    }

    fn update_hosts(&mut self, entries: &[HostEntry]) {
        self.feed(GatewayInput::HostsChanged(entries.iter().map(to_gateway_host).collect()));
    }

    fn feed(&mut self, input: GatewayInput) {
        self.gateway.handle(self.clock.now(), input);
        while let Some(output) = self.gateway.poll_output() {
            self.effects.carry_out(output);
        }
    }

    /// Flushes until no inputs are left.
    fn flush_all(&mut self) {
        loop {
            while let Some(input) = self.effects.inputs.pop_front() {
                self.feed(input);
            }
            self.effects.flush();
            if self.effects.inputs.is_empty() {
                return;
            }
        }
    }
}

/// A host as the gateway sees it.
pub fn to_gateway_host(entry: &HostEntry) -> Host {
    Host {
        name: entry.host.name.clone().into(),
        incarnation: u64::from_str_radix(&entry.host.incarnation, 16).unwrap_or(0),
        labels: entry.labels.iter().map(|(key, value)| format!("{key}={value}").into()).collect(),
        shared: entry.shared.clone(),
        agents: entry.agents.iter().map(|it| (it.as_str().into(), AGENT_PROCESSES_MAX)).collect(),
        free: entry.free.map(|it| it as usize),
        load: (entry.live + entry.sessions) as usize,
        sessions: entry.sessions as usize,
        draining: entry.draining,
        tenants: entry
            .tenants
            .iter()
            .map(|(name, it)| (name.clone().into(), it.sessions))
            .collect(),
    }
}

async fn sleep_until_timeout(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}
