//! The end of what an agent printed outside the protocol: bounded, redacted, for people.

use crate::chunk;
use crate::plain::plain;
use jackfield_wire::redact::Redactor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

/// A line of noise is cut to this: it may have megabytes.
const NOISE_BYTES_MAX: usize = 400;
/// And this much of it is searched for secrets.
const NOISE_SEARCHED_MAX: usize = 4 << 10;

/// Shared by the reader of stderr and the pump of stdout, which adds its noise.
#[derive(Clone)]
pub(crate) struct Tail {
    kept: Arc<Mutex<Kept>>,
    redactor: Arc<Redactor>,
    limit: usize,
}

#[derive(Default)]
struct Kept {
    /// Up to twice the limit, so that a secret is still whole where the shown part begins.
    bytes: VecDeque<u8>,
    /// The beginning was dropped.
    cut: bool,
    noise: u64,
}

impl Tail {
    pub(crate) fn new(redactor: Redactor, limit: usize) -> Tail {
        Tail { kept: Arc::default(), redactor: Arc::new(redactor), limit }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        self.with(|kept| kept.push(bytes, self.limit * 2));
    }

    /// A line that strayed to stdout; returns it as it may be shown.
    pub(crate) fn push_noise(&self, line: &[u8]) -> String {
        let start = String::from_utf8_lossy(&line[..line.len().min(NOISE_SEARCHED_MAX)]);
        let mut shown = self.redactor.redact(&plain(&start));
        // Cut behind the search for secrets: half a secret is no longer recognized.
        shown.truncate(shown.floor_char_boundary(NOISE_BYTES_MAX));
        self.with(|kept| {
            kept.noise += 1;
            kept.push_line(&format!("[stdout] {shown}"), self.limit * 2);
        });
        shown
    }

    /// A line of the daemon's own about this agent.
    pub(crate) fn push_note(&self, note: &str) {
        self.with(|kept| kept.push_line(&format!("[jackfield] {note}"), self.limit * 2));
    }

    pub(crate) fn noise(&self) -> u64 {
        self.with(|kept| kept.noise)
    }

    pub(crate) fn text(&self) -> String {
        let (bytes, cut) = self.with(|kept| (kept.bytes.make_contiguous().to_vec(), kept.cut));
        let text = String::from_utf8_lossy(&bytes);
        // The first word after a cut may be half a secret.
        let whole = if cut { text.find(char::is_whitespace).unwrap_or(text.len()) } else { 0 };
        let text = self.redactor.redact(&plain(&text[whole..]));
        let text = text.trim();
        if text.len() <= self.limit {
            return text.to_owned();
        }
        let from = (text.len() - self.limit..=text.len()).find(|at| text.is_char_boundary(*at));
        let last = &text[from.unwrap_or(text.len())..];
        // Whole lines, unless there is only one.
        last.split_once('\n').map_or(last, |(_, lines)| lines).to_owned()
    }

    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn push(&mut self, bytes: &[u8], limit: usize) {
        let bytes = &bytes[bytes.len().saturating_sub(limit)..];
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(limit);
        self.cut |= 0 < excess;
        self.bytes.drain(..excess);
        self.bytes.extend(bytes);
    }

    fn push_line(&mut self, line: &str, limit: usize) {
        if self.bytes.back().is_some_and(|last| *last != b'\n') {
            self.push(b"\n", limit);
        }
        self.push(line.as_bytes(), limit);
        self.push(b"\n", limit);
    }
}

/// Reads stderr to its end, or to what is there when the agent has ended.
pub(crate) async fn read(mut pipe: Receiver, tail: Tail, mut ended: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            _ = &mut ended => break chunk::drain(&pipe, |bytes| tail.push(&bytes)),
            chunk = chunk::read(&mut pipe) => match chunk {
                Ok(Some(bytes)) => tail.push(&bytes),
                Ok(None) | Err(_) => break,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_no_half_secret_is_shown() {
        let env = [("A_KEY".to_owned(), "s3cr3t-value".to_owned())];
        let tail = Tail::new(Redactor::new(&env), 100);
        for number in 0..1000 {
            tail.push(format!("line {number} s3cr3t-value\n").as_bytes());
            let text = tail.text();
            assert!(text.len() <= 100 && !text.contains("s3c") && !text.contains("alue"), "{text}");
        }
        assert!(tail.text().ends_with("line 998 ***\nline 999 ***"), "{}", tail.text());
        assert!(tail.text().starts_with("line "));
    }

    #[test]
    fn one_endless_line_is_bounded_too() {
        let tail = Tail::new(Redactor::default(), 100);
        tail.push(&b"x".repeat(100_000));
        tail.push(" \u{e4}nd".as_bytes());
        assert!(tail.text().ends_with("\u{e4}nd") && tail.text().len() <= 100);
    }

    #[test]
    fn noise_is_counted_shortened_and_kept_on_lines_of_its_own() {
        let tail = Tail::new(Redactor::default(), 1000);
        tail.push(b"half");
        let shown = tail.push_noise(format!("\x1b[31mBearer x123 {}", "y".repeat(5000)).as_bytes());
        assert!(shown.starts_with("Bearer *** yyy") && shown.len() == NOISE_BYTES_MAX, "{shown}");
        tail.push_note("that was all");
        assert_eq!(tail.noise(), 1);
        let text = tail.text();
        assert!(text.starts_with("half\n[stdout] Bearer *** yyy"), "{text}");
        assert!(text.ends_with("\n[jackfield] that was all"), "{text}");
        assert!(text.len() < 500);
    }
}
