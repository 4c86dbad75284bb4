//! Appends at full speed until it is killed, and says what was acknowledged: the other half of
//! `tests/crash.rs`.
//!
//! `journal_writer <file> <direct|port|reopen> <events per append>`
//!
//! Every append goes to the streams `a` and `b` in one batch. On stdout, one line each: the head
//! it starts from, then the last event of every acknowledged append.

use bytes::Bytes;
use jackfield_journal::{Append, Done, Durability, Journal, Port};
use std::{
    env,
    io::{self, Write as _},
    mem,
    path::Path,
    sync::mpsc,
};

fn main() {
    let args: Vec<_> = env::args().skip(1).collect();
    let [file, way, per_append] = &args[..] else {
        panic!("usage: journal_writer <file> <direct|port|reopen> <events per append>")
    };
    let per_append: u32 = per_append.parse().expect("a number of events");
    let mut journal = open(file);
    let claims = ["a", "b"].map(|it| journal.claim(it).expect("the stream can be claimed"));
    assert_eq!(claims[0].head, claims[1].head, "both were always written in one transaction");
    let mut head = claims[0].head;
    acknowledge(head);

    let (tell, done) = mpsc::sync_channel(1024);
    let mut port = (way == "port").then(|| {
        Port::start(journal.clone(), move |it| tell.send(it).expect("the main thread listens"))
    });
    for round in 1_u64.. {
        let body = body(head + 1, per_append);
        let append = |stream: &str, epoch| Append {
            stream: stream.into(),
            epoch,
            first: head + 1,
            count: per_append,
            body: body.clone(),
            summary: Some(Bytes::from(head.to_string())),
        };
        let batch = vec![append("a", claims[0].epoch), append("b", claims[1].epoch)];
        if let Some(port) = &mut port {
            let mut finished = port.append(batch);
            while finished.len() < 2 {
                finished.push(done.recv().expect("the threads live"));
            }
            let good = finished.iter().all(|it| matches!(it, Done::Appended { .. }));
            assert!(good, "{finished:?}");
        } else {
            let outcomes = journal.append(&batch);
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        }
        head += u64::from(per_append);
        acknowledge(head);
        match &**way {
            "direct" if round.is_multiple_of(16) => journal.upkeep().expect("upkeep works"),
            // The last one to close the file copies the WAL into it.
            "reopen" if round.is_multiple_of(4) => {
                drop(mem::replace(&mut journal, Journal::memory()));
                journal = open(file);
            }
            _ => {}
        }
    }
}

fn open(file: &str) -> Journal {
    Journal::open(Path::new(file), Durability::Process).expect("the journal opens")
}

/// Events that say their own number, of very different lengths.
fn body(first: u64, count: u32) -> Bytes {
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

/// One write, no buffer: what was said before the end was said.
fn acknowledge(head: u64) {
    let line = format!("{head}\n");
    io::stdout().write_all(line.as_bytes()).expect("somebody listens");
}
