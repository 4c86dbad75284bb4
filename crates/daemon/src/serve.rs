//! The daemon from start to end, and the same hub inside another process.

use crate::{
    agent_registry::{self, AgentRegistry},
    boot, clock,
    config::Settings,
    effects::{HubEffects, SpawnContext},
    fleet::{self, FleetCall, FleetConfig, FleetError},
    freed_memory::FreedMemory,
    listeners::open_listeners,
    lock::DaemonLock,
    main_loop::{LoopReceivers, MainLoop},
    metrics::{self, SnapshotRequest},
    notify::UserNotifier,
    observe::{self, LogTarget},
    paths::Paths,
    policy_store::{PolicyStore, PolicyStoreError},
    pressure::PressureMonitor,
    recorder::InputRecorder,
    recover::{recover_sessions, report_lost_records},
    served::AgentServices,
    service_manager::ServiceManager,
    signals::{DaemonSignal, wait_for_stop, watch_signals},
    tenants::{Tenants, TenantsError, UNCONFINED_AGENTS_WARNING},
    token,
    web::{self, ExtraRoutes},
};
use jackfield_agents::{GuardCommand, ProcessLedger, take_passed_socket};
use jackfield_hub::{Config, Hub};
use jackfield_journal::{Journal, NonBlockingJournal, OpenError, ReadError};
use jackfield_transport::{
    BindError, ClientAuthenticator, ClientStream, EndpointAddress, TokenError, stream_pair,
};
use std::{io, os::unix::net::UnixStream, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    pub paths: Paths,
    /// In addition to the socket in the runtime directory.
    pub listen: Vec<EndpointAddress>,
    pub idle_after: Option<Duration>,
    pub log: LogTarget,
    /// A filter such as `info`.
    pub log_level: String,
    pub guard: GuardCommand,
    pub settings: Settings,
    pub journal: JournalChoice,
    /// Set if the daemon is a member of a fleet, whose journal it uses.
    pub fleet: Option<FleetConfig>,
    /// The file with tenants that may connect over TCP and HTTP.
    pub tenants: Option<PathBuf>,
    /// Additional HTTP routes.
    pub routes: Option<ExtraRoutes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalChoice {
    Memory,
    Sqlite,
}

/// The daemon is listening.
#[derive(Debug)]
pub struct DaemonReady {
    pub addresses: Vec<EndpointAddress>,
    pub sessions: usize,
}

/// Why a daemon failed to start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("cannot use directory `{}`", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot use lock file `{}`", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another daemon{} is already running: it holds the lock `{}`", format_pid(*pid), path.display())]
    AlreadyRuns { path: PathBuf, pid: Option<u32> },
    #[error("cannot open the journal")]
    Journal(#[source] OpenError),
    #[error("cannot read the journal")]
    Recover(#[source] ReadError),
    #[error("cannot listen on `{address}`")]
    Listen {
        address: EndpointAddress,
        #[source]
        source: BindError,
    },
    #[error("cannot listen on the socket of the service manager")]
    PassedSocket(#[source] BindError),
    #[error("cannot use the token file")]
    Token(#[source] TokenError),
    #[error("cannot use the tenants file")]
    Tenants(#[source] TenantsError),
    #[error("cannot join the fleet")]
    Fleet(#[source] FleetError),
    #[error("cannot use the policy files")]
    Rules(#[source] PolicyStoreError),
    #[error("cannot prepare {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

fn format_pid(pid: Option<u32>) -> String {
    pid.map(|it| format!(" (pid {it})")).unwrap_or_default()
}

/// Runs a daemon until it is asked to stop; `on_ready` is called when clients can connect.
pub fn serve(
    mut options: DaemonOptions,
    on_ready: impl FnOnce(&DaemonReady),
) -> Result<(), BootError> {
    let passed = take_passed_socket()
        .map_err(|source| BootError::PassedSocket(BindError::PassedSocket { source }))?;
    let manager = ServiceManager::from_env();
    options.guard.raise_file_limit();
    agent_registry::preload_builtin();
    boot::create_directories(&options.paths)?;
    observe::start_log(&options.log, &options.log_level)
        .map_err(|source| BootError::System { what: "the log file", source })?;
    let _lock = DaemonLock::take(&options.paths.lock(), &options.paths.socket())?;
    let ledger = ProcessLedger::open(&options.paths.ledger())
        .map_err(|source| BootError::System { what: "the ledger", source })?;
    boot::reap_processes(&ledger);
    create_runtime()?.block_on(async move {
        let (signals, mut signals_rx) = mpsc::channel(4);
        watch_signals(&signals)?;
        let (authenticator, tenants) = open_authenticator(&options)?;
        let Some((journal, fleet_access)) = open_journal(&options, &mut signals_rx).await? else {
            tracing::info!("daemon stopped while it waited for the servers of its fleet");
            return Ok(());
        };
        let (accepted, accepted_rx) = mpsc::channel(64);
        // The socket comes last: a client that finds it finds all other addresses open, too.
        let mut addresses = options.listen.clone();
        addresses.push(EndpointAddress::Unix(options.paths.socket()));
        let (web_addresses, addresses): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(EndpointAddress::is_web);
        let mut bound = Vec::new();
        let (metrics, snapshot_requests) = metrics::channel();
        let hosts = fleet_access.as_ref().and_then(fleet::FleetAccess::hosts);
        let (keys, tenants) = (&authenticator, tenants.as_ref());
        let web = web::start_web(&web_addresses, &options, keys, tenants, metrics, hosts)?;
        bound.extend(web.iter().flat_map(|it| it.addresses.clone()));
        let socket = options.paths.socket();
        bound.extend(open_listeners(addresses, &socket, passed, keys, &accepted)?);
        let mut inputs = LoopInputs {
            accepted: accepted_rx,
            snapshot_requests,
            signals: signals_rx,
            fleet: closed_channel(),
        };
        let fleet = match fleet_access {
            Some(fleet_access) => {
                Some(fleet_access.join_fleet(&journal, &options, &mut inputs).await?)
            }
            None => None,
        };
        if fleet.as_ref().is_none_or(fleet::FleetMembership::is_host) {
            let (main_loop, receivers, sessions) =
                assemble_loop(options, journal, ledger, inputs, manager)?;
            tracing::info!(sessions, pid = std::process::id(), "daemon started");
            on_ready(&DaemonReady { addresses: bound, sessions });
            main_loop.manager.send_ready();
            run_loop(main_loop, receivers).await;
        } else {
            tracing::info!(pid = std::process::id(), "gateway started");
            on_ready(&DaemonReady { addresses: bound, sessions: 0 });
            manager.send_ready();
            wait_for_stop(&mut inputs.signals).await;
            manager.send_stopping();
        }
        if let Some(fleet) = fleet {
            fleet.finish().await;
        }
        if let Some(web) = web {
            web.finish().await;
        }
        tracing::info!("daemon stopped");
        Ok(())
    })
}

/// Reads the token and the tenants that clients are identified by.
fn open_authenticator(
    options: &DaemonOptions,
) -> Result<(ClientAuthenticator, Option<Arc<Tenants>>), BootError> {
    let token = token::open_token(&options.paths).map_err(BootError::Token)?;
    let tenants = options.tenants.as_deref().map(Tenants::open).transpose();
    let tenants = tenants.map_err(BootError::Tenants)?.map(Arc::new);
    if tenants.is_some() {
        tracing::warn!("{UNCONFINED_AGENTS_WARNING}");
    }
    let authenticator = ClientAuthenticator::new(token, tenants.as_ref().map(Tenants::verifier));
    Ok((authenticator, tenants))
}

/// A hub on a thread of this process, with one client.
#[derive(Debug)]
pub struct IsolatedHub {
    /// The client's end. When it is closed, the hub ends its agents and stops.
    pub stream: UnixStream,
    thread: std::thread::JoinHandle<()>,
}

impl IsolatedHub {
    /// Closes the client's end and waits until every process has ended.
    pub fn finish(self) {
        drop(self.stream);
        // A panic of the thread was already reported by the panic hook.
        let _ignored = self.thread.join();
    }
}

/// Starts a hub inside this process.
pub fn start_isolated(options: DaemonOptions) -> Result<IsolatedHub, BootError> {
    agent_registry::preload_builtin();
    let system_error = |what| move |source| BootError::System { what, source };
    let ledger =
        ProcessLedger::open(&options.paths.ledger()).map_err(system_error("the ledger"))?;
    let journal = open_local_journal(&options)?;
    let options = DaemonOptions { idle_after: Some(Duration::ZERO), ..options };
    let (stream_tx, stream_rx) = std::sync::mpsc::sync_channel(1);
    let runtime = create_runtime()?;
    let thread = std::thread::Builder::new().name("hub".into());
    let thread = thread
        .spawn(move || {
            runtime.block_on(async move {
                let (_accepted, accepted_rx) = mpsc::channel(1);
                let (_signals, signals_rx) = mpsc::channel(1);
                let (_metrics, snapshot_requests) = metrics::channel();
                let fleet = closed_channel();
                let inputs = LoopInputs {
                    accepted: accepted_rx,
                    snapshot_requests,
                    signals: signals_rx,
                    fleet,
                };
                let manager = ServiceManager::absent();
                let assembled = assemble_loop(options, journal, ledger, inputs, manager);
                let (Ok((mut main_loop, receivers, _)), Ok((hub_end, client_end))) =
                    (assembled, stream_pair())
                else {
                    return;
                };
                if stream_tx.send(client_end).is_ok() {
                    main_loop.on_accepted(hub_end);
                    run_loop(main_loop, receivers).await;
                }
            });
        })
        .map_err(system_error("a thread"))?;
    let stream = stream_rx
        .recv()
        .map_err(|_| system_error("the hub")(io::Error::other("it did not start")))?;
    Ok(IsolatedHub { stream, thread })
}

/// The journal, and the access to the fleet. `None` if the daemon is stopped before the servers of
/// the fleet are available.
async fn open_journal(
    options: &DaemonOptions,
    signals: &mut mpsc::Receiver<DaemonSignal>,
) -> Result<Option<(Journal, Option<fleet::FleetAccess>)>, BootError> {
    let Some(fleet) = &options.fleet else { return Ok(Some((open_local_journal(options)?, None))) };
    let opened = fleet::open_when_ready(fleet, &fleet.new_instance(), signals).await?;
    Ok(opened.map(|(journal, fleet_access)| (journal, Some(fleet_access))))
}

fn open_local_journal(options: &DaemonOptions) -> Result<Journal, BootError> {
    match options.journal {
        JournalChoice::Memory => Ok(Journal::in_memory()),
        JournalChoice::Sqlite => {
            let path = options.paths.journal();
            Journal::open(&path, options.settings.durability()).map_err(BootError::Journal)
        }
    }
}

/// Runs the loop as a task: waking the main future of the runtime would poll all connections first.
async fn run_loop(main_loop: MainLoop, receivers: LoopReceivers) {
    if let Err(ended) = tokio::spawn(main_loop.run(receivers)).await {
        std::panic::resume_unwind(ended.into_panic());
    }
}

fn create_runtime() -> Result<tokio::runtime::Runtime, BootError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| BootError::System { what: "the runtime", source })
}

/// Channels into the loop, other than those of connections and agents.
pub(crate) struct LoopInputs {
    pub(crate) accepted: mpsc::Receiver<ClientStream>,
    pub(crate) snapshot_requests: mpsc::Receiver<SnapshotRequest>,
    signals: mpsc::Receiver<DaemonSignal>,
    pub(crate) fleet: mpsc::Receiver<FleetCall>,
}

/// A channel that never receives anything.
pub(crate) fn closed_channel<T>() -> mpsc::Receiver<T> {
    mpsc::channel(1).1
}

/// Connects the hub, the effects and the channels.
fn assemble_loop(
    options: DaemonOptions,
    journal: Journal,
    ledger: ProcessLedger,
    inputs: LoopInputs,
    manager: ServiceManager,
) -> Result<(MainLoop, LoopReceivers, usize), BootError> {
    let seed = random_seed()?;
    // A host of a fleet adopts sessions on request.
    let recovered = match &options.fleet {
        Some(_) => Vec::new(),
        None => recover_sessions(&journal).map_err(BootError::Recover)?,
    };
    let sessions = recovered.len();
    let host = options.fleet.as_ref().map(|it| it.name.as_str().into());
    let keep_asleep = host.is_none();
    let lost_records = report_lost_records(&journal);
    let config = Config { host, keep_asleep, lost_records, ..options.settings.hub_config(seed) };
    let notify_settings = options.settings.notify.clone();
    let (paths, program) = (options.paths.clone(), options.guard.program.clone());
    let agent_registry = AgentRegistry::new(options.settings, paths, program);
    let policy_store =
        PolicyStore::open(&options.paths, agent_registry.catalog()).map_err(BootError::Rules)?;
    let (agents, policies) = (agent_registry.list_launches(), policy_store.policies());
    let config = Config { agents, policies, pools: agent_registry.pools(), ..config };
    let hub = Hub::new(config, clock::now(), recovered);
    let (journal_done, journal_rx) = mpsc::channel(1024);
    let (agent_events, agent_rx) = mpsc::channel(64);
    let (client_events, client_rx) = mpsc::channel(64);
    let (served_done, served_rx) = mpsc::channel(64);
    let (terminal_events, terminal_rx) = mpsc::channel(64);
    let journal_port = NonBlockingJournal::start(journal, move |done| {
        // The loop has ended only when no completion is needed any more.
        let _ignored = journal_done.blocking_send(done);
    });
    let mark = format!("{}-{seed:016x}", std::process::id());
    let crash_dir = (options.journal == JournalChoice::Sqlite).then(|| options.paths.state.clone());
    let spawn_context = SpawnContext { guard: options.guard, ledger, mark };
    let served = AgentServices::new(spawn_context.clone(), served_done, terminal_events);
    let notifier = UserNotifier::new(notify_settings, spawn_context.clone());
    let effects =
        HubEffects::new(journal_port, agent_registry, served, spawn_context, agent_events);
    let main_loop = MainLoop {
        hub,
        effects,
        policy_store,
        recorder: InputRecorder::new(crash_dir),
        notifier,
        manager,
        client_events,
        next_conn: 0,
        idle_after: options.idle_after,
        pressure_monitor: PressureMonitor::new(),
        freed_memory: FreedMemory::default(),
        signals: 0,
    };
    let receivers = LoopReceivers {
        journal: journal_rx,
        agents: agent_rx,
        clients: client_rx,
        served: served_rx,
        terminals: terminal_rx,
        accepted: inputs.accepted,
        snapshot_requests: inputs.snapshot_requests,
        signals: inputs.signals,
        fleet: inputs.fleet,
    };
    Ok((main_loop, receivers, sessions))
}

pub(crate) fn random_seed() -> Result<u64, BootError> {
    getrandom::u64().map_err(|error| BootError::System {
        what: "random numbers",
        source: io::Error::other(error.to_string()),
    })
}
