//! Applies random operations to random streams and compares the journal with lists of lines.

use super::{TestBackend, new_append, stream_name, with_summary};
use crate::{AppendError, AppendRequest, StoredEvent, StreamClaim, StreamInfo};
use bytes::Bytes;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum JournalOperation {
    Claim { stream: usize },
    Append(Vec<PlannedAppend>),
    Read { stream: usize, after: u64, events_max: usize, bytes_max: usize },
    List,
    Delete { stream: usize },
    Upkeep,
    Reopen,
}

/// One append, relative to the epoch and the head of its stream.
#[derive(Debug, Clone)]
struct PlannedAppend {
    stream: usize,
    epochs_behind: u64,
    offset: i64,
    lines: Vec<usize>,
    summary: Option<u8>,
}

const NAMES: [&str; 4] = ["a", "b'", "日本", "a\0"];

#[derive(Default)]
struct JournalModel {
    streams: BTreeMap<&'static str, ModelStream>,
    /// The highest epoch of each name so far.
    epochs: BTreeMap<&'static str, u64>,
    /// The number of lines made so far, which makes each line unique.
    lines_made: usize,
}

#[derive(Default, Clone)]
struct ModelStream {
    epoch: u64,
    lines: Vec<String>,
    summary: String,
    summary_upto: u64,
}

/// Sizes around the limit of a record are rare but possible.
fn line_len() -> impl Strategy<Value = usize> {
    prop_oneof![40 => 0..40_usize, 2 => 1_000..9_000_usize, 1 => 262_100..262_200_usize]
}

fn planned_append() -> impl Strategy<Value = PlannedAppend> {
    let lines = proptest::collection::vec(line_len(), 0..6);
    let behind = prop_oneof![9 => Just(0), 1 => 1..3_u64];
    let offset = prop_oneof![8 => Just(1), 2 => -3..4_i64];
    let summary = proptest::option::of(any::<u8>());
    (0..NAMES.len(), behind, offset, lines, summary).prop_map(
        |(stream, epochs_behind, offset, lines, summary)| PlannedAppend {
            stream,
            epochs_behind,
            offset,
            lines,
            summary,
        },
    )
}

fn operation() -> impl Strategy<Value = JournalOperation> {
    let stream = 0..NAMES.len();
    let expected_events =
        (stream.clone(), 0..60_u64, 0..30_usize, prop_oneof![0..300_usize, Just(1 << 30)]);
    prop_oneof![
        3 => stream.clone().prop_map(|stream| JournalOperation::Claim { stream }),
        12 => proptest::collection::vec(planned_append(), 1..4).prop_map(JournalOperation::Append),
        8 => expected_events.prop_map(|(stream, after, events_max, bytes_max)| {
            JournalOperation::Read { stream, after, events_max, bytes_max }
        }),
        1 => Just(JournalOperation::List),
        1 => stream.prop_map(|stream| JournalOperation::Delete { stream }),
        2 => Just(JournalOperation::Upkeep),
        1 => Just(JournalOperation::Reopen),
    ]
}

impl JournalModel {
    /// The journal chooses the epoch; it must be higher than the previous one.
    fn apply_claim(&mut self, stream: usize, claim: StreamClaim) {
        let previous = self.epochs.insert(NAMES[stream], claim.epoch);
        assert!(previous < Some(claim.epoch));
        let stored = self.streams.entry(NAMES[stream]).or_default();
        stored.epoch = claim.epoch;
        assert_eq!(claim.head, stored.lines.len() as u64);
    }

    fn apply_delete(&mut self, stream: usize) {
        self.streams.remove(NAMES[stream]);
    }

    fn make_append(&mut self, plan: &PlannedAppend) -> AppendRequest {
        let stored = self.streams.get(NAMES[plan.stream]).cloned().unwrap_or_default();
        let first = (stored.lines.len() as u64).saturating_add_signed(plan.offset).max(1);
        let mut make_line = |&size: &usize| {
            self.lines_made += 1;
            if size == 0 {
                String::new()
            } else {
                format!("{}{}", self.lines_made, " ".repeat(size))
            }
        };
        let lines: Vec<_> = plan.lines.iter().map(&mut make_line).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let epoch = stored.epoch.saturating_sub(plan.epochs_behind);
        let append = new_append(NAMES[plan.stream], epoch, first, &lines);
        match plan.summary.or(lines.is_empty().then_some(0)) {
            Some(summary) => with_summary(append, &summary.to_string()),
            None => append,
        }
    }

