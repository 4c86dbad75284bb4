//! The daemon from start to end, and the same hub inside another process.

use crate::{
    added_listeners::{AddedListeners, ListenerContext},
    agent_files::preload_builtin,
    boot,
    boot_error::BootError,
    daemon_options::{DaemonOptions, JournalChoice},
    fleet,
    listeners::open_listeners,
    lock::DaemonLock,
    loop_builder::{LoopInputs, assemble_loop},
    main_loop::{LoopReceivers, MainLoop},
    metrics, observe,
    service_manager::ServiceManager,
    signals::{DaemonSignal, wait_for_stop, watch_signals},
    tenants::{Tenants, UNCONFINED_AGENTS_WARNING},
    token,
    web::{self, WebContext},
};
use jackfield_agents::{ProcessLedger, take_passed_socket};
use jackfield_journal::Journal;
use jackfield_transport::{
    BindError, ClientAuthenticator, EndpointAddress, UNENCRYPTED_WARNING, stream_pair,
};
use std::{io, os::unix::net::UnixStream, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// The daemon is listening.
#[derive(Debug)]
pub struct DaemonReady {
    pub addresses: Vec<EndpointAddress>,
    pub sessions: usize,
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
    preload_builtin();
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
        let (web_addresses, addresses) = split_addresses(&options);
        let (metrics, snapshot_requests) = metrics::channel();
        let hosts = fleet_access.as_ref().and_then(fleet::FleetAccess::hosts);
        let web_context = WebContext {
            options: options.clone(),
            logins: web::open_logins(&options, &authenticator, tenants.clone()),
            authenticator: authenticator.clone(),
            tenants,
            metrics,
            hosts,
        };
        let web = web::start_web(&web_addresses, web_context.clone())?;
        let listener_context = ListenerContext { web: web_context, accepted: accepted.clone() };
        let mut bound: Vec<_> = web.iter().flat_map(|it| it.addresses.clone()).collect();
        let (socket, keys) = (options.paths.socket(), &authenticator);
        let listen = |it| open_listeners(it, &socket, passed, options.insecure, keys, &accepted);
        bound.extend(listen(addresses)?);
        warn_about_unencrypted(&bound);
        let (fleet, inputs) = match fleet_access {
            None => (None, Some(LoopInputs::without_fleet(accepted_rx, snapshot_requests))),
            Some(fleet_access) => {
                let joining =
                    fleet_access.join_fleet(&journal, &options, accepted_rx, snapshot_requests);
                let (fleet, inputs) = joining.await?;
                (Some(fleet), inputs.map(LoopInputs::from_host))
            }
        };
        if let Some(inputs) = inputs {
            let (mut main_loop, receivers, sessions) =
                assemble_loop(options, journal, ledger, inputs, signals_rx, manager)?;
            main_loop.set_listeners(AddedListeners::new(listener_context, bound.clone()));
            tracing::info!(sessions, pid = std::process::id(), "daemon started");
            on_ready(&DaemonReady { addresses: bound, sessions });
            main_loop.send_ready();
            run_loop(main_loop, receivers).await;
        } else {
            tracing::info!(pid = std::process::id(), "gateway started");
            on_ready(&DaemonReady { addresses: bound, sessions: 0 });
            wait_as_gateway(&manager, &mut signals_rx).await;
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

/// The addresses of the HTTP server, and the others.
fn split_addresses(options: &DaemonOptions) -> (Vec<EndpointAddress>, Vec<EndpointAddress>) {
    // The socket comes last: a client that finds it finds all other addresses open, too.
    let mut addresses = options.listen.clone();
    addresses.push(EndpointAddress::Unix(options.paths.socket()));
    addresses.into_iter().partition(EndpointAddress::is_web)
}

/// A gateway has no hub: its connections run as tasks of their own until a signal stops it.
async fn wait_as_gateway(manager: &ServiceManager, signals: &mut mpsc::Receiver<DaemonSignal>) {
    manager.send_ready();
    wait_for_stop(signals).await;
    manager.send_stopping();
}

fn warn_about_unencrypted(addresses: &[EndpointAddress]) {
    for address in addresses.iter().filter(|it| it.require_private().is_err()) {
        tracing::warn!(%address, "{UNENCRYPTED_WARNING}");
    }
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
    preload_builtin();
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
                let inputs = LoopInputs::without_fleet(accepted_rx, snapshot_requests);
                let manager = ServiceManager::absent();
                let assembled =
                    assemble_loop(options, journal, ledger, inputs, signals_rx, manager);
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
