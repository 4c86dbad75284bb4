//! Checks of writes: claims, fencing, sequence numbers, retries, batches, summaries and deletions.

use super::{
    TestBackend, append_one, event_seqs, line_texts, new_append, read_all, stream_name,
    with_summary,
};
use crate::{AppendError, InvalidAppend, NAME_BYTES_MAX, SEQ_MAX};

pub(super) fn claim_creates_the_stream_and_raises_its_epoch(backend: &mut TestBackend) {
    let first = backend.journal.claim_stream("s").unwrap();
    assert_eq!(first.head, 0);
    assert!(0 < first.epoch);
    assert_eq!(backend.journal.list_streams().unwrap().len(), 1);

    append_one(&backend.journal, new_append("s", first.epoch, 1, &["a", "b"])).unwrap();
    let second = backend.journal.claim_stream("s").unwrap();
    assert!(first.epoch < second.epoch);
    assert_eq!(second.head, 2);

    backend.reopen();
    let third = backend.journal.claim_stream("s").unwrap();
    assert!(second.epoch < third.epoch);
    assert_eq!(third.head, 2);
}

pub(super) fn older_epoch_stays_fenced(backend: &mut TestBackend) {
    let old = backend.journal.claim_stream("s").unwrap().epoch;
    append_one(&backend.journal, new_append("s", old, 1, &["a"])).unwrap();
    let new = backend.journal.claim_stream("s").unwrap().epoch;
    for round in 0..3 {
        // The next event, a retry and a gap: fencing is checked first.
        for first in [2, 1, 9] {
            let error =
                append_one(&backend.journal, new_append("s", old, first, &["x"])).unwrap_err();
            let AppendError::Fenced { stream, epoch, actual } = error else { panic!("{error}") };
            assert_eq!((&*stream, epoch, actual), ("s", old, new));
        }
        let seq = round + 2;
        assert_eq!(append_one(&backend.journal, new_append("s", new, seq, &["b"])).unwrap(), seq);
        backend.reopen();
    }
    assert_eq!(line_texts(&read_all(&backend.journal, "s", 0)), ["a", "b", "b", "b"]);
}

pub(super) fn writer_of_a_deleted_stream_stays_fenced_after_it_is_created_again(
    backend: &mut TestBackend,
) {
    let mut epochs = Vec::new();
    for round in 0..5 {
        for _ in 0..=round {
            epochs.push(backend.journal.claim_stream("s").unwrap().epoch);
        }
        let epoch = *epochs.last().unwrap();
        append_one(&backend.journal, new_append("s", epoch, 1, &["a"])).unwrap();
        backend.journal.delete_stream("s").unwrap();
        if round % 2 == 0 {
            backend.reopen();
        }
        let fenced = |epoch, first| {
            let outcome = append_one(&backend.journal, new_append("s", epoch, first, &["x"]));
            matches!(outcome, Err(AppendError::Fenced { .. }))
        };
        assert!(epochs.iter().all(|&epoch| fenced(epoch, 1) && fenced(epoch, 2)));
        let new_claim = backend.journal.claim_stream("s").unwrap();
        assert_eq!(new_claim.head, 0);
        assert!(epochs.iter().all(|&epoch| epoch < new_claim.epoch));
        assert!(epochs.iter().all(|&epoch| fenced(epoch, 1) && fenced(epoch, 2)));
        epochs.push(new_claim.epoch);
    }
}

