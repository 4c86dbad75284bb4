//! The one loop: take what there is, let the gateway think, carry out what it asks, send.

use super::{clock::Clock, effects::Effects, seek::Seeker};
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

/// What an edge may have waiting for the loop.
const MAILBOX: usize = 64;
/// Messages taken in one go before everything is sent.
const BATCH_MAX: usize = 128;
/// Places for one agent: hosts bound only all of them together.
const PLACES: usize = 1 << 16;

/// A question for the numbers of this moment.
pub type Scrape = oneshot::Sender<GatewayGauges>;

/// What a gateway is started with.
pub struct Front {
    pub config: GatewayConfig,
    pub link: FleetConnection,
    pub owners: StreamOwnership,
    pub hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    /// Where is kept what clients do.
    pub trail: AuditLog,
    /// Clients that were let in.
    pub accepted: Receiver<ClientStream>,
    pub scrapes: Receiver<Scrape>,
    /// Somebody wants it to end.
    pub stop: Receiver<()>,
}

struct Loop {
    gateway: Gateway,
    clock: Clock,
    effects: Effects,
    client_events: Sender<(ConnId, ClientEvent)>,
    next_conn: u64,
}

enum Woken {
    Client(ConnId, ClientEvent),
    HostConnection(HostConnectionId, ClientEvent),
    Found(GatewayInput),
    Accepted(ClientStream),
    Hosts,
    Scrape(Scrape),
    Stop,
    Tick,
}

struct Mailboxes {
    clients: Receiver<(ConnId, ClientEvent)>,
    host_conns: Receiver<(HostConnectionId, ClientEvent)>,
    found: Receiver<GatewayInput>,
    accepted: Receiver<ClientStream>,
    hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    scrapes: Receiver<Scrape>,
    stop: Receiver<()>,
}

impl Front {
    /// Runs until it is asked to stop and every client has been told.
    pub async fn run(self) {
        let (client_events, clients) = mpsc::channel(MAILBOX);
        let (host_conn_events, host_conns) = mpsc::channel(MAILBOX);
        let (found_tx, found) = mpsc::channel(MAILBOX);
        let Front { config, link, owners, hosts, trail, accepted, scrapes, stop } = self;
        let seeker =
            Seeker { link, owners, hosts: hosts.clone(), found: found_tx, recent: Arc::default() };
        let clock = Clock::start();
        let mut it = Loop {
            gateway: Gateway::new(config, clock.now()),
            clock,
            effects: Effects::new(host_conn_events, seeker, trail),
            client_events,
            next_conn: 0,
        };
        let mail = Mailboxes { clients, host_conns, found, accepted, hosts, scrapes, stop };
        it.tell_hosts(&mail.hosts.borrow().clone());
        it.run(mail).await;
    }
}

impl Loop {
    async fn run(&mut self, mut mail: Mailboxes) {
        self.settle();
        while !self.effects.stopped {
            let timeout = self.gateway.poll_timeout().map(|it| self.clock.until(it));
            let woken = tokio::select! {
                biased;
                Some((host_conn, event)) = mail.host_conns.recv() => Woken::HostConnection(host_conn, event),
                Some((conn, event)) = mail.clients.recv() => Woken::Client(conn, event),
                Some(found) = mail.found.recv() => Woken::Found(found),
                Some(stream) = mail.accepted.recv() => Woken::Accepted(stream),
                Ok(()) = mail.hosts.changed() => Woken::Hosts,
                Some(scrape) = mail.scrapes.recv() => Woken::Scrape(scrape),
                Some(()) = mail.stop.recv() => Woken::Stop,
                () = elapsed(timeout) => Woken::Tick,
            };
            self.take(woken, &mail);
            for _ in 0..BATCH_MAX {
                if let Ok((host_conn, event)) = mail.host_conns.try_recv() {
                    self.take(Woken::HostConnection(host_conn, event), &mail);
                } else if let Ok((conn, event)) = mail.clients.try_recv() {
                    self.take(Woken::Client(conn, event), &mail);
                } else {
                    break;
                }
            }
            self.settle();
        }
    }

    fn take(&mut self, woken: Woken, mail: &Mailboxes) {
        match woken {
            Woken::Client(conn, event) => self.on_client(conn, event),
            Woken::HostConnection(host_conn, event) => self.on_host_conn(host_conn, event),
            Woken::Found(found) => self.feed(found),
            Woken::Accepted(stream) => {
                self.next_conn += 1;
                let conn = ConnId(self.next_conn);
                let events = self.client_events.clone();
                let handle =
                    jackfield_transport::open_connection(stream, conn, events, FRAME_BYTES_MAX);
                self.effects.add_conn(conn, handle);
                self.feed(GatewayInput::ClientOpened { conn });
            }
            Woken::Hosts => self.tell_hosts(&mail.hosts.borrow().clone()),
            Woken::Scrape(scrape) => {
                // Who asked may be gone.
                let _unheard = scrape.send(self.gateway.gauges());
            }
            Woken::Stop => self.feed(GatewayInput::Stop),
            Woken::Tick => self.feed(GatewayInput::Tick),
        }
    }

    fn on_client(&mut self, conn: ConnId, event: ClientEvent) {
        match event {
            ClientEvent::Opened => {}
            ClientEvent::Frames(frames) => {
                for frame in frames {
                    self.feed(GatewayInput::ClientSpoke { conn, frame });
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
                tracing::error!(%host_conn, %fault, "a host says what is no message");
            }
            ClientEvent::Wrote(bytes) => {
                self.feed(GatewayInput::HostConnectionWrote { host_conn, bytes });
            }
            // A host that says nothing more has nothing to hear either.
            ClientEvent::Finished | ClientEvent::Gone => {
                self.effects.remove_host_conn(host_conn);
                let why = "the connection to the host ended".to_owned();
                self.feed(GatewayInput::HostConnectionGone { host_conn, why });
            }
        }
    }

    fn tell_hosts(&mut self, entries: &[HostEntry]) {
        self.feed(GatewayInput::Hosts(entries.iter().map(host_of).collect()));
    }

    fn feed(&mut self, input: GatewayInput) {
        self.gateway.handle(self.clock.now(), input);
        while let Some(output) = self.gateway.poll_output() {
            self.effects.carry_out(output);
        }
    }

    /// Sends what there is, until there is nothing more to do.
    fn settle(&mut self) {
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

/// A host as the core wants to know it.
pub fn host_of(entry: &HostEntry) -> Host {
    Host {
        name: entry.host.name.clone().into(),
        incarnation: u64::from_str_radix(&entry.host.incarnation, 16).unwrap_or(0),
        labels: entry.labels.iter().map(|(key, value)| format!("{key}={value}").into()).collect(),
        shared: entry.shared.clone(),
        agents: entry.agents.iter().map(|it| (it.as_str().into(), PLACES)).collect(),
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

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}
