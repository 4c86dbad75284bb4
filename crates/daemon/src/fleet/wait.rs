//! Waits at the start of a member until the NATS servers are available; can be stopped.

use super::{FleetAccess, connect_fleet};
use crate::{
    boot_error::{BootError, FleetError},
    fleet_config::FleetConfig,
    signals::DaemonSignal,
};
use jackfield_fleet::HostInstance;
use jackfield_journal::{Journal, OpenError};
use jackfield_protocol::chain;
use std::{io, thread, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

const RETRY_DELAY_MIN: Duration = Duration::from_millis(250);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(2);
/// The interval between two log lines about the same wait.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Opens the journal of the fleet and connects to its list of hosts. `None` if the daemon is
/// stopped before.
pub(crate) async fn open_when_ready(
    fleet: &FleetConfig,
    host: &HostInstance,
    stop: &mut mpsc::Receiver<DaemonSignal>,
) -> Result<Option<(Journal, FleetAccess)>, BootError> {
    let Some(journal) = retry_until_ready(stop, || open_journal(fleet, host)).await? else {
        return Ok(None);
    };
    let access = retry_until_ready(stop, || connect_fleet((fleet.clone(), host.clone()))).await?;
    Ok(access.map(|it| (journal, it)))
}

/// Uses its own thread, since opening waits for the servers and the loop must still see the stop
/// signal.
async fn open_journal(fleet: &FleetConfig, host: &HostInstance) -> Result<Journal, BootError> {
    let (fleet, host) = (fleet.clone(), host.clone());
    let (result_tx, opened) = oneshot::channel();
    let open = move || {
        // The receiver is gone if the daemon was stopped.
        let _ignored = result_tx.send(fleet.open_journal(&host));
    };
    let started = thread::Builder::new().name("journal-open".into()).spawn(open);
    started.map_err(|source| BootError::System { what: "a thread", source })?;
    let ended = |_| io::Error::other("the thread that opens the journal ended");
    let opened = opened.await.map_err(ended);
    let opened = opened.map_err(|source| BootError::System { what: "the journal", source })?;
    opened.map_err(BootError::Journal)
}

/// Retries until it succeeds, fails permanently, or the daemon is stopped.
async fn retry_until_ready<T, F: Future<Output = Result<T, BootError>>>(
    stop: &mut mpsc::Receiver<DaemonSignal>,
    attempt: impl Fn() -> F,
) -> Result<Option<T>, BootError> {
    let mut delay = RETRY_DELAY_MIN;
    let mut last_logged: Option<Instant> = None;
    loop {
        let result = tokio::select! {
            result = attempt() => result,
            Some(DaemonSignal::Stop) = stop.recv() => return Ok(None),
        };
        let error = match result {
            Ok(done) => return Ok(Some(done)),
            Err(error) if is_temporary(&error) => error,
            Err(error) => return Err(error),
        };
        if last_logged.is_none_or(|it| LOG_INTERVAL <= it.elapsed()) {
            last_logged = Some(Instant::now());
            tracing::warn!(why = chain(&error), "waiting for the NATS servers of the fleet");
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            Some(DaemonSignal::Stop) = stop.recv() => return Ok(None),
        }
        delay = RETRY_DELAY_MAX.min(2 * delay);
    }
}

/// Whether the error may go away when the servers are back.
fn is_temporary(error: &BootError) -> bool {
    match error {
        BootError::Journal(OpenError::Unreachable { .. }) => true,
        BootError::Fleet(FleetError::Connection(error)) => error.is_temporary(),
        _ => false,
    }
}
