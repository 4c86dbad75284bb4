//! What is in the archive is not lost, not twice and not in the way, whatever is cut short.

use super::*;
use crate::{
    Address, Append, CareError, Damage, Event, Journal, ReadError, archive::Segment, nats::Nats,
};
use jackfield_nats_access::NatsServers;
use jackfield_testkit::{nats::Cluster, s3::S3};
use std::{fs, path::Path, sync::Arc};

const NOW: Duration = Duration::ZERO;
const BUCKET: &str = "cold-events";

/// Somebody with a journal; of all of them one thread at a time does something.
struct Host {
    nats: Arc<Nats>,
    journal: Journal,
}

impl Host {
    fn join(cluster: &Cluster, owner: &str) -> Host {
        let cell = Cell { name: "cold".into(), shards: 1, replicas: cluster.servers().len() };
        let owner = Some(owner.to_owned());
        let address = Address { servers: NatsServers::on_loopback(cluster.urls()), cell, owner };
        let journal = Journal::connect(address).unwrap();
        let nats = journal.as_nats().unwrap().clone();
        Host { nats, journal }
    }

    fn with_archive(self, archive: Archive) -> Host {
        assert!(self.nats.store.archive.set(archive).is_ok());
        self
    }

    fn with_directory(self, dir: &Path) -> Host {
        self.with_archive(directory(dir))
    }

    /// Does something on the thread of its journal.
    fn wait<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Store>) -> F,
    ) -> T {
        self.nats.wait(work(self.nats.store.clone()))
    }

    fn move_own(&self) -> Result<Moved, CareError> {
        let work = self.journal.curator().unwrap().move_own(NOW);
        self.wait(|_| work)
    }

    /// Appends these events, each in a message of its own.
    fn write(&self, stream: &str, events: std::ops::RangeInclusive<u64>, bytes: usize) {
        let claim = self.journal.claim(stream).unwrap();
        for seq in events {
            let (stream, body) = (stream.into(), line(seq, bytes).into());
            let append =
                Append { stream, epoch: claim.epoch, first: seq, count: 1, body, summary: None };
            assert_eq!(self.journal.append(&[append]).remove(0).unwrap(), seq);
        }
    }

    /// Messages of a log, those of large events with them.
    fn messages(&self) -> u64 {
        self.wait(|it| async move { it.servers.extent(&it.cell.shard_log(0)).await.unwrap() })
            .messages
    }

    fn sizes(&self) -> Vec<(String, u64)> {
        let sizes = self.wait(|it| async move { it.archive().unwrap().sizes().await.unwrap() });
        sizes.into_iter().collect()
    }
}

fn directory(dir: &Path) -> Archive {
    Archive::open(&format!("file://{}", dir.display()), "cold", true).unwrap()
}

fn bucket(s3: &S3) -> Archive {
    let environment = s3.environment().into_iter().map(|(name, value)| (name.to_owned(), value));
    Archive::open_with(&format!("s3://{BUCKET}/some/where"), "cold", true, environment).unwrap()
}

/// No two are alike, and they do not shrink to nothing.
fn line(seq: u64, bytes: usize) -> String {
    let mut state = seq;
    let letter = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from(state >> 60).unwrap())
    };
    format!("{seq} {}", (0..bytes).map(letter).collect::<String>())
}

/// Reads a stream in pages; it has these events and no other.
fn check(host: &Host, stream: &str, head: u64, bytes: impl Fn(u64) -> usize, page: usize) {
    let mut seq = 0;
    loop {
        let events = host.journal.read(stream, seq, page, 1 << 30).unwrap();
        if events.is_empty() {
            break;
        }
        assert!(events.len() <= page);
        for Event { seq: found, line: text } in events {
            seq += 1;
            assert_eq!(found, seq);
            assert!(text == line(seq, bytes(seq)), "{stream} {seq}");
        }
    }
    assert_eq!(seq, head);
}

/// The events that each segment in this directory has, by their last.
fn spans(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir.join("cold/s")).into_iter().flatten().flatten();
    let short = |it: &str| it.trim_start_matches('0').to_owned();
    let name = |it: fs::DirEntry| it.file_name().into_string().unwrap();
    let span = |it: String| {
        let (last, first) = it.strip_suffix(".zst").unwrap().split_once('-').unwrap();
        format!("{}-{}", short(first), short(last))
    };
    let mut names: Vec<_> = files.map(name).collect();
    names.sort();
    names.into_iter().map(span).collect()
}

