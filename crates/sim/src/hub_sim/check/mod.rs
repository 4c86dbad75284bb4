//! The invariants, checked from the outside: by the inputs and outputs of the hub and the contents of the disk. Each is
//! a function with a name.

mod asks;
mod delivery;
mod failures;
mod fork;
mod log;
mod log_pages;
mod overall;
mod queue;
mod requests;
mod restores;
mod sleep;
mod tenants;

pub(super) use asks::{AskKind, AskOutcome, AskTracker};
pub(super) use delivery::{DeliveryPosition, EventRendering, SessionSubscriber};
pub(super) use failures::FailureTracker;
pub(super) use fork::fork_is_a_copy_of_its_source;
pub(super) use log::{AgentUpdate, LogTracker, PromptRecord, recovered_state_equals_folded_log};
pub(super) use overall::session_ids_are_translated;
pub(super) use queue::QueueTracker;
pub(super) use requests::{ClientRequest, ReceivedResponse, RequestKind};
pub(super) use restores::RestoreTracker;
pub(super) use sleep::SleepTracker;
pub(super) use tenants::ForeignAccess;

use bytes::Bytes;
use jackfield_hub::{Seq, SessionId};

/// A violated invariant. It is thrown as a panic, so that a check can be made anywhere.
#[derive(Debug)]
pub(crate) struct InvariantViolation {
    pub(crate) invariant: &'static str,
    pub(crate) detail: String,
}

/// Panics unless the invariant holds.
pub(super) fn check_invariant(
    invariant: &'static str,
    holds: bool,
    detail: impl FnOnce() -> String,
) {
    if !holds {
        std::panic::panic_any(InvariantViolation { invariant, detail: detail() });
    }
}

pub(super) fn append_retry_is_identical(seq: Seq, stored: &Bytes, repeated: &Bytes) {
    check_invariant("append_retry_is_identical", stored == repeated, || {
        format!("event {} was written as {stored:?} and repeated as {repeated:?}", seq.0)
    });
}

pub(super) fn appends_are_contiguous(seq: Seq, head: u64) {
    check_invariant("appends_are_contiguous", seq.0 == head + 1, || {
        format!("event {} was appended to a log that ends at {head}", seq.0)
    });
}

pub(super) fn summary_covers_only_durable_events(session: &SessionId, upto: Seq, head: u64) {
    check_invariant("summary_covers_only_durable_events", upto.0 <= head, || {
        format!("{session} is summarized up to {}, and its log ends at {head}", upto.0)
    });
}

/// Bounds the memory that a client can use by not reading: no event is delivered to a full outbox, except for the rest
/// of one read.
pub(super) fn outboxes_are_bounded(unwritten: usize, max: usize) {
    let slice = super::disk::READ_BYTES + super::disk::READ_EVENTS * 512;
    check_invariant("outboxes_are_bounded", unwritten <= max + slice, || {
        format!("an event was sent to a client with {unwritten} bytes unwritten")
    });
}

pub(super) fn held_events_are_bounded(held: usize, max: usize) {
    check_invariant("held_events_are_bounded", held <= max, || {
        format!("{held} bytes are held for the journal, and the agent is not paused")
    });
}
