//! What is kept for how long: streams that nobody uses go, and those that somebody has stay.

use jackfield_journal::{Address, Append, Cell, Curator, Expired, Fellows, Journal, Retention};
use jackfield_nats_access::NatsServers;
use jackfield_testkit::nats::Cluster;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

struct Host {
    journal: Journal,
    curator: Curator,
}

impl Host {
    fn join(cluster: &Cluster, owner: &str, archive: &Path) -> Host {
        let cell = Cell { name: "kept".into(), shards: 2, replicas: cluster.servers().len() };
        let (servers, owner) = (NatsServers::on_loopback(cluster.urls()), Some(owner.to_owned()));
        let journal =
            Journal::connect(Address { servers, cell, owner }).expect("the cluster is well");
        let curator = journal.curator().expect("it is shared");
        curator.open_archive(&format!("file://{}", archive.display())).expect("it is ours");
        Host { journal, curator }
    }

    /// A stream with some events and a summary; returns the epoch.
    fn write(&self, stream: &str) -> u64 {
        let epoch = self.journal.claim(stream).expect("the cluster is well").epoch;
        for first in 1..=20 {
            let (stream, body) = (stream.into(), "x".repeat(10_000).into());
            let summary = Some("summary".into());
            let append = Append { stream, epoch, first, count: 1, body, summary };
            self.journal.append(&[append]).remove(0).expect("the cluster is well");
        }
        epoch
    }

    /// The same, and nobody has it.
    fn leave(&self, stream: &str) {
        let epoch = self.write(stream);
        self.journal
            .owners()
            .expect("it is shared")
            .release(stream, epoch)
            .expect("the cluster is well");
    }

    fn retain(&self, age: Option<Duration>, bytes: Option<u64>, alive: &'static str) -> Expired {
        let is_alive = Arc::new(move |it: &str| it == alive);
        let fellows = Fellows { is_alive, is_ours: Arc::new(|_| true) };
        wait(self.curator.retain(Retention { age, bytes }, fellows)).expect("the cluster is well")
    }

    fn names(&self) -> Vec<String> {
        let page = self
            .journal
            .owners()
            .expect("it is shared")
            .page(None, 100)
            .expect("the cluster is well");
        let mut names: Vec<_> = page.streams.iter().map(|it| it.0.to_string()).collect();
        names.sort();
        names
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn names(expired: &Expired) -> Vec<&str> {
    expired.streams.iter().map(|it| &**it).collect()
}

#[test]
fn what_nobody_has_used_for_long_goes_and_what_somebody_has_stays() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one", dir.path());
    let two = Host::join(&cluster, "two", dir.path());
    one.leave("old");
    one.write("had");
    two.write("dead");
    one.leave("used");
    let then = Instant::now();
    one.leave("new");
    // Its summary is old, but somebody has claimed it since.
    let epoch = two.journal.claim("used").unwrap().epoch;
    two.journal.owners().unwrap().release("used", epoch).unwrap();
    wait(one.curator.move_own(Duration::ZERO)).unwrap();

    assert_eq!(names(&one.retain(None, None, "one")), [""; 0]);
    assert_eq!(names(&one.retain(Some(Duration::from_hours(1)), None, "one")), [""; 0]);
    let expired = one.retain(Some(then.elapsed()), None, "one");
    assert_eq!(names(&expired), ["old", "dead"]);
    assert_eq!(two.names(), ["had", "new", "used"]);
    for gone in ["old", "dead"] {
        assert!(two.journal.read(gone, 0, 1, 1).unwrap().is_empty());
        assert!(!dir.path().join("kept").join(gone).exists());
    }
    assert_eq!(one.journal.read("had", 0, 100, 1 << 20).unwrap().len(), 20);
    // Twice is harmless, and so is another one that does it.
    assert_eq!(names(&two.retain(Some(then.elapsed()), None, "one")), [""; 0]);
}

#[test]
fn where_there_is_too_much_the_oldest_go_until_there_is_not() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one", dir.path());
    one.write("had");
    for name in ["first", "second", "third", "fourth"] {
        one.leave(name);
    }
    let all = one.retain(None, Some(u64::MAX), "one");
    assert_eq!(names(&all), [""; 0]);
    let all = all.bytes.unwrap();
    assert!(5 * 200_000 < all, "{all}");
    // Some of it is in the archive, some is not.
    wait(one.curator.move_own(Duration::ZERO)).unwrap();
    one.leave("fifth");
    let now = one.retain(None, Some(u64::MAX), "one").bytes.unwrap();
    assert!(200_000 < now && now < all / 2, "the archive is compressed: {now} of {all}");

    let expired = one.retain(None, Some(now - 1), "one");
    assert_eq!(names(&expired), ["first"], "a living host has the oldest");
    assert!(expired.bytes.unwrap() < now);
    let expired = one.retain(None, Some(50_000), "one");
    assert_eq!(names(&expired), ["second", "third", "fourth", "fifth"]);
    assert_eq!(one.names(), ["had"]);
    assert_eq!(one.retain(None, Some(0), "nobody").streams.len(), 1);
    assert!(
        one.retain(None, Some(0), "nobody").bytes.unwrap() < 3_000,
        "what says that they are gone"
    );
}