#[test]
fn what_is_cold_is_in_the_archive_and_a_reader_does_not_notice() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one").with_directory(dir.path());
    // Large enough for several segments, and one event is larger than a message may be.
    let bytes = |seq| if seq == 17 { 700_000 } else { 200_000 };
    one.write("s", 1..=16, 200_000);
    one.write("s", 17..=17, 700_000);
    one.write("s", 18..=60, 200_000);
    let moved = one.move_own().unwrap();
    assert!((3..=4).contains(&moved.segments), "{moved:?}");
    assert!(11_000_000 < moved.raw_bytes && moved.stored_bytes < moved.raw_bytes * 2 / 3);
    assert_eq!(one.messages(), 1, "the last one is the lock");
    let gauges = one.journal.curator().unwrap().gauges();
    assert_eq!((gauges.segments, gauges.hot_streams, gauges.oldest), (moved.segments, 0, None));
    let two = Host::join(&cluster, "two").with_directory(dir.path());
    for host in [&one, &two] {
        for page in [7, 1000] {
            check(host, "s", 60, bytes, page);
        }
    }
    // It goes on as before, and there is more to move; what is there already is not put again.
    one.write("s", 61..=65, 10);
    one.move_own().unwrap();
    assert_eq!(one.move_own().unwrap(), Moved::default());
    let bytes = |seq| if 60 < seq { 10 } else { bytes(seq) };
    check(&two, "s", 65, bytes, 9);
    let spans = spans(dir.path());
    assert_eq!(spans.last().map(String::as_str), Some("60-64"), "{spans:?}");

    let blind = Host::join(&cluster, "blind");
    let error = blind.journal.read("s", 0, 10, 1 << 20).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { damage: Damage::Archived, .. }), "{error}");
    assert!(error.to_string().contains("start with `--archive`"), "{error}");
    assert_eq!(blind.journal.read("s", 64, 10, 1 << 20).unwrap().len(), 1);
}

#[test]
fn a_bucket_is_as_good_as_a_directory() {
    let (cluster, mut s3) = (Cluster::start(1), S3::start(BUCKET));
    let one = Host::join(&cluster, "one").with_archive(bucket(&s3));
    let two = Host::join(&cluster, "two").with_archive(bucket(&s3));
    for stream in ["s", "a b/ü.*"] {
        one.write(stream, 1..=10, 300_000);
        one.write(stream, 11..=20, 600_000);
    }
    let moved = one.move_own().unwrap();
    assert!(4 <= moved.segments, "{moved:?}");
    assert_eq!(one.messages(), 2 + 2 * 3, "the last of each, which is a large one in three parts");
    let bytes = |seq| if 10 < seq { 600_000 } else { 300_000 };
    for stream in ["s", "a b/ü.*"] {
        check(&two, stream, 20, bytes, 3);
    }
    let sizes = two.sizes();
    assert_eq!(sizes.iter().map(|it| it.1).sum::<u64>(), moved.stored_bytes);
    let folders: Vec<_> = sizes.iter().map(|it| &*it.0).collect();
    assert_eq!(folders, ["a=20b=2f=c3=bc=2e=2a", "s"]);
    two.journal.delete("a b/ü.*").unwrap();
    assert_eq!(one.sizes().len(), 1);
    check(&one, "s", 20, bytes, 100);

    // It is gone for good: what is in the log stays there, and what is not is not there.
    s3.stop();
    one.write("s", 21..=22, 10);
    let before = one.messages();
    assert!(matches!(one.move_own(), Err(CareError::Archive { .. })));
    assert_eq!(one.messages(), before);
    assert_eq!(one.journal.read("s", 20, 10, 1000).unwrap().len(), 2);
    // Others may have read it lately, and remember.
    let three = Host::join(&cluster, "three").with_archive(bucket(&s3));
    let error = three.journal.read("s", 0, 10, 1000).map(|it| it.len()).unwrap_err();
    assert!(matches!(error, ReadError::Unavailable { .. }), "{error}");
}

