//! The start of a member while the NATS servers cannot be used: it waits, says for what, and can be stopped.

use super::{Fleet, Reached, reach};
use crate::{serve::BootError, signals::DaemonSignal};
use jackfield_fleet::HostInstance;
use jackfield_journal::{Journal, OpenError};
use jackfield_protocol::chain;
use std::{io, thread, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Between two lines in the log about the same wait.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Opens the journal of the fleet and connects to its list of hosts. `None` if the daemon is stopped before.
pub(crate) async fn open_when_ready(
    fleet: &Fleet,
    host: &HostInstance,
    stop: &mut mpsc::Receiver<DaemonSignal>,
) -> Result<Option<(Journal, Reached)>, BootError> {
    let Some(journal) = retry_until_ready(stop, || open_journal(fleet, host)).await? else {
        return Ok(None);
    };
    let reached = retry_until_ready(stop, || reach((fleet.clone(), host.clone()))).await?;
    Ok(reached.map(|it| (journal, it)))
}

/// On a thread of its own: it waits for the servers, and the signal that stops the daemon must be seen meanwhile.
async fn open_journal(fleet: &Fleet, host: &HostInstance) -> Result<Journal, BootError> {
    let (fleet, host) = (fleet.clone(), host.clone());
    let (tell, opened) = oneshot::channel();
    let open = move || {
        // The daemon was stopped meanwhile if the other end is gone.
        let _stopped = tell.send(fleet.journal(&host));
    };
    let started = thread::Builder::new().name("journal-open".into()).spawn(open);
    started.map_err(|source| BootError::System { what: "a thread", source })?;
    let ended = |_| io::Error::other("the thread that opens the journal ended");
    let opened = opened.await.map_err(ended);
    let opened = opened.map_err(|source| BootError::System { what: "the journal", source })?;
    opened.map_err(BootError::Journal)
}

/// Tries until it succeeds, fails for a reason that does not pass, or the daemon is stopped.
async fn retry_until_ready<T, F: Future<Output = Result<T, BootError>>>(
    stop: &mut mpsc::Receiver<DaemonSignal>,
    attempt: impl Fn() -> F,
) -> Result<Option<T>, BootError> {
    let mut pause = PAUSE_MIN;
    let mut told: Option<Instant> = None;
    loop {
        let tried = tokio::select! {
            tried = attempt() => tried,
            Some(DaemonSignal::Stop) = stop.recv() => return Ok(None),
        };
        let error = match tried {
            Ok(done) => return Ok(Some(done)),
            Err(error) if is_temporary(&error) => error,
            Err(error) => return Err(error),
        };
        if told.is_none_or(|it| TELL_EVERY <= it.elapsed()) {
            told = Some(Instant::now());
            tracing::warn!(
                why = chain(&error),
                "the NATS servers of the fleet cannot be used yet; the daemon waits for them"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(DaemonSignal::Stop) = stop.recv() => return Ok(None),
        }
        pause = PAUSE_MAX.min(2 * pause);
    }
}

/// Whether it passes when the servers are back.
fn is_temporary(error: &BootError) -> bool {
    match error {
        BootError::Journal(OpenError::Unreachable { .. }) => true,
        BootError::Fleet(super::FleetError::Link(error)) => error.is_temporary(),
        _ => false,
    }
}
