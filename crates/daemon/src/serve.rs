//! The daemon from start to end, and the same hub inside another process.

use crate::{
    boot, clock,
    config::Settings,
    effects::{Effects, Ground},
    fleet::{self, Call, Fleet, FleetError},
    freed_memory::FreedMemory,
    listeners::open_listeners,
    lock::DaemonLock,
    main_loop::{Mailboxes, MainLoop},
    metrics::{self, Scrape},
    notify::Notify,
    observe::{self, LogTarget},
    paths::Paths,
    pressure::Gauge,
    recorder::Recorder,
    recover::{recover, report_lost_records},
    roster::{self, Roster},
    rulebook::{Rulebook, RulesError},
    served::Served,
    service_manager::ServiceManager,
    signals::{DaemonSignal, wait_for_stop, watch_signals},
    tenants::{Tenants, TenantsError, UNCONFINED_AGENTS_WARNING},
    token,
    web::{self, Routes},
};
use jackfield_agents::{GuardCommand, ProcessLedger, take_passed_socket};
use jackfield_hub::{Config, Hub, Patience};
use jackfield_journal::{Journal, NonBlockingJournal, OpenError, ReadError};
use jackfield_transport::{
    Authenticator, BindError, ClientStream, EndpointAddress, TokenError, stream_pair,
};
use std::{io, os::unix::net::UnixStream, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct Options {
    pub paths: Paths,
    /// Beside the socket in the runtime directory.
    pub listen: Vec<EndpointAddress>,
    pub idle_after: Option<Duration>,
    pub log: LogTarget,
    /// A filter such as `info`.
    pub log_level: String,
    pub guard: GuardCommand,
    pub settings: Settings,
    pub journal: JournalChoice,
    /// The journal is that of a fleet, and so are the sessions.
    pub fleet: Option<Fleet>,
    /// Who else may come in over TCP and HTTP.
    pub tenants: Option<PathBuf>,
    /// What is served over HTTP beside the protocol itself.
    pub routes: Option<Routes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalChoice {
    Memory,
    Sqlite,
}

/// The daemon listens.
#[derive(Debug)]
pub struct Ready {
    pub addresses: Vec<EndpointAddress>,
    pub sessions: usize,
}

/// Why a daemon did not come up.
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
    #[error("another daemon{} already runs: it has the lock `{}`", in_brackets(*pid), path.display())]
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
    #[error("cannot use the rules about what agents may do")]
    Rules(#[source] RulesError),
    #[error("cannot prepare {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

fn in_brackets(pid: Option<u32>) -> String {
    pid.map(|it| format!(" (pid {it})")).unwrap_or_default()
}

/// Runs a daemon until it is asked to stop; `on_ready` is called when clients can connect.
pub fn serve(mut options: Options, on_ready: impl FnOnce(&Ready)) -> Result<(), BootError> {
    let passed = take_passed_socket()
        .map_err(|source| BootError::PassedSocket(BindError::PassedSocket { source }))?;
    let manager = ServiceManager::from_env();
    options.guard.raise_file_limit();
    roster::warm_up();
    boot::directories(&options.paths)?;
    observe::start(&options.log, &options.log_level)
        .map_err(|source| BootError::System { what: "the log file", source })?;
    let _lock = DaemonLock::take(&options.paths.lock(), &options.paths.socket())?;
    let ledger = ProcessLedger::open(&options.paths.ledger())
        .map_err(|source| BootError::System { what: "the ledger", source })?;
    boot::reap(&ledger);
    runtime()?.block_on(async move {
        let (signals, mut signalled) = mpsc::channel(4);
        watch_signals(&signals)?;
        let token = token::open(&options.paths).map_err(BootError::Token)?;
        let tenants = options.tenants.as_deref().map(Tenants::open).transpose();
        let tenants = tenants.map_err(BootError::Tenants)?.map(Arc::new);
        if tenants.is_some() {
            tracing::warn!("{UNCONFINED_AGENTS_WARNING}");
        }
        let keys = Authenticator::new(token, tenants.as_ref().map(Tenants::vouch));
        let Some((journal, reached)) = open(&options, &mut signalled).await? else {
            tracing::info!("daemon stopped before the servers of its fleet could be used");
            return Ok(());
        };
        let (accepted, arrivals) = mpsc::channel(64);
        // The socket comes last: a client that finds it finds every other address open too.
        let mut addresses = options.listen.clone();
        addresses.push(EndpointAddress::Unix(options.paths.socket()));
        let (on_the_web, addresses): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(EndpointAddress::is_web);
        let mut bound = Vec::new();
        let (metrics, scrapes) = metrics::channel();
        let hosts = reached.as_ref().and_then(fleet::Reached::hosts);
        let web = web::start(&on_the_web, &options, &keys, tenants.as_ref(), metrics, hosts)?;
        bound.extend(web.iter().flat_map(|it| it.addresses.clone()));
        bound.extend(open_listeners(addresses, &options.paths.socket(), passed, &keys, &accepted)?);
        let mut calls = Calls { accepted: arrivals, scrapes, signals: signalled, fleet: nothing() };
        let fleet = match reached {
            Some(reached) => Some(reached.enter(&journal, &options, &mut calls).await?),
            None => None,
        };
        if fleet.as_ref().is_none_or(fleet::Entered::is_host) {
            let (main_loop, mail, sessions) = assemble(options, journal, ledger, calls, manager)?;
            tracing::info!(sessions, pid = std::process::id(), "daemon started");
            on_ready(&Ready { addresses: bound, sessions });
            main_loop.manager.send_ready();
            run(main_loop, mail).await;
        } else {
            tracing::info!(pid = std::process::id(), "gateway started");
            on_ready(&Ready { addresses: bound, sessions: 0 });
            manager.send_ready();
            wait_for_stop(&mut calls.signals).await;
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

/// A hub on a thread of this process, with one client.
#[derive(Debug)]
pub struct Isolated {
    /// The client's end. When it is closed, the hub ends its agents and itself.
    pub stream: UnixStream,
    thread: std::thread::JoinHandle<()>,
}

impl Isolated {
    /// Closes the client's end and waits until every process is gone.
    pub fn finish(self) {
        drop(self.stream);
        // The thread has nothing to say; a panic there was already reported by the panic hook.
        let _ended = self.thread.join();
    }
}

/// Starts a hub inside this process.
pub fn isolated(options: Options) -> Result<Isolated, BootError> {
    roster::warm_up();
    let system = |what| move |source| BootError::System { what, source };
    let ledger = ProcessLedger::open(&options.paths.ledger()).map_err(system("the ledger"))?;
    let journal = open_local(&options)?;
    let options = Options { idle_after: Some(Duration::ZERO), ..options };
    let (give, take) = std::sync::mpsc::sync_channel(1);
    let runtime = runtime()?;
    let thread = std::thread::Builder::new().name("hub".into());
    let thread = thread
        .spawn(move || {
            runtime.block_on(async move {
                let (_accepted, arrivals) = mpsc::channel(1);
                let (_signals, signalled) = mpsc::channel(1);
                let (_metrics, scrapes) = metrics::channel();
                let fleet = nothing();
                let calls = Calls { accepted: arrivals, scrapes, signals: signalled, fleet };
                let manager = ServiceManager::absent();
                let assembled = assemble(options, journal, ledger, calls, manager);
                let (Ok((mut main_loop, mail, _)), Ok((ours, theirs))) = (assembled, stream_pair())
                else {
                    return;
                };
                if give.send(theirs).is_ok() {
                    main_loop.on_accepted(ours);
                    run(main_loop, mail).await;
                }
            });
        })
        .map_err(system("a thread"))?;
    let stream =
        take.recv().map_err(|_| system("the hub")(io::Error::other("it did not start")))?;
    Ok(Isolated { stream, thread })
}

/// The journal, and the fleet that it belongs to. `None` if the daemon is stopped before the servers of the fleet
/// can be used.
async fn open(
    options: &Options,
    signals: &mut mpsc::Receiver<DaemonSignal>,
) -> Result<Option<(Journal, Option<fleet::Reached>)>, BootError> {
    let Some(fleet) = &options.fleet else { return Ok(Some((open_local(options)?, None))) };
    let opened = fleet::open_when_ready(fleet, &fleet.host(), signals).await?;
    Ok(opened.map(|(journal, reached)| (journal, Some(reached))))
}

fn open_local(options: &Options) -> Result<Journal, BootError> {
    match options.journal {
        JournalChoice::Memory => Ok(Journal::in_memory()),
        JournalChoice::Sqlite => {
            let path = options.paths.journal();
            Journal::open(&path, options.settings.durability()).map_err(BootError::Journal)
        }
    }
}

/// In a task: what wakes the runtime's first future makes it look at all edges before it goes on.
async fn run(main_loop: MainLoop, mail: Mailboxes) {
    if let Err(ended) = tokio::spawn(main_loop.run(mail)).await {
        std::panic::resume_unwind(ended.into_panic());
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, BootError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| BootError::System { what: "the runtime", source })
}

/// What reaches the loop from outside the edges.
pub(crate) struct Calls {
    pub(crate) accepted: mpsc::Receiver<ClientStream>,
    pub(crate) scrapes: mpsc::Receiver<Scrape>,
    signals: mpsc::Receiver<DaemonSignal>,
    pub(crate) fleet: mpsc::Receiver<Call>,
}

/// A mailbox that nothing comes to.
pub(crate) fn nothing<T>() -> mpsc::Receiver<T> {
    mpsc::channel(1).1
}

/// Puts hub, edges and mailboxes together.
fn assemble(
    options: Options,
    journal: Journal,
    ledger: ProcessLedger,
    calls: Calls,
    manager: ServiceManager,
) -> Result<(MainLoop, Mailboxes, usize), BootError> {
    let seed = seed()?;
    // A host of a fleet has the sessions that it is asked for.
    let recovered = match &options.fleet {
        Some(_) => Vec::new(),
        None => recover(&journal).map_err(BootError::Recover)?,
    };
    let sessions = recovered.len();
    let host = options.fleet.as_ref().map(|it| it.name.as_str().into());
    let keep_asleep = host.is_none();
    let lost_records = report_lost_records(&journal);
    let config = Config { host, keep_asleep, lost_records, ..options.settings.hub_config(seed) };
    let notify = options.settings.notify.clone();
    let (paths, program) = (options.paths.clone(), options.guard.program.clone());
    let roster = Roster::new(options.settings, paths, program);
    let rulebook = Rulebook::open(&options.paths, roster.catalogue()).map_err(BootError::Rules)?;
    let (agents, policies) = (roster.launches(), rulebook.policies());
    let config = Config { agents, policies, pools: roster.pools(), ..config };
    let hub = Hub::new(config, clock::now(), recovered);
    let (journal_done, journal_mail) = mpsc::channel(1024);
    let (agent_events, agent_mail) = mpsc::channel(64);
    let (client_events, client_mail) = mpsc::channel(64);
    let (served_done, served_mail) = mpsc::channel(64);
    let (terminal_events, terminal_mail) = mpsc::channel(64);
    let port = NonBlockingJournal::start(journal, move |done| {
        // The loop is gone only when nobody waits for the answer any more.
        let _unheard = journal_done.blocking_send(done);
    });
    let mark = format!("{}-{seed:016x}", std::process::id());
    let crash_dir = (options.journal == JournalChoice::Sqlite).then(|| options.paths.state.clone());
    let ground = Ground { guard: options.guard, ledger, mark };
    let served = Served::new(ground.clone(), served_done, terminal_events);
    let notify = Notify::new(notify, ground.clone());
    let effects = Effects::new(port, roster, served, ground, agent_events);
    let main_loop = MainLoop {
        hub,
        effects,
        rulebook,
        recorder: Recorder::new(crash_dir),
        notify,
        manager,
        client_events,
        next_conn: 0,
        idle_after: options.idle_after,
        gauge: Gauge::new(),
        freed_memory: FreedMemory::default(),
        signals: 0,
        patience: Patience::default(),
    };
    let mail = Mailboxes {
        journal: journal_mail,
        agents: agent_mail,
        clients: client_mail,
        served: served_mail,
        terminals: terminal_mail,
        accepted: calls.accepted,
        scrapes: calls.scrapes,
        signals: calls.signals,
        fleet: calls.fleet,
    };
    Ok((main_loop, mail, sessions))
}

pub(crate) fn seed() -> Result<u64, BootError> {
    getrandom::u64().map_err(|error| BootError::System {
        what: "random numbers",
        source: io::Error::other(error.to_string()),
    })
}