#[test]
fn an_archive_that_is_away_costs_room_and_nothing_else() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let (place, aside) = (dir.path().join("archive"), dir.path().join("aside"));
    let one = Host::join(&cluster, "one").with_directory(&place);
    one.write("s", 1..=5, 100);
    one.move_own().unwrap();
    fs::rename(&place, &aside).unwrap();
    fs::write(&place, "in the way, also of root").unwrap();
    one.write("s", 6..=10, 100);
    let before = one.messages();
    for _ in 0..2 {
        let error = one.move_own().unwrap_err();
        assert!(matches!(error, CareError::Archive { .. }), "{error}");
        assert_eq!(one.journal.curator().unwrap().gauges().hot_streams, 1, "it is not forgotten");
    }
    assert_eq!(one.messages(), before);
    assert!(one.journal.delete("s").is_err(), "a part of it could not be deleted");
    assert_eq!(one.journal.read("s", 5, 100, 10_000).unwrap().len(), 5);
    fs::remove_file(&place).unwrap();
    fs::rename(&aside, &place).unwrap();
    one.move_own().unwrap();
    assert_eq!(one.messages(), 1);
    check(&one, "s", 10, |_| 100, 4);
}

#[test]
fn what_was_put_and_is_still_in_the_log_is_neither_lost_nor_put_twice() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one").with_directory(dir.path());
    one.write("s", 1..=8, 100);
    // It dies when it has put the first five events.
    let lines: Vec<_> = (1..=5).map(|it| line(it, 100)).collect();
    let segment = Segment { first: 1, last: 5, body: lines.join("\n").into() };
    one.wait(|it| async move { it.archive().unwrap().put("s", segment).await.unwrap() });
    drop(one);
    let two = Host::join(&cluster, "two").with_directory(dir.path());
    let curator = two.journal.curator().unwrap();
    let left = |is_alive: bool, is_ours: bool| {
        let is_alive = Arc::new(move |it: &str| is_alive && it == "one");
        let fellows = super::super::Fellows { is_alive, is_ours: Arc::new(move |_| is_ours) };
        let work = curator.move_left(NOW, fellows);
        two.wait(|_| work).unwrap().segments
    };
    assert_eq!(left(true, true), 0, "its writer lives");
    assert_eq!(left(false, false), 0, "it falls to somebody else");
    assert_eq!((left(false, true), two.messages()), (1, 1));
    assert_eq!(spans(dir.path()), ["1-5", "6-7"]);
    check(&two, "s", 8, |_| 100, 3);
    assert_eq!(left(false, true), 0);
}

#[test]
fn segments_that_overlap_do_no_harm_and_a_gap_is_told() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one").with_directory(dir.path());
    one.write("s", 1..=10, 50);
    one.move_own().unwrap();
    for (first, last) in [(1, 4), (3, 6), (6, 6)] {
        let lines: Vec<_> = (first..=last).map(|it| line(it, 50)).collect();
        let segment = Segment { first, last, body: lines.join("\n").into() };
        one.wait(|it| async move { it.archive().unwrap().put("s", segment).await.unwrap() });
    }
    check(&one, "s", 10, |_| 50, 1);
    let two = Host::join(&cluster, "two").with_directory(dir.path());
    check(&two, "s", 10, |_| 50, 2);

    fs::remove_file(dir.path().join("cold/s").join(format!("{:020}-{:020}.zst", 9, 1))).unwrap();
    let three = Host::join(&cluster, "three").with_directory(dir.path());
    assert_eq!(three.journal.read("s", 0, 100, 10_000).unwrap().len(), 6);
    let error = three.journal.read("s", 6, 100, 10_000).unwrap_err();
    let missing =
        |it: &ReadError| matches!(it, ReadError::Damaged { first: 7, damage: Damage::Missing, .. });
    assert!(missing(&error), "{error}");
    // Nothing more is removed from a log whose past is not whole.
    one.write("s", 11..=12, 50);
    assert!(matches!(one.move_own(), Err(CareError::Log { .. })));
    assert_eq!(three.journal.read("s", 9, 100, 10_000).unwrap().len(), 3);
}

