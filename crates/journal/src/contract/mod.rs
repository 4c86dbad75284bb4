//! The contract of every backend, as one test suite that runs against each of them.
//!
//! A new backend is a new [`TestBackend`] and one line in `suite!`.

mod journal_handle;
mod model;
mod reading;
mod writing;

use crate::{AppendRequest, CellAddress, CellConfig, DurabilityLevel, Journal, StoredEvent};
use bytes::Bytes;
use jackfield_nats_access::NatsServers;
use jackfield_test_support::nats::Cluster;
use journal_handle::JournalHandle;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;

/// A journal that is empty at first, and its storage.
pub(super) struct TestBackend {
    journal: JournalHandle,
    kind: BackendKind,
}

enum BackendKind {
    Memory,
    Sqlite(TempDir),
    /// Few shards, so that streams share them. With an archive, events are archived at once.
    Nats(Arc<Cluster>, CellConfig, Option<Arc<TempDir>>, TestEffort),
}

/// How many random cases and streams a NATS journal is tested with: every claim is a round trip.
#[derive(Debug, Clone, Copy)]
enum TestEffort {
    Gate,
    Nightly,
}

impl TestBackend {
    fn new(kind: BackendKind) -> TestBackend {
        TestBackend { journal: kind.open(), kind }
    }

    fn memory() -> TestBackend {
        TestBackend::new(BackendKind::Memory)
    }

    fn sqlite() -> TestBackend {
        TestBackend::new(BackendKind::Sqlite(tempfile::tempdir().unwrap()))
    }

    /// Creates an empty cell. Tests share a cluster, because it starts slowly.
    fn nats(cluster: &Arc<Cluster>, is_archived: bool, effort: TestEffort) -> TestBackend {
        static CELLS: AtomicU64 = AtomicU64::new(0);
        let name = format!("cell{}", CELLS.fetch_add(1, Ordering::Relaxed));
        let cell = CellConfig { name, shards: 2, replicas: cluster.servers().len() };
        let archive = is_archived.then(|| Arc::new(tempfile::tempdir().unwrap()));
        TestBackend::new(BackendKind::Nats(cluster.clone(), cell, archive, effort))
    }

    /// Creates another, empty journal of the same kind.
    fn create_empty(&self) -> TestBackend {
        match &self.kind {
            BackendKind::Memory => TestBackend::memory(),
            BackendKind::Sqlite(_) => TestBackend::sqlite(),
            BackendKind::Nats(cluster, _, archive, effort) => {
                TestBackend::nats(cluster, archive.is_some(), *effort)
            }
        }
    }

    /// Opens the journal again, as another process would. Does nothing for a journal in memory.
    fn reopen(&mut self) {
        if !matches!(self.kind, BackendKind::Memory) {
            self.journal = BackendKind::Memory.open();
            self.journal = self.kind.open();
        }
    }

    /// Opens a second handle of the same journal, which shares no caches with the first.
    fn other_handle(&self) -> JournalHandle {
        match &self.kind {
            BackendKind::Memory => self.journal.clone(),
            kind => kind.open(),
        }
    }

    /// The number of random cases.
    fn case_count(&self) -> u32 {
        match self.kind {
            BackendKind::Nats(.., TestEffort::Gate) => 3,
            BackendKind::Nats(.., TestEffort::Nightly) => 20,
            _ => 100,
        }
    }

    /// The number of events in a long stream.
    fn long_stream_len(&self) -> u64 {
        match self.kind {
            BackendKind::Nats(.., TestEffort::Gate) => 50,
            _ => 300,
        }
    }

    /// The number of streams in tests with very many streams.
    fn stream_count(&self) -> usize {
        match self.kind {
            BackendKind::Nats(.., TestEffort::Gate) => 200,
            BackendKind::Nats(.., TestEffort::Nightly) => 1_000,
            _ => 10_000,
        }
    }
}

impl BackendKind {
    fn open(&self) -> JournalHandle {
        match self {
            BackendKind::Memory => JournalHandle::local(Journal::in_memory()),
            BackendKind::Sqlite(dir) => {
                let path = dir.path().join("journal.db");
                JournalHandle::local(Journal::open(&path, DurabilityLevel::Process).unwrap())
            }
            BackendKind::Nats(cluster, cell, archive, _) => {
                let (servers, cell) = (NatsServers::on_loopback(cluster.urls()), cell.clone());
                let address = CellAddress { servers, cell, owner: None };
                JournalHandle::connect(&address, archive.as_ref().map(|it| it.path()))
            }
        }
    }
}

