//! Log lines: the bus itself does not log; its notes are logged here.

use crate::routing::BusNote;

/// Logs a note. Warnings are for events that an operator should look at.
pub(crate) fn log_note(note: &BusNote) {
    match note {
        BusNote::WorkerStarted { .. }
        | BusNote::WorkerEnded { pending: 0, .. }
        | BusNote::Reloaded { .. }
        | BusNote::Draining { .. } => tracing::info!("{note}"),
        BusNote::WorkerEnded { .. }
        | BusNote::Restarting { .. }
        | BusNote::NotRestarted { .. }
        | BusNote::Unhealthy { .. }
        | BusNote::Unrouted { .. }
        | BusNote::ClientSlow { .. } => tracing::warn!("{note}"),
        BusNote::GaveUp { .. } => tracing::error!("{note}"),
        BusNote::Stray { .. } => tracing::debug!("{note}"),
    }
}
