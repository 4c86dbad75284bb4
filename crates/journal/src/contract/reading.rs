//! Checks of reads: prefixes, limits, large events, unusual names and the list of streams.

use super::{
    TestBackend, append_one, event_seqs, line_texts, new_append, read_all, stream_name,
    with_summary,
};
use crate::{AppendRequest, NAME_BYTES_MAX, RECORD_BYTES_MAX, StreamInfo};
use bytes::Bytes;
use std::time::{Duration, Instant};

pub(super) fn empty_journal_has_no_streams_and_events(backend: &mut TestBackend) {
    for _ in 0..2 {
        assert_eq!(backend.journal.list_streams().unwrap(), []);
        assert_eq!(read_all(&backend.journal, "s", 0), []);
        assert_eq!(read_all(&backend.journal, "s", u64::MAX), []);
        backend.journal.run_upkeep().unwrap();
        backend.reopen();
    }
    backend.journal.claim_stream("s").unwrap();
    assert_eq!(read_all(&backend.journal, "s", 0), []);
}

/// Appends ten events of ten bytes in records of 1, 4, 3 and 2 events.
fn append_ten_events(backend: &TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let all: Vec<_> = (1..=10).map(|seq| format!("event {seq:04}")).collect();
    for (first, last) in [(1, 1), (2, 5), (6, 8), (9, 10)] {
        let lines: Vec<_> = all[first - 1..last].iter().map(String::as_str).collect();
        append_one(&backend.journal, new_append("s", epoch, first as u64, &lines)).unwrap();
    }
}

pub(super) fn read_returns_a_prefix_within_both_limits(backend: &mut TestBackend) {
    append_ten_events(backend);
    for is_indexed in [false, true] {
        if is_indexed {
            backend.journal.run_upkeep().unwrap();
        }
        for after in 0..=10_u64 {
            for events_max in 1..=11 {
                for bytes_max in [0, 9, 10, 19, 20, 35, 50, 99, 100, 1000] {
                    let events =
                        backend.journal.read_events("s", after, events_max, bytes_max).unwrap();
                    let available = 10 - usize::try_from(after).unwrap();
                    let wanted = available.min(events_max).min((bytes_max / 10).max(1));
                    let expected: Vec<_> = (after + 1..).take(wanted).collect();
                    assert_eq!(event_seqs(&events), expected, "{after} {events_max} {bytes_max}");
                    for event in &events {
                        assert_eq!(event.line, format!("event {:04}", event.seq));
                    }
                }
            }
        }
    }
}

pub(super) fn read_returns_at_least_one_event(backend: &mut TestBackend) {
    append_ten_events(backend);
    assert_eq!(event_seqs(&backend.journal.read_events("s", 3, 0, 0).unwrap()), [4]);
    assert_eq!(event_seqs(&backend.journal.read_events("s", 9, 0, 0).unwrap()), [10]);
    assert!(backend.journal.read_events("s", 10, 0, 0).unwrap().is_empty());
}

pub(super) fn read_may_start_in_the_middle_of_a_record(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let all: Vec<_> = (1..=1000).map(|seq| seq.to_string()).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    append_one(&backend.journal, new_append("s", epoch, 1, &all)).unwrap();
    for after in [0, 1, 499, 998, 999] {
        let events = read_all(&backend.journal, "s", after);
        assert_eq!(event_seqs(&events), (after + 1..=1000).collect::<Vec<_>>());
        assert!(events.iter().all(|it| it.line == it.seq.to_string()));
    }
}

pub(super) fn read_at_or_beyond_the_head_is_empty(backend: &mut TestBackend) {
    append_ten_events(backend);
    for after in [10, 11, 1 << 35, 1 << 36, 1 << 40, u64::MAX - 1, u64::MAX] {
        assert_eq!(read_all(&backend.journal, "s", after), [], "{after}");
    }
}

pub(super) fn upkeep_does_not_change_what_is_read(backend: &mut TestBackend) {
    let [a, b] = ["a", "b"].map(|it| backend.journal.claim_stream(it).unwrap().epoch);
    for seq in 1..=backend.long_stream_len().min(100) {
        backend
            .journal
            .append_batch(&[new_append("a", a, seq, &["x"]), new_append("b", b, seq, &["y"])]);
        if seq % 30 == 0 {
            backend.journal.run_upkeep().unwrap();
        }
        if seq % 45 == 0 {
            backend.reopen();
        }
        assert_eq!(event_seqs(&read_all(&backend.journal, "a", 0)), (1..=seq).collect::<Vec<_>>());
        assert_eq!(event_seqs(&read_all(&backend.journal, "b", seq - 1)), [seq]);
        assert_eq!(backend.journal.list_streams().unwrap()[1].head, seq);
    }
}

pub(super) fn large_events_are_read_back_unchanged(backend: &mut TestBackend) {
    let sizes = [0, 1, RECORD_BYTES_MAX - 1, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1, 3_000_000, 7];
    let all: Vec<_> = sizes.iter().map(|&size| "z".repeat(size)).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    assert_eq!(append_one(&backend.journal, new_append("s", epoch, 1, &all)).unwrap(), 7);
    // A retry that overlaps a large event.
    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 6, &[all[5], all[6], "8"])).unwrap(),
        8
    );
    for _ in 0..2 {
        let events = read_all(&backend.journal, "s", 0);
        assert_eq!(event_seqs(&events), [1, 2, 3, 4, 5, 6, 7, 8]);
        let lengths: Vec<_> = events.iter().map(|it| it.line.len()).collect();
        assert_eq!(lengths[..7], sizes);
        assert!(events[..7].iter().flat_map(|it| &it.line[..]).all(|it| *it == b'z'));
        backend.journal.run_upkeep().unwrap();
        backend.reopen();
    }
    backend.journal.delete_stream("s").unwrap();
    backend.journal.run_upkeep().unwrap();
    assert_eq!(read_all(&backend.journal, "s", 0), []);
}

