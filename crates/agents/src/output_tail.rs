//! The last lines that an agent printed outside of ACP: bounded and redacted, for users.

use crate::terminal_escapes::strip_escapes;
use jackfield_protocol::redact::SecretRedactor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A line of noise is cut to this size, because it may have megabytes.
const NOISE_BYTES_MAX: usize = 400;
/// The size of the part of it that is searched for secrets.
const NOISE_SEARCHED_MAX: usize = 4 << 10;

/// Shared by the reader of stderr and the reader of stdout, which adds noise.
#[derive(Clone)]
pub(crate) struct ProcessOutputTail {
    buffer: Arc<Mutex<TailBuffer>>,
    redactor: Arc<SecretRedactor>,
    limit: usize,
}

#[derive(Default)]
struct TailBuffer {
    /// Up to twice the limit, so that a secret at the start of the shown part is still complete.
    bytes: VecDeque<u8>,
    /// Whether the beginning was dropped.
    cut: bool,
    noise: u64,
}

impl ProcessOutputTail {
    pub(crate) fn new(redactor: SecretRedactor, limit: usize) -> ProcessOutputTail {
        ProcessOutputTail { buffer: Arc::default(), redactor: Arc::new(redactor), limit }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        self.with_buffer(|buffer| buffer.push(bytes, self.limit * 2));
    }

    /// The text without escapes and secrets. It must not end within a word.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(&strip_escapes(text))
    }

    /// Adds a line of noise from stdout. Returns it redacted and shortened.
    pub(crate) fn push_noise(&self, line: &[u8]) -> String {
        let start = String::from_utf8_lossy(&line[..line.len().min(NOISE_SEARCHED_MAX)]);
        let mut shown = self.redactor.redact(&strip_escapes(&start));
        // Cut after the redaction, because half a secret would not be recognized.
        shown.truncate(shown.floor_char_boundary(NOISE_BYTES_MAX));
        self.with_buffer(|buffer| {
            buffer.noise += 1;
            buffer.push_line(&format!("[stdout] {shown}"), self.limit * 2);
        });
        shown
    }

    /// Adds a line by the daemon about this agent.
    pub(crate) fn push_note(&self, note: &str) {
        self.with_buffer(|buffer| buffer.push_line(&format!("[jackfield] {note}"), self.limit * 2));
    }

    pub(crate) fn noise(&self) -> u64 {
        self.with_buffer(|buffer| buffer.noise)
    }

    pub(crate) fn text(&self) -> String {
        let (bytes, cut) =
            self.with_buffer(|buffer| (buffer.bytes.make_contiguous().to_vec(), buffer.cut));
        let text = String::from_utf8_lossy(&bytes);
        // The first word after the dropped part may be half a secret.
        let whole = if cut { text.find(char::is_whitespace).unwrap_or(text.len()) } else { 0 };
        let text = self.redactor.redact(&strip_escapes(&text[whole..]));
        let text = text.trim();
        if text.len() <= self.limit {
            return text.to_owned();
        }
        let from = (text.len() - self.limit..=text.len()).find(|at| text.is_char_boundary(*at));
        let last = &text[from.unwrap_or(text.len())..];
        // Whole lines, unless there is only one.
        last.split_once('\n').map_or(last, |(_, lines)| lines).to_owned()
    }

    fn with_buffer<T>(&self, work: impl FnOnce(&mut TailBuffer) -> T) -> T {
        work(&mut self.buffer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TailBuffer {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_no_half_secret_is_shown() {
        let env = [("A_KEY".to_owned(), "s3cr3t-value".to_owned())];
        let tail = ProcessOutputTail::new(SecretRedactor::new(&env), 100);
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
        let tail = ProcessOutputTail::new(SecretRedactor::default(), 100);
        tail.push(&b"x".repeat(100_000));
        tail.push(" \u{e4}nd".as_bytes());
        assert!(tail.text().ends_with("\u{e4}nd") && tail.text().len() <= 100);
    }

    #[test]
    fn noise_is_counted_shortened_and_kept_on_separate_lines() {
        let tail = ProcessOutputTail::new(SecretRedactor::default(), 1000);
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
