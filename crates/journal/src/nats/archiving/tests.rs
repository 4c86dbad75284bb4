//! Tests that archiving loses, duplicates and resurrects no events, even if it is interrupted.

use super::{
    test_host::{BUCKET, NOW, TestHost, check_stream, list_ranges, make_line, open_bucket},
    *,
};
use crate::{LogMaintenanceError, ReadError, RecordDamage, archive::Segment};
use jackfield_test_support::{nats::Cluster, s3::S3};
use std::{fs, sync::Arc};

#[test]
fn archived_events_are_read_like_others() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one").with_directory(dir.path());
    // Several segments, and one event that exceeds the limit of a message.
    let bytes = |seq| if seq == 17 { 700_000 } else { 200_000 };
    one.write_events("s", 1..=16, 200_000);
    one.write_events("s", 17..=17, 700_000);
    one.write_events("s", 18..=60, 200_000);
    let report = one.archive_own_streams().unwrap();
    assert!((3..=4).contains(&report.segments), "{report:?}");
    assert!(11_000_000 < report.raw_bytes && report.stored_bytes < report.raw_bytes * 2 / 3);
    assert_eq!(one.count_messages(), 1, "the last message is the lock");
    let gauges = one.journal.archiver().unwrap().gauges();
    assert_eq!((gauges.segments, gauges.hot_streams, gauges.oldest), (report.segments, 0, None));
    let two = TestHost::connect(&cluster, "two").with_directory(dir.path());
    for host in [&one, &two] {
        for page in [7, 1000] {
            check_stream(host, "s", 60, bytes, page);
        }
    }
    // New events are archived as well; events in the archive are not stored again.
    one.write_events("s", 61..=65, 10);
    one.archive_own_streams().unwrap();
    assert_eq!(one.archive_own_streams().unwrap(), ArchivingReport::default());
    let bytes = |seq| if 60 < seq { 10 } else { bytes(seq) };
    check_stream(&two, "s", 65, bytes, 9);
    let ranges = list_ranges(dir.path());
    assert_eq!(ranges.last().map(String::as_str), Some("60-64"), "{ranges:?}");

    let without_archive = TestHost::connect(&cluster, "without-archive");
    let error = without_archive.journal.read_events("s", 0, 10, 1 << 20).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { damage: RecordDamage::Archived, .. }), "{error}");
    assert!(error.to_string().contains("start with `--archive`"), "{error}");
    assert_eq!(without_archive.journal.read_events("s", 64, 10, 1 << 20).unwrap().len(), 1);
}

#[test]
fn bucket_works_like_a_directory() {
    let (cluster, mut s3) = (Cluster::start(1), S3::start(BUCKET));
    let one = TestHost::connect(&cluster, "one").with_archive(open_bucket(&s3));
    let two = TestHost::connect(&cluster, "two").with_archive(open_bucket(&s3));
    for stream in ["s", "a b/ü.*"] {
        one.write_events(stream, 1..=10, 300_000);
        one.write_events(stream, 11..=20, 600_000);
    }
    let report = one.archive_own_streams().unwrap();
    assert!(4 <= report.segments, "{report:?}");
    assert_eq!(
        one.count_messages(),
        2 + 2 * 3,
        "the last of each, which is a large one in three parts"
    );
    let bytes = |seq| if 10 < seq { 600_000 } else { 300_000 };
    for stream in ["s", "a b/ü.*"] {
        check_stream(&two, stream, 20, bytes, 3);
    }
    let sizes = two.archived_sizes();
    assert_eq!(sizes.iter().map(|it| it.1).sum::<u64>(), report.stored_bytes);
    let folders: Vec<_> = sizes.iter().map(|it| &*it.0).collect();
    assert_eq!(folders, ["a=20b=2f=c3=bc=2e=2a", "s"]);
    two.journal.delete_stream("a b/ü.*").unwrap();
    assert_eq!(one.archived_sizes().len(), 1);
    check_stream(&one, "s", 20, bytes, 100);

    // Without the bucket, events in the log stay there, and archived events cannot be read.
    s3.stop();
    one.write_events("s", 21..=22, 10);
    let before = one.count_messages();
    assert!(matches!(one.archive_own_streams(), Err(LogMaintenanceError::Archive { .. })));
    assert_eq!(one.count_messages(), before);
    assert_eq!(one.journal.read_events("s", 20, 10, 1000).unwrap().len(), 2);
    // The other hosts may have cached the segments.
    let three = TestHost::connect(&cluster, "three").with_archive(open_bucket(&s3));
    let error = three.journal.read_events("s", 0, 10, 1000).map(|it| it.len()).unwrap_err();
    assert!(matches!(error, ReadError::Unavailable { .. }), "{error}");
}