pub(super) fn large_event_is_omitted_from_a_batch_without_space(backend: &mut TestBackend) {
    let large = "z".repeat(1_000_000);
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    append_one(&backend.journal, new_append("s", epoch, 1, &["a", &large, "b"])).unwrap();
    let read = |after, bytes_max| backend.journal.read_events("s", after, 100, bytes_max).unwrap();
    assert_eq!(event_seqs(&read(0, 1_000_000)), [1]);
    assert_eq!(event_seqs(&read(0, 1_000_001)), [1, 2]);
    assert_eq!(event_seqs(&read(0, 1_000_002)), [1, 2, 3]);
    assert_eq!(event_seqs(&read(1, 10)), [2], "a single event is always accepted");
}

pub(super) fn event_may_look_like_a_blob_reference(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let line = r#"{"blob":{"bytes":300000,"crc32":1}}"#;
    append_one(&backend.journal, new_append("s", epoch, 1, &[line])).unwrap();
    assert_eq!(line_texts(&read_all(&backend.journal, "s", 0)), [line]);
}

pub(super) fn events_may_contain_any_bytes_except_newlines(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let every: Vec<u8> = (0..=255).filter(|it| *it != b'\n').collect();
    let body = [&b""[..], &every, b"", b"\r", b"\0", b""].join(&b'\n');
    let append = AppendRequest { count: 6, body: body.into(), ..new_append("s", epoch, 1, &[""]) };
    append_one(&backend.journal, append).unwrap();
    let found: Vec<Bytes> =
        read_all(&backend.journal, "s", 0).into_iter().map(|it| it.line).collect();
    assert_eq!(found, [&b""[..], &every, b"", b"\r", b"\0", b""]);
}

pub(super) fn streams_may_have_any_name(backend: &mut TestBackend) {
    let longest = "ü".repeat(NAME_BYTES_MAX / 2);
    let names = [
        " ",
        "'",
        "\"; DROP TABLE record; --",
        "%",
        "_",
        "a",
        "A",
        "ä",
        "a\u{308}",
        "日本",
        "🦀",
        "\0",
        "a\0",
        "a\0b",
        "a\nb",
        "../x",
        "*",
        ">",
        ".",
        "a.b",
        "NULL",
        "0",
        "00",
        &longest,
    ];
    for (index, name) in names.iter().enumerate() {
        let epoch = backend.journal.claim_stream(name).unwrap().epoch;
        let line = index.to_string();
        append_one(&backend.journal, with_summary(new_append(name, epoch, 1, &[&line]), name))
            .unwrap();
    }
    for _ in 0..2 {
        for (index, name) in names.iter().enumerate() {
            assert_eq!(
                line_texts(&read_all(&backend.journal, name, 0)),
                [index.to_string()],
                "{name:?}"
            );
        }
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let streams = backend.journal.list_streams().unwrap();
        let found: Vec<_> = streams.iter().map(|it| &*it.name).collect();
        assert_eq!(found, sorted);
        assert!(streams.iter().all(|it| it.summary == it.name.as_bytes()));
        backend.journal.run_upkeep().unwrap();
        backend.reopen();
    }
}

pub(super) fn streams_are_listed_by_name_with_their_heads(backend: &mut TestBackend) {
    let [b, a] = ["b", "a"].map(|it| backend.journal.claim_stream(it).unwrap().epoch);
    backend.journal.append_batch(&[
        with_summary(new_append("b", b, 1, &["x", "y"]), "of b"),
        new_append("b", b, 3, &["z"]),
    ]);
    let new_info = |name: &str, epoch, head, summary: &'static str, summary_upto| StreamInfo {
        name: stream_name(name),
        epoch,
        head,
        summary: summary.into(),
        summary_upto,
    };
    for _ in 0..2 {
        let expected = [new_info("a", a, 0, "", 0), new_info("b", b, 3, "of b", 2)];
        assert_eq!(backend.journal.list_streams().unwrap(), expected);
        backend.journal.run_upkeep().unwrap();
        backend.reopen();
    }
}

pub(super) fn very_many_streams_are_listed_quickly(backend: &mut TestBackend) {
    let stream_count = backend.stream_count();
    let names: Vec<_> = (0..stream_count).map(|it| stream_name(&format!("s-{it:05}"))).collect();
    let mut batch = Vec::new();
    for stream in &names {
        let epoch = backend.journal.claim_stream(stream).unwrap().epoch;
        batch.push(with_summary(new_append(stream, epoch, 1, &["{}", "{}"]), &"s".repeat(300)));
    }
    assert!(backend.journal.append_batch(&batch).iter().all(|it| matches!(it, Ok(2))));
    backend.journal.run_upkeep().unwrap();
    backend.reopen();
    let start = Instant::now();
    let streams = backend.journal.list_streams().unwrap();
    let elapsed = start.elapsed();
    assert_eq!(streams.len(), stream_count);
    assert!(streams.iter().all(|it| it.head == 2 && it.summary.len() == 300));
    // It usually takes a few milliseconds; the limit is for a slow machine under load.
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}
