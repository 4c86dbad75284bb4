//! A bus from start to end.

use crate::clock::Clock;
use crate::config::{ConfigError, Source};
use crate::door::{Door, Transport};
use crate::effects::{Effects, Ground};
use crate::main_loop::{Mailboxes, MainLoop, Signal};
use crate::metrics;
use crate::routing::Bus;
use jackfield_agents::{GuardCommand, ProcessLedger};
use jackfield_hub::Patience;
use jackfield_transport::TlsCertificate;
use jackfield_transport::{BearerToken, BindError, EndpointAddress, TokenError};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What an edge may have waiting for the loop, in reads of 8 KiB at most: the worst that a flood can
/// put before everyone else. Who finds it full waits in turn, so those who flood and those who do not
/// alternate; sixteen of them were 10 to 20 ms for everyone else.
const MAILBOX: usize = 2;

/// What a bus is started with.
#[derive(Debug, Clone)]
pub struct Options {
    pub config: Source,
    pub transport: Transport,
    /// The file with the token that TCP clients show.
    pub token: Option<PathBuf>,
    pub certificate: Option<TlsCertificate>,
    /// Where the page of metrics is served.
    pub metrics: Option<SocketAddr>,
    pub guard: GuardCommand,
    /// Where it is written down which processes are ours.
    pub ledger: PathBuf,
}

/// The bus listens.
#[derive(Debug)]
pub struct Ready {
    pub address: EndpointAddress,
    pub metrics: Option<SocketAddr>,
    pub pools: usize,
    pub workers: usize,
}

/// Why a bus did not come up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot listen on `{address}`")]
    Listen {
        address: EndpointAddress,
        #[source]
        source: BindError,
    },
    #[error(
        "`{address}` can be reached from elsewhere, and everything would cross the network \
         unencrypted: give --tls-cert, --tls-key and --token-file, or listen on 127.0.0.1"
    )]
    NotLoopback { address: SocketAddr },
    #[error("`{address}` with TLS needs a token, or anyone could connect: give --token-file")]
    NeedsToken { address: SocketAddr },
    #[error("cannot use the token file")]
    Token(#[source] TokenError),
    #[error("cannot serve metrics on `{address}`")]
    Metrics {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(
        "metrics on `{address}` could be read from elsewhere: serve them on 127.0.0.1, behind a proxy \
         if need be"
    )]
    MetricsNotLoopback { address: SocketAddr },
    #[error("cannot prepare {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Runs a bus until it is asked to stop, or its one client on stdio has gone; `on_ready` is called when
/// clients can connect.
pub fn serve(mut options: Options, on_ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    options.guard.raise_file_limit();
    let loaded = options.config.load()?;
    for warning in &loaded.warnings {
        tracing::warn!(config = options.config.name(), "{warning}");
    }
    let token = options.token.as_deref().map(BearerToken::create_or_read).transpose();
    let token = token.map_err(ServeError::Token)?;
    let ground = ground(&options, loaded.frame_bytes_max)?;
    let system = |what| move |source| ServeError::System { what, source };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(system("the runtime"))?;
    runtime.block_on(async move {
        let door = Door::open(&options.transport, token.as_ref(), options.certificate.as_ref())?;
        let (loops, scrapes) = metrics::channel();
        let page = options.metrics.map(metrics_page).transpose()?;
        let (signals, signalled) = mpsc::channel(4);
        watch_signals(&signals)?;
        let (worker_events, workers) = mpsc::channel(MAILBOX);
        let (client_events, clients) = mpsc::channel(MAILBOX);
        let (arrive, arrivals) = mpsc::channel(MAILBOX);
        let pools = &loaded.config.pools;
        let ready = Ready {
            address: door.address().clone(),
            metrics: page.as_ref().and_then(|it| it.local_addr().ok()),
            pools: pools.len(),
            workers: pools.iter().map(|it| it.instances).sum(),
        };
        let clock = Clock::start();
        let main_loop = MainLoop {
            bus: Bus::new(loaded.config, clock.now()),
            clock,
            effects: Effects::new(ground, worker_events),
            is_stdio: options.transport == Transport::Stdio,
            source: options.config,
            client_events,
            next_conn: 0,
            unproved: BTreeSet::new(),
            stopping: false,
            patience: Patience::default(),
            now: clock.now(),
        };
        tokio::spawn(door.admit(arrive));
        if let Some(page) = page {
            tokio::spawn(metrics::serve(page, loops));
        }
        on_ready(&ready);
        let mail = Mailboxes { workers, clients, arrivals, scrapes, signals: signalled };
        main_loop.run(mail).await;
        tracing::info!("bus stopped");
        Ok(())
    })
}

fn metrics_page(address: SocketAddr) -> Result<tokio::net::TcpListener, ServeError> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(ServeError::MetricsNotLoopback { address });
    }
    metrics::bind(address).map_err(|source| ServeError::Metrics { address, source })
}

/// Reaps what an earlier bus left behind, and prepares for our own workers.
fn ground(options: &Options, frame_bytes_max: usize) -> Result<Ground, ServeError> {
    let system = |what| move |source| ServeError::System { what, source };
    let ledger = ProcessLedger::open(&options.ledger).unwrap_or_else(|error| {
        // Guards end their workers all the same; only the day on which both are killed is lost.
        tracing::warn!(dir = %options.ledger.display(), %error, "no ledger of processes is kept");
        ProcessLedger::without_files()
    });
    let reaped = ledger.reap();
    if !reaped.ended.is_empty() {
        tracing::warn!(pids = ?reaped.ended, "ended what an earlier process left behind");
    }
    let seed = getrandom::u64()
        .map_err(|error| system("random numbers")(io::Error::other(error.to_string())))?;
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(Ground {
        guard: options.guard.clone(),
        ledger,
        mark: format!("bus-{}-{seed:016x}", std::process::id()),
        cwd: std::env::current_dir().map_err(system("the working directory"))?,
        env: std::env::vars_os().filter_map(text).collect(),
        frame_bytes_max,
    })
}

/// SIGTERM and SIGINT stop the bus, a second one at once; SIGHUP reads the configuration again.
fn watch_signals(signals: &mpsc::Sender<Signal>) -> Result<(), ServeError> {
    let failed = |source| ServeError::System { what: "signal handling", source };
    let kinds = [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::hangup(), Signal::Reload),
    ];
    for (kind, meaning) in kinds {
        let mut arrivals = signal(kind).map_err(failed)?;
        let signals = signals.clone();
        tokio::spawn(async move {
            while arrivals.recv().await.is_some() {
                if signals.send(meaning).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}