#[test]
fn unavailable_archive_only_delays_archiving() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let (archive_dir, aside) = (dir.path().join("archive"), dir.path().join("aside"));
    let one = TestHost::connect(&cluster, "one").with_directory(&archive_dir);
    one.write_events("s", 1..=5, 100);
    one.archive_own_streams().unwrap();
    fs::rename(&archive_dir, &aside).unwrap();
    fs::write(&archive_dir, "a file that also blocks root").unwrap();
    one.write_events("s", 6..=10, 100);
    let before = one.count_messages();
    for _ in 0..2 {
        let error = one.archive_own_streams().unwrap_err();
        assert!(matches!(error, LogMaintenanceError::Archive { .. }), "{error}");
        assert_eq!(
            one.journal.archiver().unwrap().gauges().hot_streams,
            1,
            "the stream stays on the list"
        );
    }
    assert_eq!(one.count_messages(), before);
    assert!(one.journal.delete_stream("s").is_err(), "a part of it could not be deleted");
    assert_eq!(one.journal.read_events("s", 5, 100, 10_000).unwrap().len(), 5);
    fs::remove_file(&archive_dir).unwrap();
    fs::rename(&aside, &archive_dir).unwrap();
    one.archive_own_streams().unwrap();
    assert_eq!(one.count_messages(), 1);
    check_stream(&one, "s", 10, |_| 100, 4);
}

#[test]
fn interrupted_archiving_neither_loses_nor_duplicates_events() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one").with_directory(dir.path());
    one.write_events("s", 1..=8, 100);
    // The host dies after it has stored the first five events.
    let lines: Vec<_> = (1..=5).map(|it| make_line(it, 100)).collect();
    let segment = Segment { first: 1, last: 5, body: lines.join("\n").into() };
    one.run_on_journal(|it| async move {
        it.archive().unwrap().store_segment("s", segment).await.unwrap()
    });
    drop(one);
    let two = TestHost::connect(&cluster, "two").with_directory(dir.path());
    let archiver = two.journal.archiver().unwrap();
    let archive_abandoned = |is_alive: bool, is_ours: bool| {
        let is_alive = Arc::new(move |it: &str| is_alive && it == "one");
        let peers = super::super::PeerHosts { is_alive, is_ours: Arc::new(move |_| is_ours) };
        let work = archiver.archive_abandoned_streams(NOW, peers);
        two.run_on_journal(|_| work).unwrap().segments
    };
    assert_eq!(archive_abandoned(true, true), 0, "its writer is alive");
    assert_eq!(archive_abandoned(false, false), 0, "another host is responsible");
    assert_eq!((archive_abandoned(false, true), two.count_messages()), (1, 1));
    assert_eq!(list_ranges(dir.path()), ["1-5", "6-7"]);
    check_stream(&two, "s", 8, |_| 100, 3);
    assert_eq!(archive_abandoned(false, true), 0);
}

#[test]
fn overlapping_segments_are_harmless_and_a_gap_is_reported() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one").with_directory(dir.path());
    one.write_events("s", 1..=10, 50);
    one.archive_own_streams().unwrap();
    for (first, last) in [(1, 4), (3, 6), (6, 6)] {
        let lines: Vec<_> = (first..=last).map(|it| make_line(it, 50)).collect();
        let segment = Segment { first, last, body: lines.join("\n").into() };
        one.run_on_journal(|it| async move {
            it.archive().unwrap().store_segment("s", segment).await.unwrap()
        });
    }
    check_stream(&one, "s", 10, |_| 50, 1);
    let two = TestHost::connect(&cluster, "two").with_directory(dir.path());
    check_stream(&two, "s", 10, |_| 50, 2);

    fs::remove_file(dir.path().join("cold/s").join(format!("{:020}-{:020}.zst", 9, 1))).unwrap();
    let three = TestHost::connect(&cluster, "three").with_directory(dir.path());
    assert_eq!(three.journal.read_events("s", 0, 100, 10_000).unwrap().len(), 6);
    let error = three.journal.read_events("s", 6, 100, 10_000).unwrap_err();
    let missing = |it: &ReadError| {
        matches!(it, ReadError::Damaged { first: 7, damage: RecordDamage::Missing, .. })
    };
    assert!(missing(&error), "{error}");
    // No event is removed from a log whose archive has a gap.
    one.write_events("s", 11..=12, 50);
    assert!(matches!(one.archive_own_streams(), Err(LogMaintenanceError::Log { .. })));
    assert_eq!(three.journal.read_events("s", 9, 100, 10_000).unwrap().len(), 3);
}