    /// Applies an append to the model. Returns the expected result.
    fn apply_append(&mut self, append: &AppendRequest) -> Result<u64, &'static str> {
        let stored = self.streams.get_mut(&*append.stream);
        let stored = stored.filter(|it| it.epoch == append.epoch).ok_or("fenced")?;
        let head = stored.lines.len() as u64;
        if head + 1 < append.first {
            return Err("gap");
        }
        let body = std::str::from_utf8(&append.body).unwrap();
        for (seq, line) in (append.first..=append.last_seq()).zip(body.split('\n')) {
            if stored.lines.len() as u64 + 1 == seq {
                stored.lines.push(line.to_owned());
            }
        }
        if let Some(summary) = &append.summary
            && stored.summary_upto <= append.last_seq()
        {
            stored.summary = std::str::from_utf8(summary).unwrap().to_owned();
            stored.summary_upto = append.last_seq();
        }
        Ok(stored.lines.len() as u64)
    }

    fn expected_events(
        &self,
        stream: usize,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Vec<StoredEvent> {
        let none = Vec::new();
        let lines = self.streams.get(NAMES[stream]).map_or(&none, |it| &it.lines);
        let mut bytes = 0;
        let rest = (1..).zip(lines).skip(usize::try_from(after).unwrap());
        let wanted = rest.enumerate().take_while(|(index, (_, line))| {
            bytes += line.len();
            *index == 0 || (*index < events_max && bytes <= bytes_max)
        });
        wanted
            .map(|(_, (seq, line))| StoredEvent { seq, line: Bytes::from(line.clone()) })
            .collect()
    }

    fn expected_streams(&self) -> Vec<StreamInfo> {
        let stream = |(stream, stored): (&&str, &ModelStream)| StreamInfo {
            name: stream_name(stream),
            epoch: stored.epoch,
            head: stored.lines.len() as u64,
            summary: stored.summary.clone().into(),
            summary_upto: stored.summary_upto,
        };
        self.streams.iter().map(stream).collect()
    }
}

fn apply_operation(
    backend: &mut TestBackend,
    model: &mut JournalModel,
    operation: &JournalOperation,
) {
    match operation {
        JournalOperation::Claim { stream } => {
            model.apply_claim(*stream, backend.journal.claim_stream(NAMES[*stream]).unwrap());
        }
        JournalOperation::Append(writes) => {
            let batch: Vec<_> = writes.iter().map(|it| model.make_append(it)).collect();
            let outcomes = backend.journal.append_batch(&batch);
            assert_eq!(outcomes.len(), batch.len());
            for (append, outcome) in batch.iter().zip(outcomes) {
                let outcome = outcome.map_err(|error| match error {
                    AppendError::Fenced { .. } => "fenced",
                    AppendError::Gap { .. } => "gap",
                    other => panic!("{other}"),
                });
                assert_eq!(outcome, model.apply_append(append));
            }
        }
        &JournalOperation::Read { stream, after, events_max, bytes_max } => {
            let found =
                backend.journal.read_events(NAMES[stream], after, events_max, bytes_max).unwrap();
            assert!(
                found == model.expected_events(stream, after, events_max, bytes_max),
                "the events differ from the model"
            );
        }
        JournalOperation::List => {
            assert_eq!(backend.journal.list_streams().unwrap(), model.expected_streams());
        }
        JournalOperation::Delete { stream } => {
            backend.journal.delete_stream(NAMES[*stream]).unwrap();
            model.apply_delete(*stream);
        }
        JournalOperation::Upkeep => backend.journal.run_upkeep().unwrap(),
        JournalOperation::Reopen => backend.reopen(),
    }
}

pub(super) fn journal_behaves_like_a_list_of_lines(backend: &mut TestBackend) {
    let cases = backend.case_count();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let operations = proptest::collection::vec(operation(), 1..60);
    let run = |operations: Vec<JournalOperation>| {
        let mut backend = backend.create_empty();
        let mut model = JournalModel::default();
        for operation in operations.iter().chain([
            &JournalOperation::List,
            &JournalOperation::Upkeep,
            &JournalOperation::List,
        ]) {
            apply_operation(&mut backend, &mut model, operation);
        }
        for stream in 0..NAMES.len() {
            let all = JournalOperation::Read {
                stream,
                after: 0,
                events_max: usize::MAX,
                bytes_max: usize::MAX,
            };
            apply_operation(&mut backend, &mut model, &all);
        }
        Ok(())
    };
    if let Err(error) = TestRunner::new(config).run(&operations, run) {
        panic!("{error}");
    }
}