/// Creates an append of these lines.
fn new_append(stream: &str, epoch: u64, first: u64, lines: &[&str]) -> AppendRequest {
    AppendRequest {
        stream: stream.into(),
        epoch,
        first,
        count: u32::try_from(lines.len()).unwrap(),
        body: Bytes::from(lines.join("\n")),
        summary: None,
    }
}

fn with_summary(append: AppendRequest, summary: &str) -> AppendRequest {
    AppendRequest { summary: Some(Bytes::copy_from_slice(summary.as_bytes())), ..append }
}

/// Appends a batch of one append.
fn append_one(journal: &JournalHandle, append: AppendRequest) -> Result<u64, crate::AppendError> {
    let mut outcomes = journal.append_batch(&[append]);
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Reads all events after this sequence number.
fn read_all(journal: &JournalHandle, stream: &str, after: u64) -> Vec<StoredEvent> {
    journal.read_events(stream, after, usize::MAX, usize::MAX).unwrap()
}

fn line_texts(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|it| std::str::from_utf8(&it.line).unwrap()).collect()
}

fn event_seqs(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(|it| it.seq).collect()
}

fn stream_name(text: &str) -> Arc<str> {
    text.into()
}

macro_rules! suite {
    ($($part:ident :: $check:ident,)*) => {
        mod memory {
            $(#[test] fn $check() { super::$part::$check(&mut super::TestBackend::memory()); })*
        }
        mod sqlite {
            $(#[test] fn $check() { super::$part::$check(&mut super::TestBackend::sqlite()); })*
        }
        /// Runs every check in a separate cell of one cluster.
        mod nats {
            use super::TestEffort;

            /// Checks mostly wait for the servers.
            const CHECKS_AT_ONCE: usize = 2;

            const CHECKS: &[(&str, fn(&mut super::TestBackend))] =
                &[$((stringify!($check), super::$part::$check)),*];

            fn run_checks(
                checks: impl Iterator<Item = &'static (&'static str, fn(&mut super::TestBackend))> + Send,
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
                                check(&mut super::TestBackend::nats(&cluster, is_archived, effort));
                            }
                        });
                    }
                });
            }
            /// Runs every fourth check: all in one test would take over a minute on a busy machine.
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
    writing::claim_creates_the_stream_and_raises_its_epoch,
    writing::older_epoch_stays_fenced,
    writing::writer_of_a_deleted_stream_stays_fenced_after_it_is_created_again,
    writing::append_to_an_unclaimed_stream_is_fenced,
    writing::claim_by_another_handle_fences_this_one,
    writing::two_handles_may_write_different_streams_in_turn,
    writing::gap_in_sequence_numbers_is_refused,
    writing::retry_stores_only_missing_events,
    writing::retry_after_a_restart_stores_only_missing_events,
    writing::each_append_of_a_batch_is_checked_separately,
    writing::batch_may_append_to_a_stream_several_times,
    writing::batch_may_alternate_between_very_many_streams,
    writing::empty_batch_changes_nothing,
    writing::malformed_append_is_refused,
    writing::latest_summary_replaces_older_ones,
    writing::retry_does_not_restore_an_older_summary,
    writing::summary_may_be_stored_after_its_events,
    writing::deleted_stream_is_empty_and_not_listed,
    writing::deleting_a_missing_stream_succeeds,
    reading::empty_journal_has_no_streams_and_events,
    reading::read_returns_a_prefix_within_both_limits,
    reading::read_returns_at_least_one_event,
    reading::read_may_start_in_the_middle_of_a_record,
    reading::read_at_or_beyond_the_head_is_empty,
    reading::upkeep_does_not_change_what_is_read,
    reading::large_events_are_read_back_unchanged,
    reading::large_event_is_omitted_from_a_batch_without_space,
    reading::event_may_look_like_a_blob_reference,
    reading::events_may_contain_any_bytes_except_newlines,
    reading::streams_may_have_any_name,
    reading::streams_are_listed_by_name_with_their_heads,
    reading::very_many_streams_are_listed_quickly,
    model::journal_behaves_like_a_list_of_lines,
}
