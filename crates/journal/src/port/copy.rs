//! Copying a stream, on a thread of its own, a slice at a time: a long one must not keep the others
//! waiting. What becomes of each line is the caller's business.

use super::Done;
use crate::{
    error::CopyError,
    journal::Journal,
    record::{Append, Event},
};
use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::Receiver,
};

/// One slice: what the writer is kept busy with at once.
const SLICE_EVENTS: usize = 2048;
const SLICE_BYTES: usize = if cfg!(test) { 64 } else { 1024 * 1024 };

/// How the lines of a stream are written into its copy.
pub trait Translate: Send {
    /// The summary of a copy that is not whole: whoever finds it after a crash knows what it is.
    fn unfinished(&self) -> Bytes;

    /// Writes the next line as the copy shall have it, or says why it cannot.
    fn line(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), String>;

    /// Writes one more line behind the last, and gives the summary of the whole.
    fn end(&mut self, out: &mut Vec<u8>) -> Bytes;
}

pub(super) struct Copy {
    pub(super) from: Arc<str>,
    pub(super) upto: u64,
    pub(super) to: Arc<str>,
    pub(super) translate: Box<dyn Translate>,
}

pub(super) fn copy(
    journal: &Journal,
    copies: &Receiver<Copy>,
    closing: &AtomicBool,
    on_done: &(dyn Fn(Done) + Send + Sync),
) {
    for mut copy in copies {
        let made = copy.make(journal, closing);
        on_done(match made {
            Ok(summary) => Done::Copied { stream: copy.to, summary },
            Err(error) => {
                if !matches!(error, CopyError::Taken { .. }) {
                    // What stays behind says that it is unfinished.
                    let _ = journal.delete(&copy.to);
                }
                Done::CopyFailed { stream: copy.to, error }
            }
        });
    }
}

impl Copy {
    /// Returns the summary of the whole.
    fn make(&mut self, journal: &Journal, closing: &AtomicBool) -> Result<Bytes, CopyError> {
        let claim = journal.claim(&self.to)?;
        if claim.head != 0 {
            return Err(CopyError::Taken { stream: self.to.clone() });
        }
        let mut head = 0;
        while head < self.upto {
            if closing.load(Ordering::Relaxed) {
                return Err(CopyError::Closing { stream: self.from.clone() });
            }
            let summary = (head == 0).then(|| self.translate.unfinished());
            let (count, body) = self.slice(journal, head)?;
            self.append(journal, claim.epoch, head + 1, count, body, summary)?;
            head += u64::from(count);
        }
        let mut last = Vec::new();
        let summary = self.translate.end(&mut last);
        self.append(journal, claim.epoch, head + 1, 1, last, Some(summary.clone()))?;
        Ok(summary)
    }

    /// The next lines after `head`, joined as a record has them.
    fn slice(&mut self, journal: &Journal, head: u64) -> Result<(u32, Vec<u8>), CopyError> {
        let events = journal.read(&self.from, head, SLICE_EVENTS, SLICE_BYTES)?;
        let (mut count, mut body) = (0, Vec::new());
        for event in events.iter().take_while(|it| it.seq <= self.upto) {
            if count != 0 {
                body.push(b'\n');
            }
            let (stream, seq) = (&self.from, event.seq);
            let untold = |why| CopyError::Untold { stream: stream.clone(), seq, why };
            self.translate.line(event, &mut body).map_err(untold)?;
            count += 1;
        }
        if count == 0 {
            let (stream, upto) = (self.from.clone(), self.upto);
            return Err(CopyError::Short { stream, head, upto });
        }
        Ok((count, body))
    }