pub(super) fn append_to_an_unclaimed_stream_is_fenced(backend: &mut TestBackend) {
    let error = append_one(&backend.journal, new_append("s", 1, 1, &["a"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { epoch: 1, actual: 0, .. }), "{error}");
    assert_eq!(backend.journal.list_streams().unwrap(), []);

    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let error = append_one(&backend.journal, new_append("s", epoch + 1, 1, &["a"])).unwrap_err();
    assert!(
        matches!(error, AppendError::Fenced { .. }),
        "an epoch that was never assigned: {error}"
    );
}

pub(super) fn claim_by_another_handle_fences_this_one(backend: &mut TestBackend) {
    let other = backend.other_handle();
    let own_epoch = backend.journal.claim_stream("s").unwrap().epoch;
    append_one(&backend.journal, new_append("s", own_epoch, 1, &["a"])).unwrap();

    let other_claim = other.claim_stream("s").unwrap();
    assert_eq!(other_claim.head, 1);
    let error = append_one(&backend.journal, new_append("s", own_epoch, 2, &["x"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { .. }), "{error}");
    assert_eq!(append_one(&other, new_append("s", other_claim.epoch, 2, &["b"])).unwrap(), 2);

    backend.journal.delete_stream("s").unwrap();
    let error = append_one(&other, new_append("s", other_claim.epoch, 3, &["x"])).unwrap_err();
    assert!(matches!(error, AppendError::Fenced { .. }), "{error}");
}

pub(super) fn two_handles_may_write_different_streams_in_turn(backend: &mut TestBackend) {
    let other = backend.other_handle();
    let (a, b) =
        (backend.journal.claim_stream("a").unwrap().epoch, other.claim_stream("b").unwrap().epoch);
    for seq in 1..=20 {
        assert_eq!(append_one(&backend.journal, new_append("a", a, seq, &["x"])).unwrap(), seq);
        assert_eq!(append_one(&other, new_append("b", b, seq, &["y"])).unwrap(), seq);
    }
    // The epoch of one handle is also valid for the other.
    assert_eq!(append_one(&other, new_append("a", a, 21, &["x"])).unwrap(), 21);
    assert_eq!(append_one(&backend.journal, new_append("a", a, 20, &["?", "?", "x"])).unwrap(), 22);
    for journal in [&backend.journal, &other] {
        assert_eq!(event_seqs(&read_all(journal, "a", 0)), (1..=22).collect::<Vec<_>>());
        assert_eq!(event_seqs(&read_all(journal, "b", 0)), (1..=20).collect::<Vec<_>>());
        assert!(line_texts(&read_all(journal, "a", 0)).iter().all(|it| *it == "x"));
    }
}

pub(super) fn gap_in_sequence_numbers_is_refused(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let error = append_one(&backend.journal, new_append("s", epoch, 2, &["b"])).unwrap_err();
    let AppendError::Gap { stream, first, head } = error else { panic!("{error}") };
    assert_eq!((&*stream, first, head), ("s", 2, 0));

    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b", "c"])).unwrap(),
        3
    );
    assert_eq!(append_one(&backend.journal, new_append("s", epoch, 4, &["d"])).unwrap(), 4);
    for first in [6, 7, SEQ_MAX] {
        let error =
            append_one(&backend.journal, new_append("s", epoch, first, &["x"])).unwrap_err();
        assert!(matches!(error, AppendError::Gap { head: 4, .. }), "{error}");
    }
    let events = read_all(&backend.journal, "s", 0);
    assert_eq!(event_seqs(&events), [1, 2, 3, 4]);
    assert_eq!(line_texts(&events), ["a", "b", "c", "d"]);
}

pub(super) fn retry_stores_only_missing_events(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b", "c"])).unwrap(),
        3
    );
    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b", "c"])).unwrap(),
        3
    );
    assert_eq!(append_one(&backend.journal, new_append("s", epoch, 2, &["b"])).unwrap(), 3);
    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 3, &["c", "d", "e"])).unwrap(),
        5
    );
    assert_eq!(append_one(&backend.journal, new_append("s", epoch, 6, &["f"])).unwrap(), 6);
    let events = read_all(&backend.journal, "s", 0);
    assert_eq!(line_texts(&events), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(event_seqs(&events), [1, 2, 3, 4, 5, 6]);
}

pub(super) fn retry_after_a_restart_stores_only_missing_events(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b"])).unwrap();
    backend.reopen();
    assert_eq!(
        append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b", "c"])).unwrap(),
        3
    );
    backend.journal.run_upkeep().unwrap();
    backend.reopen();
    assert_eq!(append_one(&backend.journal, new_append("s", epoch, 3, &["c", "d"])).unwrap(), 4);
    assert_eq!(line_texts(&read_all(&backend.journal, "s", 0)), ["a", "b", "c", "d"]);
}

