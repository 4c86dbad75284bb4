//! Splits a stream of bytes into lines and never holds more than the limit of one line.
//!
//! Own code because a line that is too long is reported with its size and its beginning, so that its
//! sender gets a response, and because a line within one chunk is not copied.

use crate::{
    Fault,
    head::{FrameHead, HEAD_BYTES_MAX},
};
use bytes::Bytes;
use memchr::memchr_iter;
use std::mem;

/// The most bytes of one read. A pipe or a socket buffers several times as much, and a peer that
/// floods it must not delay the others.
pub const READ_BYTES: usize = 8 << 10;

/// What some programs write before their first line, although UTF-8 needs none.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest message of a client or an agent. ACP over HTTP accepts as much.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// What we add to a message before another part of Jackfield reads it: longer ids, and `_meta`.
pub const FRAME_ROOM_BYTES: usize = 64 << 10;
/// The longest message of a hub to a client or a gateway. Pages of the log and lists of sessions
/// contain several messages of agents.
pub const HUB_FRAME_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(FRAME_BYTES_MAX + FRAME_ROOM_BYTES <= HUB_FRAME_BYTES_MAX);

/// A line outgrew [`LineSplitter::limit`]; it is dropped, and the next line is read as usual.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a line of {size} bytes is longer than {limit} bytes")]
pub struct LineTooLong {
    pub size: usize,
    pub limit: usize,
    /// How it begins.
    pub head: Bytes,
}

impl LineTooLong {
    /// What it would have been.
    pub fn frame_head(&self) -> FrameHead {
        FrameHead::scan(&self.head)
    }

    /// What its sender is told.
    pub fn fault(&self) -> Fault {
        let request = Some(self.frame_head()).filter(FrameHead::is_request).and_then(|it| it.id);
        Fault::TooLarge { size: self.size, limit: self.limit, request }
    }
}

/// Receives each completed line, or word that one was dropped.
pub type OnLine<'a> = dyn FnMut(Result<Bytes, LineTooLong>) + 'a;

/// Splits bytes at `\n`, drops one `\r` before it, skips blank lines and a byte order mark at the
/// start of the stream.
///
/// A line that lies inside one chunk is a slice of that chunk; only a line that the reader cut in
/// two is copied. The limit counts every byte before the `\n`.
#[derive(Debug)]
pub struct LineSplitter {
    /// The start of a line whose end has not come yet.
    partial: Vec<u8>,
    limit: usize,
    /// The current line is too long: how it begins, and the bytes of it so far. The rest is thrown away.
    skipped: Option<(Vec<u8>, usize)>,
    /// No line has ended yet.
    first: bool,
    blank_lines: bool,
}

impl LineSplitter {
    pub fn new(limit: usize) -> LineSplitter {
        assert!(0 < limit, "a limit of nothing would refuse every line");
        LineSplitter { partial: Vec::new(), limit, skipped: None, first: true, blank_lines: false }
    }

