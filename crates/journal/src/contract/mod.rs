//! What every backend promises, as one suite that runs against each of them.
//!
//! A new backend is a new [`World`] and one line in `suite!`.

mod handle;
mod model;
mod reading;
mod writing;

use crate::{Address, Append, Cell, Durability, Event, Journal};
use bytes::Bytes;
use handle::Handle;
use jackfield_nats_access::NatsServers;
use jackfield_testkit::nats::Cluster;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;

/// A journal of some kind, empty at first, and what it stands on.
pub(super) struct World {
    journal: Handle,
    ground: Ground,
}

enum Ground {
    Memory,
    Sqlite(TempDir),
    /// Few shards, so that streams share them. With an archive, all that can be is in it at once.
    Nats(Arc<Cluster>, Cell, Option<Arc<TempDir>>, TestEffort),
}

/// How many random cases and streams a journal on servers is tried with: every claim is a round trip.
#[derive(Debug, Clone, Copy)]
enum TestEffort {
    Gate,
    Nightly,
}

impl World {
    fn on(ground: Ground) -> World {
        World { journal: ground.open(), ground }
    }

    fn memory() -> World {
        World::on(Ground::Memory)
    }

    fn sqlite() -> World {
        World::on(Ground::Sqlite(tempfile::tempdir().unwrap()))
    }

    /// An empty cell: clusters take their time to start, so tests share one.
    fn nats(cluster: &Arc<Cluster>, is_archived: bool, effort: TestEffort) -> World {
        static CELLS: AtomicU64 = AtomicU64::new(0);
        let name = format!("cell{}", CELLS.fetch_add(1, Ordering::Relaxed));
        let cell = Cell { name, shards: 2, replicas: cluster.servers().len() };
        let archive = is_archived.then(|| Arc::new(tempfile::tempdir().unwrap()));
        World::on(Ground::Nats(cluster.clone(), cell, archive, effort))
    }

    /// Another one of the same kind, empty.
    fn fresh(&self) -> World {
        match &self.ground {
            Ground::Memory => World::memory(),
            Ground::Sqlite(_) => World::sqlite(),
            Ground::Nats(cluster, _, archive, effort) => {
                World::nats(cluster, archive.is_some(), *effort)
            }
        }
    }

    /// The same journal as another process would find it; the same value if it lives in memory.
    fn reopen(&mut self) {
        if !matches!(self.ground, Ground::Memory) {
            self.journal = Ground::Memory.open();
            self.journal = self.ground.open();
        }
    }

    /// A second handle on the same journal, with no memory of what the first one did.
    fn other_handle(&self) -> Handle {
        match &self.ground {
            Ground::Memory => self.journal.clone(),
            ground => ground.open(),
        }
    }

    /// The number of random cases.
    fn cases(&self) -> u32 {
        match self.ground {
            Ground::Nats(.., TestEffort::Gate) => 3,
            Ground::Nats(.., TestEffort::Nightly) => 20,
            _ => 100,
        }
    }

    /// The number of events in a long stream.
    fn long(&self) -> u64 {
        match self.ground {
            Ground::Nats(.., TestEffort::Gate) => 50,
            _ => 300,
        }
    }

    /// The number of streams where there are very many.
    fn many(&self) -> usize {
        match self.ground {
            Ground::Nats(.., TestEffort::Gate) => 200,
            Ground::Nats(.., TestEffort::Nightly) => 1_000,
            _ => 10_000,
        }
    }
}

impl Ground {
    fn open(&self) -> Handle {
        match self {
            Ground::Memory => Handle::new(Journal::memory()),
            Ground::Sqlite(dir) => {
                let path = dir.path().join("journal.db");
                Handle::new(Journal::open(&path, Durability::Process).unwrap())
            }
            Ground::Nats(cluster, cell, archive, _) => {
                let (servers, cell) = (NatsServers::on_loopback(cluster.urls()), cell.clone());
                let address = Address { servers, cell, owner: None };
                let handle = Handle::new(Journal::connect(address).unwrap());
                match archive {
                    Some(dir) => handle.with_archive(dir.path()),
                    None => handle,
                }
            }
        }
    }
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
fn write(journal: &Handle, append: Append) -> Result<u64, crate::AppendError> {
    let mut outcomes = journal.append(&[append]);
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Everything after this number, in one answer.
fn read_all(journal: &Handle, stream: &str, after: u64) -> Vec<Event> {
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
        /// Every check in a cell of its own, on one cluster.
        mod nats {
            use super::TestEffort;

            /// They wait for the servers most of the time.
            const CHECKS_AT_ONCE: usize = 2;

            const CHECKS: &[(&str, fn(&mut super::World))] =
                &[$((stringify!($check), super::$part::$check)),*];

            fn run_checks(
                checks: impl Iterator<Item = &'static (&'static str, fn(&mut super::World))> + Send,
                (servers, is_archived): (usize, bool),
                effort: TestEffort,
            ) {
                let cluster = std::sync::Arc::new(super::Cluster::start(servers));
                let next = std::sync::Mutex::new(checks);
                let take_next = || next.lock().expect("no check runs with the lock").next();
                std::thread::scope(|scope| {
                    for _ in 0..CHECKS_AT_ONCE {
                        scope.spawn(|| {
                            while let Some((name, check)) = take_next() {
                                println!("{name}");
                                check(&mut super::World::nats(&cluster, is_archived, effort));
                            }
                        });
                    }
                });
            }
            /// Every fourth check: all of them in one test would take more than a minute on a busy machine.
            fn run_quarter(first: usize) {
                let checks = CHECKS.iter().skip(first).step_by(4);
                run_checks(checks, (3, true), TestEffort::Gate);
            }
            #[test]
            fn three_servers_and_an_archive_keep_the_first_quarter_of_the_contract() {
                run_quarter(0);
            }
            #[test]
            fn three_servers_and_an_archive_keep_the_second_quarter_of_the_contract() {
                run_quarter(1);
            }
            #[test]
            fn three_servers_and_an_archive_keep_the_third_quarter_of_the_contract() {
                run_quarter(2);
            }
            #[test]
            fn three_servers_and_an_archive_keep_the_last_quarter_of_the_contract() {
                run_quarter(3);
            }
            #[test]
            #[ignore = "nightly: more cases, and every combination of servers and archive"]
            fn all_servers_and_archives_keep_the_contract_in_many_cases() {
                for (servers, is_archived) in [(1, false), (3, false), (1, true), (3, true)] {
                    run_checks(CHECKS.iter(), (servers, is_archived), TestEffort::Nightly);
                }
            }
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
    reading::very_many_streams_are_listed_at_once,
    model::a_journal_is_like_a_list_of_lines,
}