    fn append(
        &self,
        journal: &Journal,
        epoch: u64,
        first: u64,
        count: u32,
        body: Vec<u8>,
        summary: Option<Bytes>,
    ) -> Result<(), CopyError> {
        let stream = self.to.clone();
        let append = Append { stream, epoch, first, count, body: body.into(), summary };
        let outcomes = journal.append(&[append]);
        outcomes.into_iter().try_for_each(|it| it.map(drop)).map_err(CopyError::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Port;
    use std::{sync::mpsc, time::Duration};

    const SOON: Duration = Duration::from_secs(30);

    /// Shouts; stops at a line it does not like.
    struct Loud {
        refuses: &'static str,
    }

    impl Translate for Loud {
        fn unfinished(&self) -> Bytes {
            Bytes::from_static(b"unfinished")
        }

        fn line(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), String> {
            let line = String::from_utf8_lossy(&event.line).to_uppercase();
            if line == self.refuses {
                return Err("no".to_owned());
            }
            out.extend_from_slice(line.as_bytes());
            Ok(())
        }

        fn end(&mut self, out: &mut Vec<u8>) -> Bytes {
            out.extend_from_slice(b"END");
            Bytes::from_static(b"whole")
        }
    }

    fn source(journal: &Journal, count: u32) {
        let epoch = journal.claim("a").unwrap().epoch;
        for first in 1..=u64::from(count) {
            let (stream, body) = ("a".into(), format!("line {first}").into());
            let append = Append { stream, epoch, first, count: 1, body, summary: None };
            journal.append(&[append]).remove(0).unwrap();
        }
    }

    fn copied(journal: &Journal, upto: u64, refuses: &'static str) -> Done {
        let (tx, done) = mpsc::sync_channel(10);
        let port = Port::start(journal.clone(), move |it| tx.send(it).unwrap());
        let loud = Box::new(Loud { refuses });
        assert!(port.copy("a".into(), upto, "b".into(), loud).is_none());
        let done = done.recv_timeout(SOON).unwrap();
        port.stop();
        done
    }

    fn lines(journal: &Journal) -> Vec<String> {
        let events = journal.read("b", 0, 1000, 100_000).unwrap();
        events.iter().map(|it| String::from_utf8_lossy(&it.line).into_owned()).collect()
    }

    #[test]
    fn a_copy_has_the_lines_up_to_the_one_named_and_one_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.db");
        let sqlite = Journal::open(&path, crate::Durability::Process).unwrap();
        for journal in [Journal::memory(), sqlite] {
            source(&journal, 100);
            let Done::Copied { stream, summary } = copied(&journal, 70, "") else { panic!() };
            assert_eq!((&*stream, &summary[..]), ("b", &b"whole"[..]));
            let lines = lines(&journal);
            assert_eq!(lines.len(), 71);
            assert_eq!((&*lines[0], &*lines[69], &*lines[70]), ("LINE 1", "LINE 70", "END"));
            let streams = journal.streams().unwrap();
            assert_eq!((&*streams[1].summary, streams[1].summary_upto), (&b"whole"[..], 71));
        }
    }

    #[test]
    fn nothing_is_left_of_a_copy_that_fails() {
        let journal = Journal::memory();
        source(&journal, 100);
        let Done::CopyFailed { error, .. } = copied(&journal, 100, "LINE 50") else { panic!() };
        assert!(matches!(error, CopyError::Untold { seq: 50, .. }), "{error}");
        assert_eq!(journal.streams().unwrap().len(), 1);
    }

    #[test]
    fn a_stream_that_ends_too_early_is_not_copied() {
        let journal = Journal::memory();
        source(&journal, 5);
        let Done::CopyFailed { error, .. } = copied(&journal, 6, "") else { panic!() };
        assert!(matches!(error, CopyError::Short { head: 5, upto: 6, .. }), "{error}");
        assert_eq!(journal.streams().unwrap().len(), 1);
    }

    #[test]
    fn a_stream_that_is_there_is_not_overwritten() {
        let journal = Journal::memory();
        source(&journal, 5);
        assert!(matches!(copied(&journal, 5, ""), Done::Copied { .. }));
        let Done::CopyFailed { error, .. } = copied(&journal, 2, "") else { panic!() };
        assert!(matches!(error, CopyError::Taken { .. }), "{error}");
        assert_eq!(lines(&journal).len(), 6);
    }

    #[test]
    fn a_copy_that_is_cut_says_that_it_is_unfinished() {
        let journal = Journal::memory();
        source(&journal, 100);
        let translate = Box::new(Loud { refuses: "LINE 50" });
        let mut copy = Copy { from: "a".into(), upto: 100, to: "b".into(), translate };
        // Without the copier there is nobody to clean up, as after a crash.
        copy.make(&journal, &AtomicBool::new(false)).unwrap_err();
        let streams = journal.streams().unwrap();
        assert!(0 < streams[1].head);
        assert_eq!(&streams[1].summary[..], b"unfinished");
    }

    #[test]
    fn a_copy_ends_with_the_port() {
        let journal = Journal::memory();
        source(&journal, 100);
        let translate = Box::new(Loud { refuses: "" });
        let mut copy = Copy { from: "a".into(), upto: 100, to: "b".into(), translate };
        let error = copy.make(&journal, &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, CopyError::Closing { .. }), "{error}");
    }
}
