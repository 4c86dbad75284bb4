//! Tests of retention: unused streams are deleted, and streams of live hosts are not.

use jackfield_journal::{
    AppendRequest, CellAddress, CellConfig, ExpiredStreams, Journal, PeerHosts, RetentionLimits,
    StreamArchiver,
};
use jackfield_nats_access::NatsServers;
use jackfield_test_support::nats::Cluster;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

struct TestHost {
    journal: Journal,
    archiver: StreamArchiver,
}

impl TestHost {
    fn connect(cluster: &Cluster, owner: &str, archive: &Path) -> TestHost {
        let cell = CellConfig { name: "kept".into(), shards: 2, replicas: cluster.servers().len() };
        let (servers, owner) = (NatsServers::on_loopback(cluster.urls()), Some(owner.to_owned()));
        let journal =
            Journal::connect(CellAddress { servers, cell, owner }).expect("the cluster works");
        let archiver = journal.archiver().expect("a NATS journal is shared");
        archiver
            .open_archive(&format!("file://{}", archive.display()))
            .expect("the directory is writable");
        TestHost { journal, archiver }
    }

    /// Writes a stream with some events and a summary. Returns the epoch.
    fn write_stream(&self, stream: &str) -> u64 {
        let epoch = self.journal.claim_stream(stream).expect("the cluster works").epoch;
        for first in 1..=20 {
            let (stream, body) = (stream.into(), "x".repeat(10_000).into());
            let summary = Some("summary".into());
            let append = AppendRequest { stream, epoch, first, count: 1, body, summary };
            self.journal.append_batch(&[append]).remove(0).expect("the cluster works");
        }
        epoch
    }

    /// Writes a stream and releases it.
    fn write_and_release(&self, stream: &str) {
        let epoch = self.write_stream(stream);
        self.journal
            .stream_ownership()
            .expect("a NATS journal is shared")
            .release_stream(stream, epoch)
            .expect("the cluster works");
    }

    fn delete_expired(
        &self,
        age: Option<Duration>,
        bytes: Option<u64>,
        alive: &'static str,
    ) -> ExpiredStreams {
        let is_alive = Arc::new(move |it: &str| it == alive);
        let peers = PeerHosts { is_alive, is_ours: Arc::new(|_| true) };
        block_on_task(self.archiver.delete_expired_streams(RetentionLimits { age, bytes }, peers))
            .expect("the cluster works")
    }

    fn list_names(&self) -> Vec<String> {
        let page = self
            .journal
            .stream_ownership()
            .expect("a NATS journal is shared")
            .list_page(None, 100)
            .expect("the cluster works");
        let mut names: Vec<_> = page.streams.iter().map(|it| it.0.to_string()).collect();
        names.sort();
        names
    }
}

fn block_on_task<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn expired_names(expired: &ExpiredStreams) -> Vec<&str> {
    expired.streams.iter().map(|it| &**it).collect()
}

#[test]
fn old_streams_are_deleted_unless_a_live_host_owns_them() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one", dir.path());
    let two = TestHost::connect(&cluster, "two", dir.path());
    one.write_and_release("old");
    one.write_stream("had");
    two.write_stream("dead");
    one.write_and_release("used");
    let start = Instant::now();
    one.write_and_release("new");
    // Its summary is old, but another host has claimed it since.
    let epoch = two.journal.claim_stream("used").unwrap().epoch;
    two.journal.stream_ownership().unwrap().release_stream("used", epoch).unwrap();
    block_on_task(one.archiver.archive_own_streams(Duration::ZERO)).unwrap();

    assert_eq!(expired_names(&one.delete_expired(None, None, "one")), [""; 0]);
    assert_eq!(
        expired_names(&one.delete_expired(Some(Duration::from_hours(1)), None, "one")),
        [""; 0]
    );
    let expired = one.delete_expired(Some(start.elapsed()), None, "one");
    assert_eq!(expired_names(&expired), ["old", "dead"]);
    assert_eq!(two.list_names(), ["had", "new", "used"]);
    for gone in ["old", "dead"] {
        assert!(two.journal.read_events(gone, 0, 1, 1).unwrap().is_empty());
        assert!(!dir.path().join("kept").join(gone).exists());
    }
    assert_eq!(one.journal.read_events("had", 0, 100, 1 << 20).unwrap().len(), 20);
    // A repetition by another host has no effect.
    assert_eq!(expired_names(&two.delete_expired(Some(start.elapsed()), None, "one")), [""; 0]);
}

#[test]
fn oldest_streams_are_deleted_until_the_size_is_within_the_limit() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one", dir.path());
    one.write_stream("had");
    for name in ["first", "second", "third", "fourth"] {
        one.write_and_release(name);
    }
    let all = one.delete_expired(None, Some(u64::MAX), "one");
    assert_eq!(expired_names(&all), [""; 0]);
    let all = all.bytes.unwrap();
    assert!(5 * 200_000 < all, "{all}");
    // Some streams are in the archive, one is not.
    block_on_task(one.archiver.archive_own_streams(Duration::ZERO)).unwrap();
    one.write_and_release("fifth");
    let now = one.delete_expired(None, Some(u64::MAX), "one").bytes.unwrap();
    assert!(200_000 < now && now < all / 2, "the archive is compressed: {now} of {all}");

    let expired = one.delete_expired(None, Some(now - 1), "one");
    assert_eq!(expired_names(&expired), ["first"], "a live host owns the oldest stream");
    assert!(expired.bytes.unwrap() < now);
    let expired = one.delete_expired(None, Some(50_000), "one");
    assert_eq!(expired_names(&expired), ["second", "third", "fourth", "fifth"]);
    assert_eq!(one.list_names(), ["had"]);
    assert_eq!(one.delete_expired(None, Some(0), "none-alive").streams.len(), 1);
    assert!(
        one.delete_expired(None, Some(0), "none-alive").bytes.unwrap() < 3_000,
        "only tombstones are left"
    );
}
