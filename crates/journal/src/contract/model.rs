//! Random operations on random streams, compared with lists of lines.

use super::{World, append, name, with_summary};
use crate::{Append, AppendError, Claim, Event, Stream};
use bytes::Bytes;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Op {
    Claim { stream: usize },
    Append(Vec<Write>),
    Read { stream: usize, after: u64, events_max: usize, bytes_max: usize },
    List,
    Delete { stream: usize },
    Upkeep,
    Reopen,
}

/// One append: how far it is from the stream's epoch and head, and what it carries.
#[derive(Debug, Clone)]
struct Write {
    stream: usize,
    epochs_behind: u64,
    offset: i64,
    lines: Vec<usize>,
    summary: Option<u8>,
}

const NAMES: [&str; 4] = ["a", "b'", "日本", "a\0"];

#[derive(Default)]
struct Model {
    streams: BTreeMap<&'static str, Kept>,
    /// The highest epoch that each name ever had.
    epochs: BTreeMap<&'static str, u64>,
    /// Lines made so far: no two of them are alike.
    made: usize,
}

#[derive(Default, Clone)]
struct Kept {
    epoch: u64,
    lines: Vec<String>,
    summary: String,
    summary_upto: u64,
}

/// Sizes around the limit of a record are rare but there.
fn line() -> impl Strategy<Value = usize> {
    prop_oneof![40 => 0..40_usize, 2 => 1_000..9_000_usize, 1 => 262_100..262_200_usize]
}