#[test]
fn archiving_does_not_resurrect_a_deleted_stream() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one").with_directory(dir.path());
    let two = TestHost::connect(&cluster, "two").with_directory(dir.path());
    one.write_events("s", 1..=8, 100);
    let journal = two.journal.clone();
    one.run_on_journal(|it| async move {
        let (stream, archive) = (Arc::<str>::from("s"), it.archive().unwrap());
        let (builder, report) = Default::default();
        let folder = CellConfig::archive_folder("s");
        let stream = &stream;
        let mut transfer =
            LogTransfer { archive, stream, folder, builder, position: 0, archived: None, report };
        let tail = it.read_tail(stream).await.unwrap();
        it.collect_cold_messages(&mut transfer, tail.position, NOW).await.unwrap();
        tokio::task::spawn_blocking(move || journal.delete_stream("s").unwrap()).await.unwrap();
        it.flush_segment(&mut transfer).await.unwrap();
        assert_eq!(transfer.report, ArchivingReport::default());
    });
    assert_eq!((one.archived_sizes(), one.count_messages()), (Vec::new(), 1));
    assert_eq!(one.journal.read_events("s", 0, 10, 1000).unwrap(), []);
    // A new stream of the same name contains nothing of the old one.
    two.write_events("s", 1..=3, 7);
    two.archive_own_streams().unwrap();
    check_stream(&one, "s", 3, |_| 7, 10);
}

#[test]
fn next_adoption_completes_an_interrupted_deletion() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let one = TestHost::connect(&cluster, "one").with_directory(dir.path());
    one.write_events("s", 1..=8, 100);
    one.archive_own_streams().unwrap();
    // The host ends after it has stored the tombstone.
    one.run_on_journal(|it| async move {
        let tail = it.read_tail("s").await.unwrap();
        let header = RecordHeader::without_events("s", tail.epoch + 1, 1, MessageKind::Gone);
        it.publish_record("s", header, Bytes::new(), tail.position).await.unwrap();
    });
    assert_eq!((one.count_messages(), list_ranges(dir.path()).len()), (2, 1));
    let owners = one.journal.stream_ownership().unwrap();
    assert_eq!(owners.list_page(None, 10).unwrap().streams.len(), 1);
    assert!(owners.adopt_stream("s", |_| false).is_err());
    assert_eq!((one.count_messages(), one.archived_sizes()), (1, Vec::new()));
    assert_eq!(owners.list_page(None, 10).unwrap().streams.len(), 0);
}

/// The directory is a mount point whose storage is unmounted for a while.
#[test]
fn no_event_is_moved_to_a_directory_that_is_not_the_archive() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let (archive_dir, away) = (dir.path().join("mount"), dir.path().join("away"));
    let one = TestHost::connect(&cluster, "one").with_directory(&archive_dir);
    one.write_events("s", 1..=4, 100);
    one.archive_own_streams().unwrap();
    one.write_events("s", 5..=8, 100);
    let stored = one.count_messages();

    fs::rename(&archive_dir, &away).unwrap();
    one.archive_own_streams().unwrap_err();
    assert!(!archive_dir.exists(), "the directory is not created again");
    fs::create_dir(&archive_dir).unwrap();
    let error = one.archive_own_streams().unwrap_err();
    let mut text = format!("{error:?}");
    assert!(text.contains("not be mounted"), "{text}");
    assert_eq!((one.count_messages(), fs::read_dir(&archive_dir).unwrap().count()), (stored, 0));
    // A stream is not partly deleted, and an unreadable event is not reported as damaged.
    assert!(one.journal.delete_stream("s").is_err());
    let other = TestHost::connect(&cluster, "two").with_directory(&archive_dir);
    let error = other.journal.read_events("s", 0, 10, 10_000).unwrap_err();
    assert!(!matches!(error, ReadError::Damaged { .. }), "{error:?}");

    // Another archive is not mistaken for this one.
    fs::write(archive_dir.join("cold.archive-id"), "0123456789abcdef").unwrap();
    text = format!("{:?}", one.archive_own_streams().unwrap_err());
    assert!(text.contains("this is 0123456789abcdef"), "{text}");
    assert_eq!(one.count_messages(), stored);

    fs::remove_dir_all(&archive_dir).unwrap();
    fs::rename(&away, &archive_dir).unwrap();
    one.archive_own_streams().unwrap();
    check_stream(&one, "s", 8, |_| 100, 10);
}

#[test]
fn directory_of_a_used_archive_is_not_created_again_at_the_next_start() {
    let (cluster, dir) = (Cluster::start(1), tempfile::tempdir().unwrap());
    let archive_dir = dir.path().join("mount");
    let url = format!("file://{}", archive_dir.display());
    let one = TestHost::connect(&cluster, "one");
    one.journal.archiver().unwrap().open_archive(&url).unwrap();
    one.write_events("s", 1..=4, 100);
    one.archive_own_streams().unwrap();
    fs::rename(&archive_dir, dir.path().join("away")).unwrap();
    let two = TestHost::connect(&cluster, "two");
    let error = two.journal.archiver().unwrap().open_archive(&url).unwrap_err();
    assert!(format!("{error:?}").contains("mount its storage"), "{error:?}");
    assert!(!archive_dir.exists());
}
