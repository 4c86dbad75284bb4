//! Log lines: the bus does not log, so what it notes becomes a line here, and nowhere else.

use crate::routing::BusNote;

/// Warnings are for what somebody should look at.
pub(crate) fn note(note: &BusNote) {
    match note {
        BusNote::WorkerStarted { .. }
        | BusNote::WorkerEnded { pending: 0, .. }
        | BusNote::Reloaded { .. }
        | BusNote::Draining { .. } => tracing::info!("{note}"),
        BusNote::WorkerEnded { .. }
        | BusNote::Restarting { .. }
        | BusNote::LeftEnded { .. }
        | BusNote::Unhealthy { .. }
        | BusNote::Unrouted { .. }
        | BusNote::ClientSlow { .. } => tracing::warn!("{note}"),
        BusNote::GaveUp { .. } => tracing::error!("{note}"),
        BusNote::Stray { .. } => tracing::debug!("{note}"),
    }
}
