//! Builds the main loop: its parts, then the channels between them.

use crate::{
    agent_registry::AgentRegistry,
    boot::random_seed,
    boot_error::BootError,
    clock,
    daemon_options::{DaemonOptions, JournalChoice},
    effects::HubEffects,
    fleet::{FleetCall, HostInputs},
    main_loop::{LoopParts, LoopReceivers, MainLoop},
    metrics::SnapshotRequest,
    notify::UserNotifier,
    policy_store::PolicyStore,
    recorder::InputRecorder,
    recover::{recover_sessions, report_lost_records},
    sandbox::AgentSandboxes,
    served::AgentServices,
    service_manager::ServiceManager,
    signals::DaemonSignal,
    spawn_context::SpawnContext,
};
use jackfield_agents::ProcessLedger;
use jackfield_hub::{Config, Hub};
use jackfield_journal::{Journal, NonBlockingJournal};
use jackfield_transport::ClientStream;
use tokio::sync::mpsc;

/// Channels into the loop, other than those of connections and agents.
pub(crate) struct LoopInputs {
    accepted: mpsc::Receiver<ClientStream>,
    snapshot_requests: mpsc::Receiver<SnapshotRequest>,
    fleet: mpsc::Receiver<FleetCall>,
}

impl LoopInputs {
    /// The inputs of a daemon that is not a member of a fleet.
    pub(crate) fn without_fleet(
        accepted: mpsc::Receiver<ClientStream>,
        snapshot_requests: mpsc::Receiver<SnapshotRequest>,
    ) -> LoopInputs {
        LoopInputs { accepted, snapshot_requests, fleet: closed_channel() }
    }

    /// The inputs of a host of a fleet.
    pub(crate) fn from_host(inputs: HostInputs) -> LoopInputs {
        let HostInputs { accepted, snapshot_requests, calls } = inputs;
        let accepted = accepted.unwrap_or_else(closed_channel);
        LoopInputs { accepted, snapshot_requests, fleet: calls }
    }
}

/// A channel that never receives anything.
fn closed_channel<T>() -> mpsc::Receiver<T> {
    mpsc::channel(1).1
}

/// Connects the hub, the effects and the channels.
pub(crate) fn assemble_loop(
    options: DaemonOptions,
    journal: Journal,
    ledger: ProcessLedger,
    inputs: LoopInputs,
    signals: mpsc::Receiver<DaemonSignal>,
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
    let (proxy_messages, proxy_message_rx) = mpsc::channel(64);
    let sandboxes = AgentSandboxes::new(paths.clone(), program.clone(), proxy_messages);
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
    let effects = HubEffects::new(
        journal_port,
        agent_registry,
        served,
        sandboxes,
        spawn_context,
        agent_events,
    );
    let main_loop = MainLoop::new(LoopParts {
        hub,
        effects,
        policy_store,
        recorder: InputRecorder::new(crash_dir),
        notifier,
        manager,
        client_events,
        idle_after: options.idle_after,
    });
    let receivers = LoopReceivers {
        journal: journal_rx,
        agents: agent_rx,
        clients: client_rx,
        served: served_rx,
        terminals: terminal_rx,
        proxy_messages: proxy_message_rx,
        accepted: inputs.accepted,
        snapshot_requests: inputs.snapshot_requests,
        signals,
        fleet: inputs.fleet,
    };
    Ok((main_loop, receivers, sessions))
}
