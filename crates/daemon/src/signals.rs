//! The signals that a daemon handles.

use crate::boot_error::BootError;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonSignal {
    Stop,
    /// Reload the configuration.
    Reload,
}

/// SIGTERM and SIGINT stop the daemon, a second one immediately; SIGHUP reloads the configuration.
pub(crate) fn watch_signals(signals: &mpsc::Sender<DaemonSignal>) -> Result<(), BootError> {
    let failed = |source| BootError::System { what: "signal handling", source };
    let kinds = [
        (SignalKind::terminate(), DaemonSignal::Stop),
        (SignalKind::interrupt(), DaemonSignal::Stop),
        (SignalKind::hangup(), DaemonSignal::Reload),
    ];
    for (kind, daemon_signal) in kinds {
        let mut received = signal(kind).map_err(failed)?;
        let signals = signals.clone();
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                if signals.send(daemon_signal).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Returns when a gateway must stop. It has no sessions and no agents, so it has nothing to reload.
pub(crate) async fn wait_for_stop(signals: &mut mpsc::Receiver<DaemonSignal>) {
    while signals.recv().await == Some(DaemonSignal::Reload) {
        tracing::warn!(
            "a gateway reads config.toml only when it starts: restart it; the files of tenants and tokens \
             are read again when they change"
        );
    }
}
