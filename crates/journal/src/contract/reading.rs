//! Prefixes, limits, large events, odd names, the list of streams.

use super::{World, append, lines, name, read_all, seqs, with_summary, write};
use crate::{Append, NAME_BYTES_MAX, RECORD_BYTES_MAX, Stream};
use bytes::Bytes;
use std::time::{Duration, Instant};

pub(super) fn an_empty_journal_has_nothing(world: &mut World) {
    for _ in 0..2 {
        assert_eq!(world.journal.streams().unwrap(), []);
        assert_eq!(read_all(&world.journal, "s", 0), []);
        assert_eq!(read_all(&world.journal, "s", u64::MAX), []);
        world.journal.upkeep().unwrap();
        world.reopen();
    }
    world.journal.claim("s").unwrap();
    assert_eq!(read_all(&world.journal, "s", 0), []);
}

/// Ten events of ten bytes in records of 1, 4, 3 and 2.
fn ten(world: &World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let all: Vec<_> = (1..=10).map(|seq| format!("event {seq:04}")).collect();
    for (first, last) in [(1, 1), (2, 5), (6, 8), (9, 10)] {
        let lines: Vec<_> = all[first - 1..last].iter().map(String::as_str).collect();
        write(&world.journal, append("s", epoch, first as u64, &lines)).unwrap();
    }
}

pub(super) fn an_answer_is_a_prefix_within_both_limits(world: &mut World) {
    ten(world);
    for placed in [false, true] {
        if placed {
            world.journal.upkeep().unwrap();
        }
        for after in 0..=10_u64 {
            for events_max in 1..=11 {
                for bytes_max in [0, 9, 10, 19, 20, 35, 50, 99, 100, 1000] {
                    let events = world.journal.read("s", after, events_max, bytes_max).unwrap();
                    let there = 10 - usize::try_from(after).unwrap();
                    let wanted = there.min(events_max).min((bytes_max / 10).max(1));
                    let expected: Vec<_> = (after + 1..).take(wanted).collect();
                    assert_eq!(seqs(&events), expected, "{after} {events_max} {bytes_max}");
                    for event in &events {
                        assert_eq!(event.line, format!("event {:04}", event.seq));
                    }
                }
            }
        }
    }
}

pub(super) fn an_answer_has_at_least_one_event(world: &mut World) {
    ten(world);
    assert_eq!(seqs(&world.journal.read("s", 3, 0, 0).unwrap()), [4]);
    assert_eq!(seqs(&world.journal.read("s", 9, 0, 0).unwrap()), [10]);
    assert!(world.journal.read("s", 10, 0, 0).unwrap().is_empty());
}

pub(super) fn a_read_may_start_in_the_middle_of_a_record(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let all: Vec<_> = (1..=1000).map(|seq| seq.to_string()).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    write(&world.journal, append("s", epoch, 1, &all)).unwrap();
    for after in [0, 1, 499, 998, 999] {
        let events = read_all(&world.journal, "s", after);
        assert_eq!(seqs(&events), (after + 1..=1000).collect::<Vec<_>>());
        assert!(events.iter().all(|it| it.line == it.seq.to_string()));
    }
}

pub(super) fn a_read_at_or_beyond_the_head_is_empty(world: &mut World) {
    ten(world);
    for after in [10, 11, 1 << 35, 1 << 36, 1 << 40, u64::MAX - 1, u64::MAX] {
        assert_eq!(read_all(&world.journal, "s", after), [], "{after}");
    }
}

pub(super) fn upkeep_changes_nothing_that_is_read(world: &mut World) {
    let [a, b] = ["a", "b"].map(|it| world.journal.claim(it).unwrap().epoch);
    for seq in 1..=world.long().min(100) {
        world.journal.append(&[append("a", a, seq, &["x"]), append("b", b, seq, &["y"])]);
        if seq % 30 == 0 {
            world.journal.upkeep().unwrap();
        }
        if seq % 45 == 0 {
            world.reopen();
        }
        assert_eq!(seqs(&read_all(&world.journal, "a", 0)), (1..=seq).collect::<Vec<_>>());
        assert_eq!(seqs(&read_all(&world.journal, "b", seq - 1)), [seq]);
        assert_eq!(world.journal.streams().unwrap()[1].head, seq);
    }
}

