//! Appends at full speed until it is killed, and prints what was acknowledged.
//! `tests/killed_writer.rs` starts it.
//!
//! `journal_writer <file> <direct|non-blocking|reopen> <events per append>`
//!
//! Every append goes to the streams `a` and `b` in one batch. It prints one line each: the head at
//! the start, then the last event of every acknowledged append.

use bytes::Bytes;
use jackfield_journal::{
    AppendRequest, DurabilityLevel, Journal, JournalCompletion, NonBlockingJournal,
};
use std::{
    env,
    io::{self, Write as _},
    mem,
    path::Path,
    sync::mpsc,
};

fn main() {
    let args: Vec<_> = env::args().skip(1).collect();
    let [file, mode, events_per_append] = &args[..] else {
        panic!("usage: journal_writer <file> <direct|non-blocking|reopen> <events per append>")
    };
    let events_per_append: u32 = events_per_append.parse().expect("a number of events");
    let mut journal = open_journal(file);
    let claims = ["a", "b"].map(|it| journal.claim_stream(it).expect("the stream can be claimed"));
    assert_eq!(claims[0].head, claims[1].head, "both were always written in one transaction");
    let mut head = claims[0].head;
    print_acknowledgment(head);

    let (tx, completions) = mpsc::sync_channel(1024);
    let mut non_blocking = (mode == "non-blocking").then(|| {
        NonBlockingJournal::start(journal.clone(), move |it| {
            tx.send(it).expect("the main thread receives");
        })
    });
    for round in 1_u64.. {
        let body = make_body(head + 1, events_per_append);
        let append = |stream: &str, epoch| AppendRequest {
            stream: stream.into(),
            epoch,
            first: head + 1,
            count: events_per_append,
            body: body.clone(),
            summary: Some(Bytes::from(head.to_string())),
        };
        let batch = vec![append("a", claims[0].epoch), append("b", claims[1].epoch)];
        if let Some(non_blocking) = &mut non_blocking {
            let mut finished = non_blocking.append_batch(batch);
            while finished.len() < 2 {
                finished.push(completions.recv().expect("the threads are running"));
            }
            let all_appended =
                finished.iter().all(|it| matches!(it, JournalCompletion::Appended { .. }));
            assert!(all_appended, "{finished:?}");
        } else {
            let outcomes = journal.append_batch(&batch);
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        }
        head += u64::from(events_per_append);
        print_acknowledgment(head);
        match &**mode {
            "direct" if round.is_multiple_of(16) => journal.run_upkeep().expect("upkeep works"),
            // Closing the last connection checkpoints the WAL.
            "reopen" if round.is_multiple_of(4) => {
                drop(mem::replace(&mut journal, Journal::in_memory()));
                journal = open_journal(file);
            }
            _ => {}
        }
    }
}

fn open_journal(file: &str) -> Journal {
    Journal::open(Path::new(file), DurabilityLevel::Process).expect("the journal opens")
}

/// Events that contain their sequence number, of very different lengths.
fn make_body(first: u64, count: u32) -> Bytes {
    let line = |seq: u64| {
        let len = if seq.is_multiple_of(501) {
            300_000
        } else {
            usize::try_from(seq * 37 % 900).unwrap_or(0)
        };
        format!(r#"{{"seq":{seq},"pad":"{}"}}"#, "x".repeat(len))
    };
    let lines: Vec<_> = (first..first + u64::from(count)).map(line).collect();
    Bytes::from(lines.join("\n"))
}

/// Writes without a buffer, so that a killed writer has printed all its acknowledgments.
fn print_acknowledgment(head: u64) {
    let line = format!("{head}\n");
    io::stdout().write_all(line.as_bytes()).expect("stdout is open");
}
