//! What every backend promises, as one suite that runs against each of them.
//!
//! A new backend is a new [`World`] and one line in `suite!`.

mod model;
mod reading;
mod writing;

use crate::{Append, Durability, Event, Journal};
use bytes::Bytes;
use std::sync::Arc;
use tempfile::TempDir;

/// A journal of some kind, empty at first, and what it stands on.
pub(super) struct World {
    journal: Journal,
    dir: Option<TempDir>,
}

impl World {
    fn memory() -> World {
        World { journal: Journal::memory(), dir: None }
    }

    fn sqlite() -> World {
        let dir = tempfile::tempdir().unwrap();
        World { journal: open(&dir), dir: Some(dir) }
    }

    /// Another one of the same kind, empty.
    fn fresh(&self) -> World {
        if self.dir.is_some() { World::sqlite() } else { World::memory() }
    }

    /// The same journal as another process would find it; the same value if it lives in memory.
    fn reopen(&mut self) {
        if let Some(dir) = &self.dir {
            self.journal = Journal::memory();
            self.journal = open(dir);
        }
    }

    /// A second handle on the same journal, with no memory of what the first one did.
    fn other_handle(&self) -> Journal {
        self.dir.as_ref().map_or_else(|| self.journal.clone(), open)
    }
}

fn open(dir: &TempDir) -> Journal {
    Journal::open(&dir.path().join("journal.db"), Durability::Process).unwrap()
}

/// An append of these lines.
fn append(stream: &str, epoch: u64, first: u64, lines: &[&str]) -> Append {
    Append {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).unwrap(),
        body: Bytes::from(lines.join("\n")),
        summary: None,
    }
}

fn with_summary(append: Append, summary: &str) -> Append {
    Append { summary: Some(Bytes::copy_from_slice(summary.as_bytes())), ..append }
}

/// Appends one batch of one append.
fn write(journal: &Journal, append: Append) -> Result<u64, crate::AppendError> {
    let mut outcomes = journal.append(&[append]);
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Everything after this number, in one answer.
fn read_all(journal: &Journal, stream: &str, after: u64) -> Vec<Event> {
    journal.read(stream, after, usize::MAX, usize::MAX).unwrap()
}

fn lines(events: &[Event]) -> Vec<&str> {
    events.iter().map(|it| std::str::from_utf8(&it.line).unwrap()).collect()
}

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|it| it.seq).collect()
}

fn name(text: &str) -> Arc<str> {
    text.into()
}

macro_rules! suite {
    ($($part:ident :: $check:ident,)*) => {
        mod memory {
            $(#[test] fn $check() { super::$part::$check(&mut super::World::memory()); })*
        }
        mod sqlite {
            $(#[test] fn $check() { super::$part::$check(&mut super::World::sqlite()); })*
        }
    };
}

suite! {
    writing::a_claim_creates_the_stream_and_raises_its_epoch,
    writing::an_older_epoch_is_fenced_for_ever,
    writing::a_writer_of_a_deleted_stream_stays_fenced_when_it_is_made_anew,
    writing::an_unclaimed_stream_is_fenced,
    writing::another_handle_fences_this_one,
    writing::two_handles_may_take_turns_on_different_streams,
    writing::events_have_consecutive_numbers_and_a_gap_is_refused,
    writing::a_retry_stores_only_what_is_missing,
    writing::a_retry_after_a_restart_stores_only_what_is_missing,
    writing::a_batch_goes_to_many_streams_and_each_append_is_judged_by_itself,
    writing::a_batch_may_continue_the_same_stream,
    writing::a_batch_may_go_to_and_fro_between_very_many_streams,
    writing::an_empty_batch_is_nothing,
    writing::an_append_that_does_not_add_up_is_invalid,
    writing::the_latest_summary_wins,
    writing::a_retry_does_not_bring_back_an_older_summary,
    writing::a_summary_may_come_after_its_events,
    writing::a_deleted_stream_is_gone,
    writing::deleting_what_is_not_there_is_no_error,
    reading::an_empty_journal_has_nothing,
    reading::an_answer_is_a_prefix_within_both_limits,
    reading::an_answer_has_at_least_one_event,
    reading::a_read_may_start_in_the_middle_of_a_record,
    reading::a_read_at_or_beyond_the_head_is_empty,
    reading::upkeep_changes_nothing_that_is_read,
    reading::large_events_come_back_whole,
    reading::a_large_event_waits_for_an_answer_with_room,
    reading::an_event_may_look_like_a_reference,
    reading::events_may_be_any_bytes_but_a_newline,
    reading::streams_may_have_any_name,
    reading::streams_are_listed_by_name_with_their_heads,
    reading::ten_thousand_streams_are_listed_at_once,
    model::a_journal_is_like_a_list_of_lines,
}
