//! Reads `limits`, with the names of the published kernel.

use super::json::{ObjectMembers, PositionedValue};
use super::problem::ConfigProblem;
use super::warn_unknown;
use crate::routing::BusLimits;

/// The default of the published kernel.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// A smaller limit could not hold an error message.
const BYTES_MIN: usize = 1 << 10;
/// A year, which avoids overflows.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// The limits of the bus, and the maximum line length.
pub(super) fn read_limits(
    value: Option<PositionedValue<'_>>,
    warnings: &mut Vec<ConfigProblem>,
) -> Result<(BusLimits, usize), ConfigProblem> {
    let mut limits = BusLimits::default();
    let mut frame_bytes_max = FRAME_BYTES_MAX;
    let Some(value) = value else { return Ok((limits, frame_bytes_max)) };
    let mut members = value.members("`limits`")?;
    let counts = [
        ("max_input_buffer", &mut frame_bytes_max, BYTES_MIN),
        ("max_output_queue", &mut limits.outbox_bytes_max, BYTES_MIN),
        ("max_restarts", &mut limits.restarts_max, 0),
        ("max_sessions", &mut limits.sessions_max, 1),
        ("max_pending", &mut limits.pending_max, 1),
        ("max_clients", &mut limits.clients_max, 1),
    ];
    for (name, limit, least) in counts {
        read_count(&mut members, name, limit, least)?;
    }
    let times = [
        ("restart_window_sec", &mut limits.restart_window_ms),
        ("drain_timeout_sec", &mut limits.drain_ms),
        ("backpressure_timeout_sec", &mut limits.backpressure_ms),
    ];
    for (name, limit) in times {
        if let Some(value) = members.take_member(name) {
            let reason = format!("config: `{name}` must be a number of seconds from 0");
            *limit = milliseconds(value).ok_or_else(|| value.problem(reason))?;
        }
    }
    warn_unknown(members, "`limits`", warnings);
    Ok((limits, frame_bytes_max))
}

fn read_count(
    members: &mut ObjectMembers<'_>,
    name: &str,
    limit: &mut usize,
    least: usize,
) -> Result<(), ConfigProblem> {
    let Some(value) = members.take_member(name) else { return Ok(()) };
    let reason = format!("config: `{name}` must be a whole number from {least}");
    *limit = value.read_owned().filter(|it| least <= *it).ok_or_else(|| value.problem(reason))?;
    Ok(())
}

/// Seconds, possibly with a fraction.
pub(super) fn milliseconds(value: PositionedValue<'_>) -> Option<u64> {
    let seconds: f64 = value.read_owned()?;
    let is_in_range = (0.0..=SECONDS_MAX).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a year")]
    is_in_range.then(|| (seconds * 1000.0).ceil() as u64)
}
