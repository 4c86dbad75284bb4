//! Claims, fences, numbers, retries, batches, summaries, deletion.

use super::{World, append, lines, name, read_all, seqs, with_summary, write};
use crate::{AppendError, Invalid, NAME_BYTES_MAX, SEQ_MAX};

pub(super) fn a_claim_creates_the_stream_and_raises_its_epoch(world: &mut World) {
    let first = world.journal.claim("s").unwrap();
    assert_eq!(first.head, 0);
    assert!(0 < first.epoch);
    assert_eq!(world.journal.streams().unwrap().len(), 1);

    write(&world.journal, append("s", first.epoch, 1, &["a", "b"])).unwrap();
    let second = world.journal.claim("s").unwrap();
    assert!(first.epoch < second.epoch);
    assert_eq!(second.head, 2);

    world.reopen();
    let third = world.journal.claim("s").unwrap();
    assert!(second.epoch < third.epoch);
    assert_eq!(third.head, 2);
}

pub(super) fn an_older_epoch_is_fenced_for_ever(world: &mut World) {
    let old = world.journal.claim("s").unwrap().epoch;
    write(&world.journal, append("s", old, 1, &["a"])).unwrap();
    let new = world.journal.claim("s").unwrap().epoch;
    for round in 0..3 {
        // What would be right, a retry, and a gap: fenced comes first.
        for first in [2, 1, 9] {
            let error = write(&world.journal, append("s", old, first, &["x"])).unwrap_err();
            let AppendError::Fenced { stream, epoch, actual } = error else { panic!("{error}") };
            assert_eq!((&*stream, epoch, actual), ("s", old, new));
        }
        let seq = round + 2;
        assert_eq!(write(&world.journal, append("s", new, seq, &["b"])).unwrap(), seq);
        world.reopen();
    }
    assert_eq!(lines(&read_all(&world.journal, "s", 0)), ["a", "b", "b", "b"]);
}

pub(super) fn a_writer_of_a_deleted_stream_stays_fenced_when_it_is_made_anew(world: &mut World) {
    let mut epochs = Vec::new();
    for round in 0..5 {
        for _ in 0..=round {
            epochs.push(world.journal.claim("s").unwrap().epoch);
        }
        let epoch = *epochs.last().unwrap();
        write(&world.journal, append("s", epoch, 1, &["a"])).unwrap();
        world.journal.delete("s").unwrap();
        if round % 2 == 0 {
            world.reopen();
        }
        let fenced = |epoch, first| {
            let outcome = write(&world.journal, append("s", epoch, first, &["x"]));
            matches!(outcome, Err(AppendError::Fenced { .. }))
        };
        assert!(epochs.iter().all(|&epoch| fenced(epoch, 1) && fenced(epoch, 2)));
        let anew = world.journal.claim("s").unwrap();
        assert_eq!(anew.head, 0);
        assert!(epochs.iter().all(|&epoch| epoch < anew.epoch));
        assert!(epochs.iter().all(|&epoch| fenced(epoch, 1) && fenced(epoch, 2)));
        epochs.push(anew.epoch);
    }
}