pub(super) fn each_append_of_a_batch_is_checked_separately(backend: &mut TestBackend) {
    let [a, b, c] = ["a", "b", "c"].map(|it| backend.journal.claim_stream(it).unwrap().epoch);
    let new_b = backend.journal.claim_stream("b").unwrap().epoch;
    let outcomes = backend.journal.append_batch(&[
        new_append("a", a, 1, &["1", "2"]),
        new_append("b", b, 1, &["x"]),
        new_append("c", c, 2, &["x"]),
        crate::AppendRequest { count: 7, ..new_append("a", a, 3, &["x"]) },
        new_append("b", new_b, 1, &["3"]),
        new_append("missing", 1, 1, &["x"]),
        new_append("c", c, 1, &["4"]),
    ]);
    let [Ok(2), fenced, gap, invalid, Ok(1), unknown, Ok(1)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert!(matches!(fenced, Err(AppendError::Fenced { .. })), "{fenced:?}");
    assert!(matches!(gap, Err(AppendError::Gap { .. })), "{gap:?}");
    assert!(matches!(invalid, Err(AppendError::Invalid { .. })), "{invalid:?}");
    assert!(matches!(unknown, Err(AppendError::Fenced { .. })), "{unknown:?}");
    backend.reopen();
    let found = ["a", "b", "c"].map(|it| read_all(&backend.journal, it, 0));
    assert_eq!(line_texts(&found.concat()), ["1", "2", "3", "4"]);
}

pub(super) fn batch_may_append_to_a_stream_several_times(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let outcomes = backend.journal.append_batch(&[
        new_append("s", epoch, 1, &["a"]),
        new_append("s", epoch, 2, &["b", "c"]),
        new_append("s", epoch, 2, &["b", "c", "d"]),
        new_append("s", epoch, 9, &["x"]),
        new_append("s", epoch, 5, &["e"]),
    ]);
    assert!(matches!(outcomes[..], [Ok(1), Ok(3), Ok(4), Err(_), Ok(5)]), "{outcomes:?}");
    assert_eq!(line_texts(&read_all(&backend.journal, "s", 0)), ["a", "b", "c", "d", "e"]);
}

pub(super) fn batch_may_alternate_between_very_many_streams(backend: &mut TestBackend) {
    let names: Vec<_> = (0..200).map(|it| format!("s-{it}")).collect();
    let epochs: Vec<_> =
        names.iter().map(|it| backend.journal.claim_stream(it).unwrap().epoch).collect();
    for round in 0..2 {
        let mut batch = Vec::new();
        for seq in round * 3 + 1..=round * 3 + 3 {
            for (name, epoch) in names.iter().zip(&epochs) {
                batch.push(new_append(name, *epoch, seq, &["x"]));
            }
        }
        let outcomes = backend.journal.append_batch(&batch);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
    for name in &names {
        assert_eq!(event_seqs(&read_all(&backend.journal, name, 0)), [1, 2, 3, 4, 5, 6]);
    }
}

pub(super) fn empty_batch_changes_nothing(backend: &mut TestBackend) {
    assert!(backend.journal.append_batch(&[]).is_empty());
    assert_eq!(backend.journal.list_streams().unwrap(), []);
}

pub(super) fn malformed_append_is_refused(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let valid = new_append("s", epoch, 1, &["a", "b"]);
    let malformed = [
        (crate::AppendRequest { count: 0, ..valid.clone() }, InvalidAppend::Empty),
        (
            crate::AppendRequest { count: 1, ..valid.clone() },
            InvalidAppend::Count { count: 1, lines: 2 },
        ),
        (crate::AppendRequest { first: 0, ..valid.clone() }, InvalidAppend::FirstIsZero),
        (crate::AppendRequest { first: SEQ_MAX, ..valid.clone() }, InvalidAppend::SeqTooLarge),
        (crate::AppendRequest { first: u64::MAX, ..valid.clone() }, InvalidAppend::SeqTooLarge),
        (crate::AppendRequest { stream: stream_name(""), ..valid.clone() }, InvalidAppend::Name),
    ];
    for (append, expected) in malformed {
        let error = append_one(&backend.journal, append).unwrap_err();
        let AppendError::Invalid { source, .. } = error else { panic!("{error}") };
        assert_eq!(source, expected);
    }
    for invalid_name in ["", &"x".repeat(NAME_BYTES_MAX + 1)] {
        assert!(matches!(
            backend.journal.claim_stream(invalid_name),
            Err(AppendError::Invalid { .. })
        ));
        assert!(matches!(
            backend.journal.delete_stream(invalid_name),
            Err(AppendError::Invalid { .. })
        ));
    }
    assert_eq!(append_one(&backend.journal, valid).unwrap(), 2);
}

pub(super) fn latest_summary_replaces_older_ones(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let summary = |backend: &TestBackend| {
        let stream = backend.journal.list_streams().unwrap().remove(0);
        (String::from_utf8(stream.summary.to_vec()).unwrap(), stream.summary_upto)
    };
    assert_eq!(summary(backend), (String::new(), 0));
    append_one(&backend.journal, with_summary(new_append("s", epoch, 1, &["a", "b"]), "one"))
        .unwrap();
    assert_eq!(summary(backend), ("one".into(), 2));
    append_one(&backend.journal, new_append("s", epoch, 3, &["c"])).unwrap();
    assert_eq!(summary(backend), ("one".into(), 2));
    backend.journal.append_batch(&[
        with_summary(new_append("s", epoch, 4, &["d"]), "two"),
        with_summary(new_append("s", epoch, 5, &["e"]), "three"),
    ]);
    backend.reopen();
    assert_eq!(summary(backend), ("three".into(), 5));
    // A refused append does not store its summary.
    append_one(&backend.journal, with_summary(new_append("s", epoch, 9, &["x"]), "no"))
        .unwrap_err();
    append_one(&backend.journal, with_summary(new_append("s", epoch + 1, 6, &["x"]), "no"))
        .unwrap_err();
    assert_eq!(summary(backend), ("three".into(), 5));
}

pub(super) fn retry_does_not_restore_an_older_summary(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let first = with_summary(new_append("s", epoch, 1, &["a"]), "one");
    let second = with_summary(new_append("s", epoch, 2, &["b"]), "two");
    append_one(&backend.journal, first.clone()).unwrap();
    append_one(&backend.journal, second.clone()).unwrap();
    assert_eq!(append_one(&backend.journal, first).unwrap(), 2);
    assert_eq!(backend.journal.list_streams().unwrap()[0].summary, "two");
    assert_eq!(append_one(&backend.journal, second).unwrap(), 2);
    assert_eq!(backend.journal.list_streams().unwrap()[0].summary, "two");
}

pub(super) fn summary_may_be_stored_after_its_events(backend: &mut TestBackend) {
    let epoch = backend.journal.claim_stream("s").unwrap().epoch;
    let summary_only = |first, summary| with_summary(new_append("s", epoch, first, &[]), summary);
    let summary = |backend: &TestBackend| {
        let stream = backend.journal.list_streams().unwrap().remove(0);
        (String::from_utf8(stream.summary.to_vec()).unwrap(), stream.summary_upto, stream.head)
    };
    append_one(&backend.journal, new_append("s", epoch, 1, &["a", "b"])).unwrap();
    assert_eq!(append_one(&backend.journal, summary_only(3, "of two")).unwrap(), 2);
    assert_eq!(summary(backend), ("of two".into(), 2, 2));
    assert_eq!(append_one(&backend.journal, summary_only(2, "of one")).unwrap(), 2);
    assert_eq!(summary(backend), ("of two".into(), 2, 2), "the summary is older");
    let ahead = append_one(&backend.journal, summary_only(4, "of three")).unwrap_err();
    assert!(matches!(ahead, AppendError::Gap { first: 4, head: 2, .. }), "{ahead}");
    backend.journal.claim_stream("s").unwrap();
    let fenced = append_one(&backend.journal, summary_only(3, "of another")).unwrap_err();
    assert!(matches!(fenced, AppendError::Fenced { .. }), "{fenced}");
    backend.reopen();
    assert_eq!(summary(backend), ("of two".into(), 2, 2));
    assert_eq!(line_texts(&read_all(&backend.journal, "s", 0)), ["a", "b"]);
}

pub(super) fn deleted_stream_is_empty_and_not_listed(backend: &mut TestBackend) {
    let count = backend.long_stream_len();
    for stream in ["a", "b", "c"] {
        let epoch = backend.journal.claim_stream(stream).unwrap().epoch;
        for seq in 1..=count {
            append_one(&backend.journal, new_append(stream, epoch, seq, &[stream])).unwrap();
        }
    }
    backend.journal.delete_stream("b").unwrap();
    for round in 0..3 {
        let names: Vec<_> =
            backend.journal.list_streams().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, [stream_name("a"), stream_name("c")]);
        assert_eq!(read_all(&backend.journal, "b", 0), []);
        assert_eq!(read_all(&backend.journal, "a", 0).len() as u64, count);
        assert_eq!(line_texts(&read_all(&backend.journal, "c", count - 2)), ["c", "c"]);
        match round {
            0 => backend.journal.run_upkeep().unwrap(),
            _ => backend.reopen(),
        }
    }
    let new_claim = backend.journal.claim_stream("b").unwrap();
    append_one(&backend.journal, new_append("b", new_claim.epoch, 1, &["new"])).unwrap();
    backend.journal.run_upkeep().unwrap();
    assert_eq!(line_texts(&read_all(&backend.journal, "b", 0)), ["new"]);
}

pub(super) fn deleting_a_missing_stream_succeeds(backend: &mut TestBackend) {
    backend.journal.delete_stream("missing").unwrap();
    backend.journal.claim_stream("s").unwrap();
    backend.journal.delete_stream("s").unwrap();
    backend.journal.delete_stream("s").unwrap();
    assert_eq!(backend.journal.list_streams().unwrap(), []);
}