#[test]
fn whoever_archives_does_not_bring_back_what_was_deleted() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one").with_directory(dir.path());
    let two = Host::join(&cluster, "two").with_directory(dir.path());
    one.write("s", 1..=8, 100);
    let journal = two.journal.clone();
    one.wait(|it| async move {
        let (stream, archive) = (Arc::<str>::from("s"), it.archive().unwrap());
        let (sheaf, moved) = Default::default();
        let folder = Cell::folder("s");
        let stream = &stream;
        let mut job = Move { archive, stream, folder, sheaf, place: 0, archived: None, moved };
        let tail = it.look(stream).await.unwrap();
        it.gather_all(&mut job, tail.at, NOW).await.unwrap();
        tokio::task::spawn_blocking(move || journal.delete("s").unwrap()).await.unwrap();
        it.ship(&mut job).await.unwrap();
        assert_eq!(job.moved, Moved::default());
    });
    assert_eq!((one.sizes(), one.messages()), (Vec::new(), 1));
    assert_eq!(one.journal.read("s", 0, 10, 1000).unwrap(), []);
    // Under the same name there may be something new, which has nothing of the old.
    two.write("s", 1..=3, 7);
    two.move_own().unwrap();
    check(&one, "s", 3, |_| 7, 10);
}

#[test]
fn a_deletion_that_was_cut_short_is_finished_by_whoever_wants_the_stream() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = Host::join(&cluster, "one").with_directory(dir.path());
    one.write("s", 1..=8, 100);
    one.move_own().unwrap();
    // The host ends when it has said that it is gone.
    one.wait(|it| async move {
        let tail = it.look("s").await.unwrap();
        let heading = Heading::fact("s", tail.epoch + 1, 1, Kind::Gone);
        it.put("s", heading, Bytes::new(), tail.at).await.unwrap();
    });
    assert_eq!((one.messages(), spans(dir.path()).len()), (2, 1));
    let owners = one.journal.owners().unwrap();
    assert_eq!(owners.page(None, 10).unwrap().streams.len(), 1);
    assert!(owners.adopt("s", |_| false).is_err());
    assert_eq!((one.messages(), one.sizes()), (1, Vec::new()));
    assert_eq!(owners.page(None, 10).unwrap().streams.len(), 0);
}

/// The directory is a mount point, and its storage is away for a while.
#[test]
fn nothing_is_moved_to_a_directory_that_is_not_the_archive() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let (place, away) = (dir.path().join("mount"), dir.path().join("away"));
    let one = Host::join(&cluster, "one").with_directory(&place);
    one.write("s", 1..=4, 100);
    one.move_own().unwrap();
    one.write("s", 5..=8, 100);
    let stored = one.messages();

    fs::rename(&place, &away).unwrap();
    one.move_own().unwrap_err();
    assert!(!place.exists(), "it is not created again");
    fs::create_dir(&place).unwrap();
    let error = one.move_own().unwrap_err();
    let mut text = format!("{error:?}");
    assert!(text.contains("not be mounted"), "{text}");
    assert_eq!((one.messages(), fs::read_dir(&place).unwrap().count()), (stored, 0));
    // Neither is a session half deleted, nor is what cannot be read now called damaged.
    assert!(one.journal.delete("s").is_err());
    let other = Host::join(&cluster, "two").with_directory(&place);
    let error = other.journal.read("s", 0, 10, 10_000).unwrap_err();
    assert!(!matches!(error, ReadError::Damaged { .. }), "{error:?}");

    // Another archive is not taken for it.
    fs::write(place.join("cold.archive-id"), "0123456789abcdef").unwrap();
    text = format!("{:?}", one.move_own().unwrap_err());
    assert!(text.contains("this is 0123456789abcdef"), "{text}");
    assert_eq!(one.messages(), stored);

    fs::remove_dir_all(&place).unwrap();
    fs::rename(&away, &place).unwrap();
    one.move_own().unwrap();
    check(&one, "s", 8, |_| 100, 10);
}

#[test]
fn archive_that_was_used_is_not_created_again_at_the_next_start() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let place = dir.path().join("mount");
    let url = format!("file://{}", place.display());
    let one = Host::join(&cluster, "one");
    one.journal.curator().unwrap().open_archive(&url).unwrap();
    one.write("s", 1..=4, 100);
    one.move_own().unwrap();
    fs::rename(&place, dir.path().join("away")).unwrap();
    let two = Host::join(&cluster, "two");
    let error = two.journal.curator().unwrap().open_archive(&url).unwrap_err();
    assert!(format!("{error:?}").contains("mount its storage"), "{error:?}");
    assert!(!place.exists());
}
