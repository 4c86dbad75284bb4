//! A bus from start to end.

use crate::clock::MonotonicClock;
use crate::config::ConfigSource;
use crate::effects::{BusEffects, WorkerSpawnContext};
use crate::listener::{BusListener, BusTransport};
use crate::main_loop::{BusLoop, BusLoopReceivers, BusSignal, ReloadSource};
use crate::metrics;
use crate::routing::Bus;
use crate::serve_error::ServeError;
use jackfield_agents::{GuardCommand, ProcessLedger};
use jackfield_catalog::Catalog;
use jackfield_transport::TlsCertificate;
use jackfield_transport::{BearerToken, BindError, EndpointAddress};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Capacity of the channels from connections to the loop, in reads of 8 KiB at most: the most that
/// a flood can put before the messages of other peers. Senders of a full channel take turns, so a
/// flood and other peers alternate; a capacity of sixteen delayed the others by 10 to 20 ms.
const CHANNEL_CAPACITY: usize = 2;

/// What a bus is started with.
#[derive(Debug, Clone)]
pub struct BusOptions {
    pub config: ConfigSource,
    pub transport: BusTransport,
    /// The file with the token that TCP clients must send.
    pub token: Option<PathBuf>,
    pub certificate: Option<TlsCertificate>,
    /// Unencrypted addresses may be reachable from other machines. The configuration can permit it,
    /// too.
    pub insecure: bool,
    /// The address of the metrics page.
    pub metrics: Option<SocketAddr>,
    /// The agents that the launcher of the configuration can start.
    pub catalog: Catalog,
    pub guard: GuardCommand,
    /// The directory of the process ledger.
    pub ledger: PathBuf,
}

/// The bus is listening.
#[derive(Debug)]
pub struct BusReady {
    pub address: EndpointAddress,
    pub metrics: Option<SocketAddr>,
    pub pools: usize,
    pub workers: usize,
}

/// Runs a bus until it is asked to stop, or its only client on stdio has disconnected. `on_ready`
/// is called when clients can connect.
pub fn serve(mut options: BusOptions, on_ready: impl FnOnce(&BusReady)) -> Result<(), ServeError> {
    options.guard.raise_file_limit();
    let loaded = options.config.load(&options.catalog)?;
    for warning in &loaded.warnings {
        tracing::warn!(config = options.config.name(), "{warning}");
    }
    let token = options.token.as_deref().map(BearerToken::create_or_read).transpose();
    let token = token.map_err(ServeError::Token)?;
    let spawn_context = create_spawn_context(&options, loaded.frame_bytes_max)?;
    let system_error = |what| move |source| ServeError::System { what, source };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(system_error("the runtime"))?;
    runtime.block_on(async move {
        let insecure = options.insecure || loaded.insecure;
        let certificate = options.certificate.as_ref();
        let listener =
            BusListener::open(&options.transport, token.as_ref(), certificate, insecure)?;
        let (snapshot_requests_tx, snapshot_requests) = metrics::channel();
        let metrics_listener = options.metrics.map(|at| bind_metrics(at, insecure)).transpose()?;
        let (signals, signals_rx) = mpsc::channel(4);
        watch_signals(&signals)?;
        let (worker_events, workers) = mpsc::channel(CHANNEL_CAPACITY);
        let (client_events, clients) = mpsc::channel(CHANNEL_CAPACITY);
        let (accepted_tx, accepted) = mpsc::channel(CHANNEL_CAPACITY);
        let pools = &loaded.config.pools;
        let ready = BusReady {
            address: listener.address().clone(),
            metrics: metrics_listener.as_ref().and_then(|it| it.local_addr().ok()),
            pools: pools.len(),
            workers: pools.iter().map(|it| it.instances).sum(),
        };
        let clock = MonotonicClock::start();
        let main_loop = BusLoop::new(
            Bus::new(loaded.config, clock.now()),
            clock,
            BusEffects::new(spawn_context, worker_events),
            ReloadSource { config: options.config, catalog: options.catalog },
            client_events,
            options.transport == BusTransport::Stdio,
        );
        tokio::spawn(listener.accept_clients(accepted_tx));
        if let Some(metrics_listener) = metrics_listener {
            tokio::spawn(metrics::serve_page(metrics_listener, snapshot_requests_tx));
        }
        on_ready(&ready);
        let receivers =
            BusLoopReceivers { workers, clients, accepted, snapshot_requests, signals: signals_rx };
        main_loop.run(receivers).await;
        tracing::info!("bus stopped");
        Ok(())
    })
}

fn bind_metrics(at: SocketAddr, insecure: bool) -> Result<tokio::net::TcpListener, ServeError> {
    let address = EndpointAddress::Http(at);
    let private = if insecure { Ok(()) } else { address.require_private() };
    let bound = private.map_err(BindError::from).and_then(|()| {
        metrics::bind(at).map_err(|source| BindError::Tcp { address: address.clone(), source })
    });
    bound.map_err(|source| ServeError::Metrics { address, source })
}

/// Reaps processes of an earlier bus, and prepares to start workers.
fn create_spawn_context(
    options: &BusOptions,
    frame_bytes_max: usize,
) -> Result<WorkerSpawnContext, ServeError> {
    let system_error = |what| move |source| ServeError::System { what, source };
    let ledger = ProcessLedger::open(&options.ledger).unwrap_or_else(|error| {
        // Guards end their workers in any case. Only if bus and guard are both killed, processes
        // remain.
        tracing::warn!(dir = %options.ledger.display(), %error, "failed to open the process ledger");
        ProcessLedger::without_files()
    });
    let reaped = ledger.reap();
    if !reaped.ended.is_empty() {
        tracing::warn!(pids = ?reaped.ended, "ended processes of an earlier bus");
    }
    let seed = getrandom::u64()
        .map_err(|error| system_error("random numbers")(io::Error::other(error.to_string())))?;
    let to_text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(WorkerSpawnContext {
        guard: options.guard.clone(),
        ledger,
        mark: format!("bus-{}-{seed:016x}", std::process::id()),
        cwd: std::env::current_dir().map_err(system_error("the working directory"))?,
        env: std::env::vars_os().filter_map(to_text).collect(),
        frame_bytes_max,
    })
}

/// SIGTERM and SIGINT stop the bus, a second one immediately; SIGHUP reloads the configuration.
fn watch_signals(signals: &mpsc::Sender<BusSignal>) -> Result<(), ServeError> {
    let failed = |source| ServeError::System { what: "signal handling", source };
    let kinds = [
        (SignalKind::terminate(), BusSignal::Stop),
        (SignalKind::interrupt(), BusSignal::Stop),
        (SignalKind::hangup(), BusSignal::Reload),
    ];
    for (kind, bus_signal) in kinds {
        let mut received = signal(kind).map_err(failed)?;
        let signals = signals.clone();
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                if signals.send(bus_signal).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}
