//! Copies a stream on a thread of its own, one slice at a time, so that a long copy does not delay
//! other appends. The caller decides how each line is rewritten.

use super::JournalCompletion;
use crate::{
    error::CopyError,
    journal::Journal,
    record::{AppendRequest, StoredEvent},
};
use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::Receiver,
};

/// The limits of one slice, which occupies the writer.
const SLICE_EVENTS_MAX: usize = 2048;
const SLICE_BYTES_MAX: usize = if cfg!(test) { 64 } else { 1024 * 1024 };

/// Rewrites the lines of a stream for its copy.
pub trait LineTranslator: Send {
    /// The summary of an incomplete copy. It identifies a copy that a crash interrupted.
    fn unfinished_summary(&self) -> Bytes;

    /// Writes the next line of the copy, or returns why the line cannot be translated.
    fn translate_line(&mut self, event: &StoredEvent, out: &mut Vec<u8>) -> Result<(), String>;

    /// Writes one more line after the last, and returns the summary of the complete copy.
    fn finish(&mut self, out: &mut Vec<u8>) -> Bytes;
}

pub(super) struct CopyRequest {
    pub(super) from: Arc<str>,
    pub(super) upto: u64,
    pub(super) to: Arc<str>,
    pub(super) translator: Box<dyn LineTranslator>,
}

pub(super) fn run_copier(
    journal: &Journal,
    copies: &Receiver<CopyRequest>,
    is_closing: &AtomicBool,
    on_completion: &(dyn Fn(JournalCompletion) + Send + Sync),
) {
    for mut copy in copies {
        let result = copy.run(journal, is_closing);
        on_completion(match result {
            Ok(summary) => JournalCompletion::Copied { stream: copy.to, summary },
            Err(error) => {
                if !matches!(error, CopyError::AlreadyExists { .. }) {
                    // If the deletion fails, the summary still marks the copy as unfinished.
                    let _ = journal.delete_stream(&copy.to);
                }
                JournalCompletion::CopyFailed { stream: copy.to, error }
            }
        });
    }
}

impl CopyRequest {
    /// Returns the summary of the complete copy.
    fn run(&mut self, journal: &Journal, is_closing: &AtomicBool) -> Result<Bytes, CopyError> {
        let claim = journal.claim_stream(&self.to)?;
        if claim.head != 0 {
            return Err(CopyError::AlreadyExists { stream: self.to.clone() });
        }
        let mut head = 0;
        while head < self.upto {
            if is_closing.load(Ordering::Relaxed) {
                return Err(CopyError::Closing { stream: self.from.clone() });
            }
            let summary = (head == 0).then(|| self.translator.unfinished_summary());
            let (count, body) = self.translate_slice(journal, head)?;
            self.append_lines(journal, claim.epoch, head + 1, count, body, summary)?;
            head += u64::from(count);
        }
        let mut last_line = Vec::new();
        let summary = self.translator.finish(&mut last_line);
        self.append_lines(journal, claim.epoch, head + 1, 1, last_line, Some(summary.clone()))?;
        Ok(summary)
    }

    /// Reads the next lines after `head`, and none after the last that is copied.
    fn read_slice(&self, journal: &Journal, head: u64) -> Result<Vec<StoredEvent>, CopyError> {
        let rest = usize::try_from(self.upto - head).unwrap_or(usize::MAX);
        let events_max = SLICE_EVENTS_MAX.min(rest);
        Ok(journal.read_events(&self.from, head, events_max, SLICE_BYTES_MAX)?)
    }

    /// Reads and translates the next lines after `head`, and joins them as the body of a record.
    fn translate_slice(
        &mut self,
        journal: &Journal,
        head: u64,
    ) -> Result<(u32, Vec<u8>), CopyError> {
        let (mut count, mut body) = (0, Vec::new());
        for event in &self.read_slice(journal, head)? {
            if count != 0 {
                body.push(b'\n');
            }
            let (stream, seq) = (&self.from, event.seq);
            let failed = |reason| CopyError::Untranslatable { stream: stream.clone(), seq, reason };
            self.translator.translate_line(event, &mut body).map_err(failed)?;
            count += 1;
        }
        if count == 0 {
            let (stream, upto) = (self.from.clone(), self.upto);
            return Err(CopyError::Short { stream, head, upto });
        }
        Ok((count, body))
    }

