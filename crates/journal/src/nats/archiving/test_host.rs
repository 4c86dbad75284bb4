//! A host for the tests of archiving, and the streams that it writes.

use crate::{
    AppendRequest, ArchivingReport, CellAddress, CellConfig, Journal, LogMaintenanceError,
    StoredEvent,
    archive::{Archive, MissingDirectory},
    nats::{NatsJournal, NatsStore},
};
use jackfield_nats_access::NatsServers;
use jackfield_test_support::{nats::Cluster, s3::S3};
use std::{fs, path::Path, sync::Arc, time::Duration};

pub(super) const NOW: Duration = Duration::ZERO;
pub(super) const BUCKET: &str = "cold-events";

/// A host with a journal. The tests use one host at a time.
pub(super) struct TestHost {
    nats: Arc<NatsJournal>,
    pub(super) journal: Journal,
}

impl TestHost {
    pub(super) fn connect(cluster: &Cluster, owner: &str) -> TestHost {
        let cell = CellConfig { name: "cold".into(), shards: 1, replicas: cluster.servers().len() };
        let owner = Some(owner.to_owned());
        let address =
            CellAddress { servers: NatsServers::on_loopback(cluster.urls()), cell, owner };
        let journal = Journal::connect(address).unwrap();
        let nats = journal.as_nats().unwrap().clone();
        TestHost { nats, journal }
    }

    pub(super) fn with_archive(self, archive: Archive) -> TestHost {
        assert!(self.nats.store.archive.set(archive).is_ok());
        self
    }

    pub(super) fn with_directory(self, dir: &Path) -> TestHost {
        self.with_archive(open_directory(dir))
    }

    /// Runs a task on the thread of the journal.
    pub(super) fn run_on_journal<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<NatsStore>) -> F,
    ) -> T {
        self.nats.run_blocking(work(self.nats.store.clone()))
    }

    pub(super) fn archive_own_streams(&self) -> Result<ArchivingReport, LogMaintenanceError> {
        let work = self.journal.archiver().unwrap().archive_own_streams(NOW);
        self.run_on_journal(|_| work)
    }

    /// Appends these events, each in a separate message.
    pub(super) fn write_events(
        &self,
        stream: &str,
        events: std::ops::RangeInclusive<u64>,
        bytes: usize,
    ) {
        let claim = self.journal.claim_stream(stream).unwrap();
        for seq in events {
            let (stream, body) = (stream.into(), make_line(seq, bytes).into());
            let append = AppendRequest {
                stream,
                epoch: claim.epoch,
                first: seq,
                count: 1,
                body,
                summary: None,
            };
            assert_eq!(self.journal.append_batch(&[append]).remove(0).unwrap(), seq);
        }
    }

    /// The number of messages in the log, including the parts of large events.
    pub(super) fn count_messages(&self) -> u64 {
        self.run_on_journal(|it| async move {
            it.jetstream.read_extent(&it.cell.shard_log_name(0)).await.unwrap()
        })
        .messages
    }

    pub(super) fn archived_sizes(&self) -> Vec<(String, u64)> {
        let sizes = self.run_on_journal(|it| async move {
            it.archive().unwrap().list_stream_sizes().await.unwrap()
        });
        sizes.into_iter().collect()
    }
}

pub(super) fn open_directory(dir: &Path) -> Archive {
    Archive::open(&format!("file://{}", dir.display()), "cold", MissingDirectory::Create).unwrap()
}

pub(super) fn open_bucket(s3: &S3) -> Archive {
    let environment = s3.environment().into_iter().map(|(name, value)| (name.to_owned(), value));
    Archive::open_with_environment(
        &format!("s3://{BUCKET}/some/where"),
        "cold",
        MissingDirectory::Create,
        environment,
    )
    .unwrap()
}

/// Lines that differ from each other and do not compress to almost nothing.
pub(super) fn make_line(seq: u64, bytes: usize) -> String {
    let mut state = seq;
    let letter = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from(state >> 60).unwrap())
    };
    format!("{seq} {}", (0..bytes).map(letter).collect::<String>())
}

/// Reads a stream in pages and checks that it has exactly these events.
pub(super) fn check_stream(
    host: &TestHost,
    stream: &str,
    head: u64,
    bytes: impl Fn(u64) -> usize,
    page: usize,
) {
    let mut seq = 0;
    loop {
        let events = host.journal.read_events(stream, seq, page, 1 << 30).unwrap();
        if events.is_empty() {
            break;
        }
        assert!(events.len() <= page);
        for StoredEvent { seq: found, line: text } in events {
            seq += 1;
            assert_eq!(found, seq);
            assert!(text == make_line(seq, bytes(seq)), "{stream} {seq}");
        }
    }
    assert_eq!(seq, head);
}

/// The event range of each segment in this directory, ordered by the last event.
pub(super) fn list_ranges(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir.join("cold/s")).into_iter().flatten().flatten();
    let short = |it: &str| it.trim_start_matches('0').to_owned();
    let name = |it: fs::DirEntry| it.file_name().into_string().unwrap();
    let to_range = |it: String| {
        let (last, first) = it.strip_suffix(".zst").unwrap().split_once('-').unwrap();
        format!("{}-{}", short(first), short(last))
    };
    let mut names: Vec<_> = files.map(name).collect();
    names.sort();
    names.into_iter().map(to_range).collect()
}