pub(super) fn large_events_come_back_whole(world: &mut World) {
    let sizes = [0, 1, RECORD_BYTES_MAX - 1, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1, 3_000_000, 7];
    let all: Vec<_> = sizes.iter().map(|&size| "z".repeat(size)).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let epoch = world.journal.claim("s").unwrap().epoch;
    assert_eq!(write(&world.journal, append("s", epoch, 1, &all)).unwrap(), 7);
    // A retry that overlaps a large event.
    assert_eq!(write(&world.journal, append("s", epoch, 6, &[all[5], all[6], "8"])).unwrap(), 8);
    for _ in 0..2 {
        let events = read_all(&world.journal, "s", 0);
        assert_eq!(seqs(&events), [1, 2, 3, 4, 5, 6, 7, 8]);
        let found: Vec<_> = events.iter().map(|it| it.line.len()).collect();
        assert_eq!(found[..7], sizes);
        assert!(events[..7].iter().flat_map(|it| &it.line[..]).all(|it| *it == b'z'));
        world.journal.upkeep().unwrap();
        world.reopen();
    }
    world.journal.delete("s").unwrap();
    world.journal.upkeep().unwrap();
    assert_eq!(read_all(&world.journal, "s", 0), []);
}

pub(super) fn a_large_event_waits_for_an_answer_with_room(world: &mut World) {
    let large = "z".repeat(1_000_000);
    let epoch = world.journal.claim("s").unwrap().epoch;
    write(&world.journal, append("s", epoch, 1, &["a", &large, "b"])).unwrap();
    let read = |after, bytes_max| world.journal.read("s", after, 100, bytes_max).unwrap();
    assert_eq!(seqs(&read(0, 1_000_000)), [1]);
    assert_eq!(seqs(&read(0, 1_000_001)), [1, 2]);
    assert_eq!(seqs(&read(0, 1_000_002)), [1, 2, 3]);
    assert_eq!(seqs(&read(1, 10)), [2], "alone it is always let in");
}

pub(super) fn an_event_may_look_like_a_reference(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let line = r#"{"blob":{"bytes":300000,"crc32":1}}"#;
    write(&world.journal, append("s", epoch, 1, &[line])).unwrap();
    assert_eq!(lines(&read_all(&world.journal, "s", 0)), [line]);
}

pub(super) fn events_may_be_any_bytes_but_a_newline(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let every: Vec<u8> = (0..=255).filter(|it| *it != b'\n').collect();
    let body = [&b""[..], &every, b"", b"\r", b"\0", b""].join(&b'\n');
    let append = Append { count: 6, body: body.into(), ..append("s", epoch, 1, &[""]) };
    write(&world.journal, append).unwrap();
    let found: Vec<Bytes> =
        read_all(&world.journal, "s", 0).into_iter().map(|it| it.line).collect();
    assert_eq!(found, [&b""[..], &every, b"", b"\r", b"\0", b""]);
}

pub(super) fn streams_may_have_any_name(world: &mut World) {
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
        let epoch = world.journal.claim(name).unwrap().epoch;
        let line = index.to_string();
        write(&world.journal, with_summary(append(name, epoch, 1, &[&line]), name)).unwrap();
    }
    for _ in 0..2 {
        for (index, name) in names.iter().enumerate() {
            assert_eq!(lines(&read_all(&world.journal, name, 0)), [index.to_string()], "{name:?}");
        }
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let streams = world.journal.streams().unwrap();
        let found: Vec<_> = streams.iter().map(|it| &*it.name).collect();
        assert_eq!(found, sorted);
        assert!(streams.iter().all(|it| it.summary == it.name.as_bytes()));
        world.journal.upkeep().unwrap();
        world.reopen();
    }
}

pub(super) fn streams_are_listed_by_name_with_their_heads(world: &mut World) {
    let [b, a] = ["b", "a"].map(|it| world.journal.claim(it).unwrap().epoch);
    world
        .journal
        .append(&[with_summary(append("b", b, 1, &["x", "y"]), "of b"), append("b", b, 3, &["z"])]);
    let listed = |name_is: &str, epoch, head, summary: &'static str, summary_upto| Stream {
        name: name(name_is),
        epoch,
        head,
        summary: summary.into(),
        summary_upto,
    };
    for _ in 0..2 {
        let expected = [listed("a", a, 0, "", 0), listed("b", b, 3, "of b", 2)];
        assert_eq!(world.journal.streams().unwrap(), expected);
        world.journal.upkeep().unwrap();
        world.reopen();
    }
}

pub(super) fn very_many_streams_are_listed_at_once(world: &mut World) {
    let many = world.many();
    let names: Vec<_> = (0..many).map(|it| name(&format!("s-{it:05}"))).collect();
    let mut batch = Vec::new();
    for stream in &names {
        let epoch = world.journal.claim(stream).unwrap().epoch;
        batch.push(with_summary(append(stream, epoch, 1, &["{}", "{}"]), &"s".repeat(300)));
    }
    assert!(world.journal.append(&batch).iter().all(|it| matches!(it, Ok(2))));
    world.journal.upkeep().unwrap();
    world.reopen();
    let start = Instant::now();
    let streams = world.journal.streams().unwrap();
    let took = start.elapsed();
    assert_eq!(streams.len(), many);
    assert!(streams.iter().all(|it| it.head == 2 && it.summary.len() == 300));
    // A few milliseconds in fact; this is for a slow machine under load.
    assert!(took < Duration::from_secs(2), "{took:?}");
}