fn write() -> impl Strategy<Value = Write> {
    let lines = proptest::collection::vec(line(), 0..6);
    let behind = prop_oneof![9 => Just(0), 1 => 1..3_u64];
    let offset = prop_oneof![8 => Just(1), 2 => -3..4_i64];
    let summary = proptest::option::of(any::<u8>());
    (0..NAMES.len(), behind, offset, lines, summary).prop_map(
        |(stream, epochs_behind, offset, lines, summary)| Write {
            stream,
            epochs_behind,
            offset,
            lines,
            summary,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let stream = 0..NAMES.len();
    let read = (stream.clone(), 0..60_u64, 0..30_usize, prop_oneof![0..300_usize, Just(1 << 30)]);
    prop_oneof![
        3 => stream.clone().prop_map(|stream| Op::Claim { stream }),
        12 => proptest::collection::vec(write(), 1..4).prop_map(Op::Append),
        8 => read.prop_map(|(stream, after, events_max, bytes_max)| {
            Op::Read { stream, after, events_max, bytes_max }
        }),
        1 => Just(Op::List),
        1 => stream.prop_map(|stream| Op::Delete { stream }),
        2 => Just(Op::Upkeep),
        1 => Just(Op::Reopen),
    ]
}

impl Model {
    /// Takes over what a claim gave: which epoch is the journal's business, if it is a higher one.
    fn claim(&mut self, stream: usize, claim: Claim) {
        let former = self.epochs.insert(NAMES[stream], claim.epoch);
        assert!(former < Some(claim.epoch));
        let kept = self.streams.entry(NAMES[stream]).or_default();
        kept.epoch = claim.epoch;
        assert_eq!(claim.head, kept.lines.len() as u64);
    }

    fn delete(&mut self, stream: usize) {
        self.streams.remove(NAMES[stream]);
    }

    fn append_of(&mut self, write: &Write) -> Append {
        let kept = self.streams.get(NAMES[write.stream]).cloned().unwrap_or_default();
        let first = (kept.lines.len() as u64).saturating_add_signed(write.offset).max(1);
        let mut line = |&size: &usize| {
            self.made += 1;
            if size == 0 { String::new() } else { format!("{}{}", self.made, " ".repeat(size)) }
        };
        let lines: Vec<_> = write.lines.iter().map(&mut line).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let epoch = kept.epoch.saturating_sub(write.epochs_behind);
        let append = append(NAMES[write.stream], epoch, first, &lines);
        match write.summary.or(lines.is_empty().then_some(0)) {
            Some(summary) => with_summary(append, &summary.to_string()),
            None => append,
        }
    }

    /// What the journal must say; the model changes alike.
    fn append(&mut self, append: &Append) -> Result<u64, &'static str> {
        let kept = self.streams.get_mut(&*append.stream);
        let kept = kept.filter(|it| it.epoch == append.epoch).ok_or("fenced")?;
        let head = kept.lines.len() as u64;
        if head + 1 < append.first {
            return Err("gap");
        }
        let body = std::str::from_utf8(&append.body).unwrap();
        for (seq, line) in (append.first..=append.last()).zip(body.split('\n')) {
            if kept.lines.len() as u64 + 1 == seq {
                kept.lines.push(line.to_owned());
            }
        }
        if let Some(summary) = &append.summary
            && kept.summary_upto <= append.last()
        {
            kept.summary = std::str::from_utf8(summary).unwrap().to_owned();
            kept.summary_upto = append.last();
        }
        Ok(kept.lines.len() as u64)
    }

    fn read(&self, stream: usize, after: u64, events_max: usize, bytes_max: usize) -> Vec<Event> {
        let none = Vec::new();
        let lines = self.streams.get(NAMES[stream]).map_or(&none, |it| &it.lines);
        let mut bytes = 0;
        let rest = (1..).zip(lines).skip(usize::try_from(after).unwrap());
        let wanted = rest.enumerate().take_while(|(index, (_, line))| {
            bytes += line.len();
            *index == 0 || (*index < events_max && bytes <= bytes_max)
        });
        wanted.map(|(_, (seq, line))| Event { seq, line: Bytes::from(line.clone()) }).collect()
    }

    fn list(&self) -> Vec<Stream> {
        let stream = |(stream, kept): (&&str, &Kept)| Stream {
            name: name(stream),
            epoch: kept.epoch,
            head: kept.lines.len() as u64,
            summary: kept.summary.clone().into(),
            summary_upto: kept.summary_upto,
        };
        self.streams.iter().map(stream).collect()
    }
}

fn step(world: &mut World, model: &mut Model, op: &Op) {
    match op {
        Op::Claim { stream } => {
            model.claim(*stream, world.journal.claim(NAMES[*stream]).unwrap());
        }
        Op::Append(writes) => {
            let batch: Vec<_> = writes.iter().map(|it| model.append_of(it)).collect();
            let outcomes = world.journal.append(&batch);
            assert_eq!(outcomes.len(), batch.len());
            for (append, outcome) in batch.iter().zip(outcomes) {
                let outcome = outcome.map_err(|error| match error {
                    AppendError::Fenced { .. } => "fenced",
                    AppendError::Gap { .. } => "gap",
                    other => panic!("{other}"),
                });
                assert_eq!(outcome, model.append(append));
            }
        }
        &Op::Read { stream, after, events_max, bytes_max } => {
            let found = world.journal.read(NAMES[stream], after, events_max, bytes_max).unwrap();
            assert!(found == model.read(stream, after, events_max, bytes_max), "another answer");
        }
        Op::List => assert_eq!(world.journal.streams().unwrap(), model.list()),
        Op::Delete { stream } => {
            world.journal.delete(NAMES[*stream]).unwrap();
            model.delete(*stream);
        }
        Op::Upkeep => world.journal.upkeep().unwrap(),
        Op::Reopen => world.reopen(),
    }
}

pub(super) fn a_journal_is_like_a_list_of_lines(world: &mut World) {
    let cases = world.cases();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = proptest::collection::vec(op(), 1..60);
    let run = |ops: Vec<Op>| {
        let mut world = world.fresh();
        let mut model = Model::default();
        for op in ops.iter().chain([&Op::List, &Op::Upkeep, &Op::List]) {
            step(&mut world, &mut model, op);
        }
        for stream in 0..NAMES.len() {
            let all = Op::Read { stream, after: 0, events_max: usize::MAX, bytes_max: usize::MAX };
            step(&mut world, &mut model, &all);
        }
        Ok(())
    };
    if let Err(error) = TestRunner::new(config).run(&ops, run) {
        panic!("{error}");
    }
}
