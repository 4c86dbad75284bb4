//! One response, from its head to its end: a stream of events, or a whole answer although a stream
//! was asked for.

use super::{
    Answer, Delta,
    fold::{Complaint, Fold},
    trouble::Trouble,
};
use crate::Settings;
use jackfield_wire::{chain, sse::EventReader};
use reqwest::Response;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// One event; the longest real ones are whole calls that write a file.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A model that never stops is stopped.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long the end of a response may come behind its last word: then the connection can be used
/// again.
const CLOSE_MAX: Duration = Duration::from_millis(100);

pub(super) struct Stream {
    pub(super) response: Response,
    /// When the first token must have come.
    pub(super) deadline: Instant,
    pub(super) fold: Fold,
}

/// How the body is read, which its first bytes decide: proxies tell the wrong type.
enum Shape {
    Unknown,
    Events(EventReader),
    Whole,
}

impl Stream {
    /// Reads to the end. A complaint is the server's, inside a stream that it had begun.
    pub(super) async fn read(
        mut self,
        url: &str,
        settings: &Settings,
        heard: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Result<Answer, Complaint>, Trouble> {
        let (mut shape, mut held, mut bytes) = (Shape::Unknown, Vec::new(), 0);
        loop {
            let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    let why = chain(&error.without_url());
                    return Err(Trouble::Network { url: url.to_owned(), why });
                }
                Err(_) => return Err(self.silent(url, settings)),
            };
            bytes += chunk.len();
            if ANSWER_BYTES_MAX < bytes {
                return Err(Trouble::TooLong { url: url.to_owned(), limit: ANSWER_BYTES_MAX });
            }
            let fed = match &mut shape {
                Shape::Events(reader) => feed(reader, &chunk, &mut self.fold, heard),
                Shape::Whole | Shape::Unknown => {
                    held.extend_from_slice(&chunk);
                    match begin(&mut shape, &held) {
                        Some(reader) => {
                            feed(reader, &std::mem::take(&mut held), &mut self.fold, heard)
                        }
                        None => Ok(Fed::default()),
                    }
                }
            };
            let fed = fed.map_err(|limit| Trouble::TooLong { url: url.to_owned(), limit })?;
            if let Some(complaint) = fed.complaint {
                return Ok(Err(complaint));
            }
            if self.fold.is_done() {
                // What follows is nothing; it may end the response.
                let _ = timeout(CLOSE_MAX, self.response.chunk()).await;
                return Ok(Ok(self.fold.finish(heard)));
            }
            if fed.data && self.fold.has_begun() {
                self.deadline = Instant::now() + settings.idle_max;
            }
        }
        self.end(shape, &held, bytes, url, heard)
    }

    fn end(
        mut self,
        shape: Shape,
        held: &[u8],
        bytes: usize,
        url: &str,
        heard: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Result<Answer, Complaint>, Trouble> {
        let url = url.to_owned();
        if bytes == 0 {
            return Err(Trouble::NoBody { url });
        }
        let complaint = match shape {
            Shape::Events(reader) => {
                let mut fed = Fed::default();
                let ended = reader.finish(&mut |it| fed.take(it.data, &mut self.fold, heard));
                ended.map_err(|it| Trouble::TooLong { url: url.clone(), limit: it.limit })?;
                fed.complaint
            }
            Shape::Whole | Shape::Unknown => {
                self.fold.push(&String::from_utf8_lossy(held), heard).err()
            }
        };
        match complaint {
            Some(complaint) => Ok(Err(complaint)),
            None if self.fold.is_foreign() => Err(Trouble::Foreign { url, said: None }),
            None => Ok(Ok(self.fold.finish(heard))),
        }
    }

    fn silent(&self, url: &str, settings: &Settings) -> Trouble {
        if self.fold.has_begun() {
            Trouble::silent_between(url.to_owned(), settings.idle_max)
        } else {
            Trouble::silent_before(url.to_owned(), settings.first_token_max)
        }
    }
}

/// What a chunk brought.
#[derive(Default)]
struct Fed {
    data: bool,
    complaint: Option<Complaint>,
}

impl Fed {
    fn take(&mut self, data: &str, fold: &mut Fold, heard: &mut dyn FnMut(Delta<'_>)) {
        self.data = true;
        if self.complaint.is_none() {
            self.complaint = fold.push(data, heard).err();
        }
    }
}

/// Feeds a chunk; the error is the limit that an event outgrew.
fn feed(
    reader: &mut EventReader,
    chunk: &[u8],
    fold: &mut Fold,
    heard: &mut (dyn FnMut(Delta<'_>) + Send),
) -> Result<Fed, usize> {
    let mut fed = Fed::default();
    let pushed = reader.push(chunk, &mut |it| fed.take(it.data, fold, heard));
    pushed.map(|()| fed).map_err(|it| it.limit)
}

/// Decides the shape by the first byte that is no space: no line of events begins with a bracket.
fn begin<'a>(shape: &'a mut Shape, held: &[u8]) -> Option<&'a mut EventReader> {
    let text = held.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(held).trim_ascii_start();
    match text.first() {
        None => None,
        Some(b'{' | b'[' | b'<') => {
            *shape = Shape::Whole;
            None
        }
        Some(_) => {
            *shape = Shape::Events(EventReader::new(EVENT_BYTES_MAX));
            if let Shape::Events(reader) = shape { Some(reader) } else { None }
        }
    }
}