    fn append_lines(
        &self,
        journal: &Journal,
        epoch: u64,
        first: u64,
        count: u32,
        body: Vec<u8>,
        summary: Option<Bytes>,
    ) -> Result<(), CopyError> {
        let stream = self.to.clone();
        let append = AppendRequest { stream, epoch, first, count, body: body.into(), summary };
        let outcomes = journal.append_batch(&[append]);
        outcomes.into_iter().try_for_each(|it| it.map(drop)).map_err(CopyError::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NonBlockingJournal;
    use std::{sync::mpsc, time::Duration};

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Writes lines in upper case and refuses one of them.
    struct UppercaseTranslator {
        refused_line: &'static str,
    }

    impl LineTranslator for UppercaseTranslator {
        fn unfinished_summary(&self) -> Bytes {
            Bytes::from_static(b"unfinished")
        }

        fn translate_line(&mut self, event: &StoredEvent, out: &mut Vec<u8>) -> Result<(), String> {
            let line = String::from_utf8_lossy(&event.line).to_uppercase();
            if line == self.refused_line {
                return Err("no".to_owned());
            }
            out.extend_from_slice(line.as_bytes());
            Ok(())
        }

        fn finish(&mut self, out: &mut Vec<u8>) -> Bytes {
            out.extend_from_slice(b"END");
            Bytes::from_static(b"whole")
        }
    }

    fn write_source(journal: &Journal, count: u32) {
        let epoch = journal.claim_stream("a").unwrap().epoch;
        for first in 1..=u64::from(count) {
            let (stream, body) = ("a".into(), format!("line {first}").into());
            let append = AppendRequest { stream, epoch, first, count: 1, body, summary: None };
            journal.append_batch(&[append]).remove(0).unwrap();
        }
    }

    fn copy_stream(journal: &Journal, upto: u64, refused_line: &'static str) -> JournalCompletion {
        let (tx, completions) = mpsc::sync_channel(10);
        let non_blocking =
            NonBlockingJournal::start(journal.clone(), move |it| tx.send(it).unwrap());
        let translator = Box::new(UppercaseTranslator { refused_line });
        assert!(non_blocking.start_copy("a".into(), upto, "b".into(), translator).is_none());
        let completion = completions.recv_timeout(TIMEOUT).unwrap();
        non_blocking.stop();
        completion
    }

    fn copied_lines(journal: &Journal) -> Vec<String> {
        let events = journal.read_events("b", 0, 1000, 100_000).unwrap();
        events.iter().map(|it| String::from_utf8_lossy(&it.line).into_owned()).collect()
    }

    #[test]
    fn copy_contains_the_lines_up_to_the_limit_and_one_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.db");
        let sqlite = Journal::open(&path, crate::DurabilityLevel::Process).unwrap();
        for journal in [Journal::in_memory(), sqlite] {
            write_source(&journal, 100);
            let JournalCompletion::Copied { stream, summary } = copy_stream(&journal, 70, "")
            else {
                panic!()
            };
            assert_eq!((&*stream, &summary[..]), ("b", &b"whole"[..]));
            let lines = copied_lines(&journal);
            assert_eq!(lines.len(), 71);
            assert_eq!((&*lines[0], &*lines[69], &*lines[70]), ("LINE 1", "LINE 70", "END"));
            let streams = journal.list_streams().unwrap();
            assert_eq!((&*streams[1].summary, streams[1].summary_upto), (&b"whole"[..], 71));
        }
    }

    #[test]
    fn copy_does_not_read_events_after_the_last_one_that_it_contains() {
        let journal = Journal::in_memory();
        write_source(&journal, 100);
        let translator = Box::new(UppercaseTranslator { refused_line: "" });
        let copy = CopyRequest { from: "a".into(), upto: 3, to: "b".into(), translator };
        let read: Vec<u64> =
            copy.read_slice(&journal, 1).unwrap().iter().map(|it| it.seq).collect();
        assert_eq!(read, [2, 3]);
    }

    #[test]
    fn failed_copy_is_deleted() {
        let journal = Journal::in_memory();
        write_source(&journal, 100);
        let JournalCompletion::CopyFailed { error, .. } = copy_stream(&journal, 100, "LINE 50")
        else {
            panic!()
        };
        assert!(matches!(error, CopyError::Untranslatable { seq: 50, .. }), "{error}");
        assert_eq!(journal.list_streams().unwrap().len(), 1);
    }

    #[test]
    fn copy_fails_if_the_source_ends_too_early() {
        let journal = Journal::in_memory();
        write_source(&journal, 5);
        let JournalCompletion::CopyFailed { error, .. } = copy_stream(&journal, 6, "") else {
            panic!()
        };
        assert!(matches!(error, CopyError::Short { head: 5, upto: 6, .. }), "{error}");
        assert_eq!(journal.list_streams().unwrap().len(), 1);
    }

    #[test]
    fn copy_does_not_overwrite_an_existing_stream() {
        let journal = Journal::in_memory();
        write_source(&journal, 5);
        assert!(matches!(copy_stream(&journal, 5, ""), JournalCompletion::Copied { .. }));
        let JournalCompletion::CopyFailed { error, .. } = copy_stream(&journal, 2, "") else {
            panic!()
        };
        assert!(matches!(error, CopyError::AlreadyExists { .. }), "{error}");
        assert_eq!(copied_lines(&journal).len(), 6);
    }

    #[test]
    fn interrupted_copy_has_the_summary_of_an_unfinished_one() {
        let journal = Journal::in_memory();
        write_source(&journal, 100);
        let translator = Box::new(UppercaseTranslator { refused_line: "LINE 50" });
        let mut copy = CopyRequest { from: "a".into(), upto: 100, to: "b".into(), translator };
        // Without the copier thread nothing deletes the rest, as after a crash.
        copy.run(&journal, &AtomicBool::new(false)).unwrap_err();
        let streams = journal.list_streams().unwrap();
        assert!(0 < streams[1].head);
        assert_eq!(&streams[1].summary[..], b"unfinished");
    }

    #[test]
    fn copy_stops_when_the_journal_closes() {
        let journal = Journal::in_memory();
        write_source(&journal, 100);
        let translator = Box::new(UppercaseTranslator { refused_line: "" });
        let mut copy = CopyRequest { from: "a".into(), upto: 100, to: "b".into(), translator };
        let error = copy.run(&journal, &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, CopyError::Closing { .. }), "{error}");
    }
}
