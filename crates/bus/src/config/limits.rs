//! The limits of a configuration, under the names of the published kernel.

use super::flaw::Flaw;
use super::json::{Members, Value};
use super::unknown;
use crate::routing::BusLimits;

/// As published.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Less could not even say what is wrong.
const BYTES_MIN: usize = 1 << 10;
/// A year: nothing that is meant is longer, and nothing overflows.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// The limits of the bus, and the longest line.
pub(super) fn read(
    value: Option<Value<'_>>,
    warnings: &mut Vec<Flaw>,
) -> Result<(BusLimits, usize), Flaw> {
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
        if let Some(value) = members.take(name) {
            let bad = format!("config: `{name}` must be a number of seconds from 0");
            *limit = milliseconds(value).ok_or_else(|| value.flaw(bad))?;
        }
    }
    unknown(members, "`limits`", warnings);
    Ok((limits, frame_bytes_max))
}

fn read_count(
    members: &mut Members<'_>,
    name: &str,
    limit: &mut usize,
    least: usize,
) -> Result<(), Flaw> {
    let Some(value) = members.take(name) else { return Ok(()) };
    let bad = format!("config: `{name}` must be a whole number from {least}");
    *limit = value.get().filter(|it| least <= *it).ok_or_else(|| value.flaw(bad))?;
    Ok(())
}

/// Seconds, with a fraction if need be.
pub(super) fn milliseconds(value: Value<'_>) -> Option<u64> {
    let seconds: f64 = value.get()?;
    let within = (0.0..=SECONDS_MAX).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a year")]
    within.then(|| (seconds * 1000.0).ceil() as u64)
}