pub(super) fn an_unclaimed_stream_is_fenced(world: &mut World) {
    let error = write(&world.journal, append("s", 1, 1, &["a"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { epoch: 1, actual: 0, .. }), "{error}");
    assert_eq!(world.journal.streams().unwrap(), []);

    let epoch = world.journal.claim("s").unwrap().epoch;
    let error = write(&world.journal, append("s", epoch + 1, 1, &["a"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { .. }), "an epoch nobody was given: {error}");
}

pub(super) fn another_handle_fences_this_one(world: &mut World) {
    let other = world.other_handle();
    let mine = world.journal.claim("s").unwrap().epoch;
    write(&world.journal, append("s", mine, 1, &["a"])).unwrap();

    let theirs = other.claim("s").unwrap();
    assert_eq!(theirs.head, 1);
    let error = write(&world.journal, append("s", mine, 2, &["x"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { .. }), "{error}");
    assert_eq!(write(&other, append("s", theirs.epoch, 2, &["b"])).unwrap(), 2);

    world.journal.delete("s").unwrap();
    let error = write(&other, append("s", theirs.epoch, 3, &["x"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { .. }), "{error}");
}

pub(super) fn two_handles_may_take_turns_on_different_streams(world: &mut World) {
    let other = world.other_handle();
    let (a, b) = (world.journal.claim("a").unwrap().epoch, other.claim("b").unwrap().epoch);
    for seq in 1..=20 {
        assert_eq!(write(&world.journal, append("a", a, seq, &["x"])).unwrap(), seq);
        assert_eq!(write(&other, append("b", b, seq, &["y"])).unwrap(), seq);
    }
    // An epoch handed from one handle to the other is as good there.
    assert_eq!(write(&other, append("a", a, 21, &["x"])).unwrap(), 21);
    assert_eq!(write(&world.journal, append("a", a, 20, &["?", "?", "x"])).unwrap(), 22);
    for journal in [&world.journal, &other] {
        assert_eq!(seqs(&read_all(journal, "a", 0)), (1..=22).collect::<Vec<_>>());
        assert_eq!(seqs(&read_all(journal, "b", 0)), (1..=20).collect::<Vec<_>>());
        assert!(lines(&read_all(journal, "a", 0)).iter().all(|it| *it == "x"));
    }
}

pub(super) fn events_have_consecutive_numbers_and_a_gap_is_refused(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let error = write(&world.journal, append("s", epoch, 2, &["b"])).unwrap_err();
    let AppendError::Gap { stream, first, head } = error else { panic!("{error}") };
    assert_eq!((&*stream, first, head), ("s", 2, 0));

    assert_eq!(write(&world.journal, append("s", epoch, 1, &["a", "b", "c"])).unwrap(), 3);
    assert_eq!(write(&world.journal, append("s", epoch, 4, &["d"])).unwrap(), 4);
    for first in [6, 7, SEQ_MAX] {
        let error = write(&world.journal, append("s", epoch, first, &["x"])).unwrap_err();
        assert!(matches!(error, AppendError::Gap { head: 4, .. }), "{error}");
    }
    let events = read_all(&world.journal, "s", 0);
    assert_eq!(seqs(&events), [1, 2, 3, 4]);
    assert_eq!(lines(&events), ["a", "b", "c", "d"]);
}

pub(super) fn a_retry_stores_only_what_is_missing(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    assert_eq!(write(&world.journal, append("s", epoch, 1, &["a", "b", "c"])).unwrap(), 3);
    assert_eq!(write(&world.journal, append("s", epoch, 1, &["a", "b", "c"])).unwrap(), 3);
    assert_eq!(write(&world.journal, append("s", epoch, 2, &["b"])).unwrap(), 3);
    assert_eq!(write(&world.journal, append("s", epoch, 3, &["c", "d", "e"])).unwrap(), 5);
    assert_eq!(write(&world.journal, append("s", epoch, 6, &["f"])).unwrap(), 6);
    let events = read_all(&world.journal, "s", 0);
    assert_eq!(lines(&events), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(seqs(&events), [1, 2, 3, 4, 5, 6]);
}

pub(super) fn a_retry_after_a_restart_stores_only_what_is_missing(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    write(&world.journal, append("s", epoch, 1, &["a", "b"])).unwrap();
    world.reopen();
    assert_eq!(write(&world.journal, append("s", epoch, 1, &["a", "b", "c"])).unwrap(), 3);
    world.journal.upkeep().unwrap();
    world.reopen();
    assert_eq!(write(&world.journal, append("s", epoch, 3, &["c", "d"])).unwrap(), 4);
    assert_eq!(lines(&read_all(&world.journal, "s", 0)), ["a", "b", "c", "d"]);
}

pub(super) fn a_batch_goes_to_many_streams_and_each_append_is_judged_by_itself(world: &mut World) {
    let [a, b, c] = ["a", "b", "c"].map(|it| world.journal.claim(it).unwrap().epoch);
    let b_now = world.journal.claim("b").unwrap().epoch;
    let outcomes = world.journal.append(&[
        append("a", a, 1, &["1", "2"]),
        append("b", b, 1, &["x"]),
        append("c", c, 2, &["x"]),
        crate::Append { count: 7, ..append("a", a, 3, &["x"]) },
        append("b", b_now, 1, &["3"]),
        append("nobody", 1, 1, &["x"]),
        append("c", c, 1, &["4"]),
    ]);
    let [Ok(2), fenced, gap, invalid, Ok(1), unknown, Ok(1)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert!(matches!(fenced, Err(AppendError::Fenced { .. })), "{fenced:?}");
    assert!(matches!(gap, Err(AppendError::Gap { .. })), "{gap:?}");
    assert!(matches!(invalid, Err(AppendError::Invalid { .. })), "{invalid:?}");
    assert!(matches!(unknown, Err(AppendError::Fenced { .. })), "{unknown:?}");
    world.reopen();
    let found = ["a", "b", "c"].map(|it| read_all(&world.journal, it, 0));
    assert_eq!(lines(&found.concat()), ["1", "2", "3", "4"]);
}

pub(super) fn a_batch_may_continue_the_same_stream(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let outcomes = world.journal.append(&[
        append("s", epoch, 1, &["a"]),
        append("s", epoch, 2, &["b", "c"]),
        append("s", epoch, 2, &["b", "c", "d"]),
        append("s", epoch, 9, &["x"]),
        append("s", epoch, 5, &["e"]),
    ]);
    assert!(matches!(outcomes[..], [Ok(1), Ok(3), Ok(4), Err(_), Ok(5)]), "{outcomes:?}");
    assert_eq!(lines(&read_all(&world.journal, "s", 0)), ["a", "b", "c", "d", "e"]);
}

pub(super) fn a_batch_may_go_to_and_fro_between_very_many_streams(world: &mut World) {
    let names: Vec<_> = (0..200).map(|it| format!("s-{it}")).collect();
    let epochs: Vec<_> = names.iter().map(|it| world.journal.claim(it).unwrap().epoch).collect();
    for round in 0..2 {
        let mut batch = Vec::new();
        for seq in round * 3 + 1..=round * 3 + 3 {
            for (name, epoch) in names.iter().zip(&epochs) {
                batch.push(append(name, *epoch, seq, &["x"]));
            }
        }
        let outcomes = world.journal.append(&batch);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
    for name in &names {
        assert_eq!(seqs(&read_all(&world.journal, name, 0)), [1, 2, 3, 4, 5, 6]);
    }
}

pub(super) fn an_empty_batch_is_nothing(world: &mut World) {
    assert!(world.journal.append(&[]).is_empty());
    assert_eq!(world.journal.streams().unwrap(), []);
}

pub(super) fn an_append_that_does_not_add_up_is_invalid(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let good = append("s", epoch, 1, &["a", "b"]);
    let bad = [
        (crate::Append { count: 0, ..good.clone() }, Invalid::Empty),
        (crate::Append { count: 1, ..good.clone() }, Invalid::Count { count: 1, lines: 2 }),
        (crate::Append { first: 0, ..good.clone() }, Invalid::FirstIsZero),
        (crate::Append { first: SEQ_MAX, ..good.clone() }, Invalid::SeqTooLarge),
        (crate::Append { first: u64::MAX, ..good.clone() }, Invalid::SeqTooLarge),
        (crate::Append { stream: name(""), ..good.clone() }, Invalid::Name),
    ];
    for (append, why) in bad {
        let error = write(&world.journal, append).unwrap_err();
        let AppendError::Invalid { source, .. } = error else { panic!("{error}") };
        assert_eq!(source, why);
    }
    for wrong in ["", &"x".repeat(NAME_BYTES_MAX + 1)] {
        assert!(matches!(world.journal.claim(wrong), Err(AppendError::Invalid { .. })));
        assert!(matches!(world.journal.delete(wrong), Err(AppendError::Invalid { .. })));
    }
    assert_eq!(write(&world.journal, good).unwrap(), 2);
}

pub(super) fn the_latest_summary_wins(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let summary = |world: &World| {
        let stream = world.journal.streams().unwrap().remove(0);
        (String::from_utf8(stream.summary.to_vec()).unwrap(), stream.summary_upto)
    };
    assert_eq!(summary(world), (String::new(), 0));
    write(&world.journal, with_summary(append("s", epoch, 1, &["a", "b"]), "one")).unwrap();
    assert_eq!(summary(world), ("one".into(), 2));
    write(&world.journal, append("s", epoch, 3, &["c"])).unwrap();
    assert_eq!(summary(world), ("one".into(), 2));
    world.journal.append(&[
        with_summary(append("s", epoch, 4, &["d"]), "two"),
        with_summary(append("s", epoch, 5, &["e"]), "three"),
    ]);
    world.reopen();
    assert_eq!(summary(world), ("three".into(), 5));
    // A refused append leaves no summary either.
    write(&world.journal, with_summary(append("s", epoch, 9, &["x"]), "no")).unwrap_err();
    write(&world.journal, with_summary(append("s", epoch + 1, 6, &["x"]), "no")).unwrap_err();
    assert_eq!(summary(world), ("three".into(), 5));
}

pub(super) fn a_retry_does_not_bring_back_an_older_summary(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let first = with_summary(append("s", epoch, 1, &["a"]), "one");
    let second = with_summary(append("s", epoch, 2, &["b"]), "two");
    write(&world.journal, first.clone()).unwrap();
    write(&world.journal, second.clone()).unwrap();
    assert_eq!(write(&world.journal, first).unwrap(), 2);
    assert_eq!(world.journal.streams().unwrap()[0].summary, "two");
    assert_eq!(write(&world.journal, second).unwrap(), 2);
    assert_eq!(world.journal.streams().unwrap()[0].summary, "two");
}

pub(super) fn a_summary_may_come_after_its_events(world: &mut World) {
    let epoch = world.journal.claim("s").unwrap().epoch;
    let bare = |first, summary| with_summary(append("s", epoch, first, &[]), summary);
    let summary = |world: &World| {
        let stream = world.journal.streams().unwrap().remove(0);
        (String::from_utf8(stream.summary.to_vec()).unwrap(), stream.summary_upto, stream.head)
    };
    write(&world.journal, append("s", epoch, 1, &["a", "b"])).unwrap();
    assert_eq!(write(&world.journal, bare(3, "of two")).unwrap(), 2);
    assert_eq!(summary(world), ("of two".into(), 2, 2));
    assert_eq!(write(&world.journal, bare(2, "of one")).unwrap(), 2);
    assert_eq!(summary(world), ("of two".into(), 2, 2), "it is older");
    let ahead = write(&world.journal, bare(4, "of three")).unwrap_err();
    assert!(matches!(ahead, AppendError::Gap { first: 4, head: 2, .. }), "{ahead}");
    world.journal.claim("s").unwrap();
    let fenced = write(&world.journal, bare(3, "of another")).unwrap_err();
    assert!(matches!(fenced, AppendError::Fenced { .. }), "{fenced}");
    world.reopen();
    assert_eq!(summary(world), ("of two".into(), 2, 2));
    assert_eq!(lines(&read_all(&world.journal, "s", 0)), ["a", "b"]);
}

pub(super) fn a_deleted_stream_is_gone(world: &mut World) {
    let count = world.long();
    for stream in ["a", "b", "c"] {
        let epoch = world.journal.claim(stream).unwrap().epoch;
        for seq in 1..=count {
            write(&world.journal, append(stream, epoch, seq, &[stream])).unwrap();
        }
    }
    world.journal.delete("b").unwrap();
    for round in 0..3 {
        let names: Vec<_> =
            world.journal.streams().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, [name("a"), name("c")]);
        assert_eq!(read_all(&world.journal, "b", 0), []);
        assert_eq!(read_all(&world.journal, "a", 0).len() as u64, count);
        assert_eq!(lines(&read_all(&world.journal, "c", count - 2)), ["c", "c"]);
        match round {
            0 => world.journal.upkeep().unwrap(),
            _ => world.reopen(),
        }
    }
    let anew = world.journal.claim("b").unwrap();
    write(&world.journal, append("b", anew.epoch, 1, &["new"])).unwrap();
    world.journal.upkeep().unwrap();
    assert_eq!(lines(&read_all(&world.journal, "b", 0)), ["new"]);
}

pub(super) fn deleting_what_is_not_there_is_no_error(world: &mut World) {
    world.journal.delete("nobody").unwrap();
    world.journal.claim("s").unwrap();
    world.journal.delete("s").unwrap();
    world.journal.delete("s").unwrap();
    assert_eq!(world.journal.streams().unwrap(), []);
}