    /// Hands on blank lines too, as empty ones: in text for people they mean something.
    #[must_use]
    pub fn with_blank_lines(mut self) -> LineSplitter {
        self.blank_lines = true;
        self
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes the next chunk and hands every line it completes to `on_line`.
    #[expect(clippy::needless_pass_by_value, reason = "the splitter ends the chunk's life")]
    pub fn push(&mut self, chunk: Bytes, on_line: &mut OnLine<'_>) {
        let mut start = 0;
        for end in memchr_iter(b'\n', &chunk) {
            self.end_line(&chunk, start, end, on_line);
            start = end + 1;
        }
        self.keep(&chunk[start..]);
        assert!(self.partial.len() <= self.limit);
    }

    /// The stream ended: what is left counts as a line.
    pub fn finish(mut self, on_line: &mut OnLine<'_>) {
        // Nothing behind the last newline is no line.
        self.blank_lines = false;
        self.end_line(&Bytes::new(), 0, 0, on_line);
    }

    /// The current line ends with `chunk[start..end]`.
    fn end_line(&mut self, chunk: &Bytes, start: usize, end: usize, on_line: &mut OnLine<'_>) {
        let whole = self.partial.is_empty() && self.skipped.is_none() && end - start <= self.limit;
        if whole {
            let (from, to) = trimmed(&chunk[start..end], mem::take(&mut self.first));
            if from < to || self.blank_lines {
                on_line(Ok(chunk.slice(start + from..start + to)));
            }
            return;
        }
        self.keep(&chunk[start..end]);
        if let Some((head, size)) = self.skipped.take() {
            on_line(Err(LineTooLong { size, limit: self.limit, head: head.into() }));
        } else {
            let line = mem::take(&mut self.partial);
            let (from, to) = trimmed(&line, self.first);
            if from < to || self.blank_lines {
                on_line(Ok(Bytes::from(line).slice(from..to)));
            }
        }
        self.first = false;
    }

    /// Adds to the line that has not ended yet, unless that makes it too long.
    fn keep(&mut self, bytes: &[u8]) {
        if let Some((head, size)) = &mut self.skipped {
            *size += bytes.len();
            add_to_head(head, bytes);
            return;
        }
        let size = self.partial.len() + bytes.len();
        if self.limit < size {
            // Another vector: this one has room for the whole line.
            let mut head = Vec::new();
            add_to_head(&mut head, &mem::take(&mut self.partial));
            add_to_head(&mut head, bytes);
            self.skipped = Some((head, size));
            return;
        }
        self.partial.extend_from_slice(bytes);
    }
}

/// Adds as much as a head may have.
fn add_to_head(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = HEAD_BYTES_MAX - head.len();
    head.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// The part of a line worth handing on; empty if the line is blank.
fn trimmed(line: &[u8], first: bool) -> (usize, usize) {
    let from = if first && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let to = line.len() - usize::from(line[from..].ends_with(b"\r"));
    if line[from..to].iter().all(u8::is_ascii_whitespace) { (0, 0) } else { (from, to) }
}

#[cfg(test)]
mod tests {
    use super::{Fault, HEAD_BYTES_MAX, LineSplitter, LineTooLong};
    use bytes::Bytes;
    use proptest::prelude::*;

    type Lines = Vec<Result<Vec<u8>, LineTooLong>>;

    fn split(limit: usize, chunks: &[&[u8]]) -> Lines {
        let mut lines = Vec::new();
        let mut on_line = |line: Result<Bytes, _>| lines.push(line.map(Into::into));
        let mut splitter = LineSplitter::new(limit);
        for chunk in chunks {
            splitter.push(Bytes::copy_from_slice(chunk), &mut on_line);
        }
        splitter.finish(&mut on_line);
        lines
    }

    #[test]
    fn blank_lines_are_handed_on_where_they_are_wanted() {
        let mut lines = Vec::new();
        let mut on_line = |line: Result<Bytes, _>| lines.push(line.unwrap());
        let mut splitter = LineSplitter::new(9).with_blank_lines();
        for chunk in [&b"a\n\n"[..], b" \r", b"\nb\n", b"\n"] {
            splitter.push(Bytes::copy_from_slice(chunk), &mut on_line);
        }
        splitter.finish(&mut on_line);
        assert_eq!(lines, [&b"a"[..], b"", b"", b"b", b""]);
    }

    fn too_long(limit: usize, line: &[u8]) -> LineTooLong {
        LineTooLong { size: line.len(), limit, head: Bytes::copy_from_slice(line) }
    }

    #[test]
    fn long_line_is_answered_under_its_id_if_it_is_a_request() {
        let request = too_long(9, br#"{"jsonrpc":"2.0","id":"a","method":"session/prompt","par"#);
        let fault = request.fault();
        assert!(matches!(&fault, Fault::TooLarge { request: Some(id), .. } if &**id == "\"a\""));
        assert_eq!(fault.to_string(), "message too large: 56 bytes, and the limit is 9");
        let answer = too_long(9, br#"{"jsonrpc":"2.0","id":"a","result":{"par"#);
        assert!(matches!(answer.fault(), Fault::TooLarge { request: None, .. }));
        assert!(answer.frame_head().is_response());
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_kept() {
        let line = vec![b'x'; 3 * HEAD_BYTES_MAX];
        let lines = split(HEAD_BYTES_MAX / 2, &[&line[..100], &line[100..], b"\n"]);
        let [Err(LineTooLong { size, .. })] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(*size, line.len());
        let mut splitter = LineSplitter::new(9);
        splitter.push(Bytes::from(line), &mut |_| panic!("it has not ended"));
        splitter.finish(&mut |it| assert_eq!(it.unwrap_err().head.len(), HEAD_BYTES_MAX));
    }

    /// What the splitter should do, said without any chunks.
    fn split_at_once(limit: usize, stream: &[u8]) -> Lines {
        let mut lines = Vec::new();
        for (index, line) in stream.split(|&byte| byte == b'\n').enumerate() {
            if limit < line.len() {
                lines.push(Err(too_long(limit, line)));
                continue;
            }
            let line = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| index == 0).unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                lines.push(Ok(line.to_vec()));
            }
        }
        lines
    }

    proptest! {
        /// How the kernel happened to cut the stream never shows.
        #[test]
        fn chunking_does_not_matter(
            stream in r"(a|b| |\r|\n|\xEF\xBB\xBF|\xEF){0,40}".prop_map(String::into_bytes),
            mark in any::<bool>(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
            limit in 1_usize..12,
        ) {
            let mut stream = stream;
            if mark {
                stream.splice(0..0, *b"\xEF\xBB\xBF");
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(split(limit, &chunks), split_at_once(limit, &stream));
        }
    }

    #[test]
    fn a_long_line_is_reported_once_and_the_next_one_survives() {
        let lines = split(4, &[b"abcd", b"efgh", b"ij\nok\n"]);
        assert_eq!(lines, [Err(too_long(4, b"abcdefghij")), Ok(b"ok".to_vec())]);
        assert_eq!(split(4, &[b"abcde\nok"]), [Err(too_long(4, b"abcde")), Ok(b"ok".to_vec())]);
        assert_eq!(split(4, &[b"abc", b"de"]), [Err(too_long(4, b"abcde"))]);
        assert_eq!(split(4, &[b"abcd\n"]), [Ok(b"abcd".to_vec())]);
    }

    #[test]
    fn a_line_inside_one_chunk_is_a_slice_of_it() {
        let chunk = Bytes::from_static(b"one\ntwo\nthr");
        let range = chunk.as_ptr_range();
        let mut splitter = LineSplitter::new(64);
        let mut seen = 0;
        splitter.push(chunk, &mut |line| {
            assert!(range.contains(&line.unwrap().as_ptr()));
            seen += 1;
        });
        assert_eq!(seen, 2);
    }

    #[test]
    fn one_carriage_return_is_dropped_and_blank_lines_are_skipped() {
        let lines = split(64, &[b"a\r\nb\r\r\n\r\n  \t\n\nc\rd\r", b"\n", b"e\r"]);
        assert_eq!(
            lines,
            [Ok(b"a".to_vec()), Ok(b"b\r".to_vec()), Ok(b"c\rd".to_vec()), Ok(b"e".to_vec())]
        );
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_and_nowhere_else() {
        let lines = split(64, &[b"\xEF\xBB", b"\xBFa\n\xEF\xBB\xBFb\n"]);
        assert_eq!(lines, [Ok(b"a".to_vec()), Ok(b"\xEF\xBB\xBFb".to_vec())]);
        assert_eq!(split(64, &[b"\xEF\xBB\xBF\r\na"]), [Ok(b"a".to_vec())]);
        assert_eq!(split(64, &[b"\n\xEF\xBB\xBFa"]), [Ok(b"\xEF\xBB\xBFa".to_vec())]);
    }

    #[test]
    fn what_is_left_at_the_end_counts_as_a_line() {
        assert_eq!(split(64, &[b"a\nb", b"c"]), [Ok(b"a".to_vec()), Ok(b"bc".to_vec())]);
        assert_eq!(split(64, &[]), []);
        assert_eq!(LineSplitter::new(64).limit(), 64);
    }
}
