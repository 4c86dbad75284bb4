//! What must always hold, told from the outside: what was said to the hub, what it said, and what is
//! on the disk. Each invariant is a function with a name.

mod asks;
mod failures;
mod fork;
mod hearing;
mod log;
mod queue;
mod requests;
mod rest;
mod sleep;
mod tenants;
mod wakes;

pub(super) use asks::{Asks, Ended, What};
pub(super) use failures::Failures;
pub(super) use fork::a_fork_is_a_copy_of_its_source;
pub(super) use hearing::{Hearing, Listener, Rendered};
pub(super) use log::{Facts, Prompt, Word, summary_and_tail_give_the_whole};
pub(super) use queue::Queues;
pub(super) use requests::{Answer, Kind, Request};
pub(super) use rest::names_stay_on_their_side;
pub(super) use sleep::Rest;
pub(super) use tenants::Try;
pub(super) use wakes::Wakes;

use bytes::Bytes;
use jackfield_hub::{Seq, SessionId};

/// The invariant that did not hold, and how. Thrown as a panic, so that a check can stand anywhere.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) detail: String,
}

/// Throws unless the invariant holds.
pub(super) fn hold(invariant: &'static str, holds: bool, detail: impl FnOnce() -> String) {
    if !holds {
        std::panic::panic_any(Broken { invariant, detail: detail() });
    }
}

pub(super) fn a_retry_says_the_same(seq: Seq, there: &Bytes, again: &Bytes) {
    hold("a_retry_says_the_same", there == again, || {
        format!("event {} was written as {there:?} and sent again as {again:?}", seq.0)
    });
}

pub(super) fn appends_follow_the_log(seq: Seq, head: u64) {
    hold("appends_follow_the_log", seq.0 == head + 1, || {
        format!("event {} was appended to a log that ends at {head}", seq.0)
    });
}

pub(super) fn a_summary_follows_its_events(session: &SessionId, upto: Seq, head: u64) {
    hold("a_summary_follows_its_events", upto.0 <= head, || {
        format!("{session} is summed up to {}, and its log ends at {head}", upto.0)
    });
}

/// The one bound on what a client that does not read can make the hub keep: no event is handed to
/// it when its outbox is full, save for the rest of one slice of the journal.
pub(super) fn outboxes_are_bounded(unwritten: usize, max: usize) {
    let slice = super::disk::READ_BYTES + super::disk::READ_EVENTS * 512;
    hold("outboxes_are_bounded", unwritten <= max + slice, || {
        format!("an event was handed to a client with {unwritten} bytes unwritten")
    });
}

pub(super) fn held_events_are_bounded(held: usize, max: usize) {
    hold("held_events_are_bounded", held <= max, || {
        format!("{held} bytes are held for the journal, and the agent is still read")
    });
}
