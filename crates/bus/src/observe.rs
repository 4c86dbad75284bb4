//! Log lines: the bus does not log, so what it notes becomes a line here, and nowhere else.

use jackfield_core::bus::Note;

/// Warnings are for what somebody should look at.
pub(crate) fn note(note: &Note) {
    match note {
        Note::WorkerStarted { .. }
        | Note::WorkerEnded { pending: 0, .. }
        | Note::Reloaded { .. }
        | Note::Draining { .. } => tracing::info!("{note}"),
        Note::WorkerEnded { .. }
        | Note::Restarting { .. }
        | Note::LeftEnded { .. }
        | Note::Unhealthy { .. }
        | Note::Unrouted { .. }
        | Note::ClientSlow { .. } => tracing::warn!("{note}"),
        Note::GaveUp { .. } => tracing::error!("{note}"),
        Note::Stray { .. } => tracing::debug!("{note}"),
    }
}
