//! The line splitter: how a stream is cut into chunks never shows, and no line outgrows the limit.
//!
//! Input: the limit, the length of a chunk, and the stream.

use bytes::Bytes;
use jackfield_protocol::{LineSplitter, LineTooLong};

type Lines = Vec<Result<Bytes, LineTooLong>>;

fn split(limit: usize, chunks: &[&[u8]]) -> Lines {
    let mut lines = Vec::new();
    let mut on_line = |line| lines.push(line);
    let mut splitter = LineSplitter::new(limit);
    for chunk in chunks {
        splitter.push(Bytes::copy_from_slice(chunk), &mut on_line);
    }
    splitter.finish(&mut on_line);
    lines
}

/// Panics if the property does not hold for this input.
pub fn check(data: &[u8]) {
    let [limit, step, stream @ ..] = data else { return };
    let (limit, step) = (usize::from(*limit) + 1, usize::from(*step) + 1);
    let whole = split(limit, &[stream]);
    assert_eq!(whole, split(limit, &stream.chunks(step).collect::<Vec<_>>()));
    for line in whole.iter().flatten() {
        assert!(!line.is_empty() && line.len() <= limit);
        assert!(!line.contains(&b'\n'));
    }
    let too_long = stream.split(|&byte| byte == b'\n').filter(|line| limit < line.len()).count();
    assert_eq!(whole.iter().filter(|line| line.is_err()).count(), too_long);
}
