//! Reads one response from the first byte to the end: a stream of events, or a whole body although
//! a stream was requested.

use super::{
    ModelResponse, ResponseDelta,
    accumulator::{InStreamError, ResponseAccumulator},
    error::ModelError,
};
use crate::ChatSettings;
use jackfield_protocol::{chain, sse::EventReader};
use reqwest::Response;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The limit of one event. The longest real events are whole calls that write a file.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Stops a model that never ends its response.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long to wait for the end of the body after `[DONE]`. A connection whose body was read to the
/// end can be reused.
const BODY_END_WAIT_MAX: Duration = Duration::from_millis(100);

pub(super) struct ResponseStream {
    pub(super) response: Response,
    /// When the next token must have arrived.
    pub(super) deadline: Instant,
    pub(super) accumulator: ResponseAccumulator,
}

/// The format of the body. The first bytes decide it, because proxies send wrong content types.
enum BodyFormat {
    Unknown,
    Events(EventReader),
    Whole,
}

/// The inner error is one that the server sent inside a stream that it had begun.
type ReadResult = Result<Result<ModelResponse, InStreamError>, ModelError>;

impl ResponseStream {
    /// Reads to the end of the response.
    pub(super) async fn read(
        mut self,
        url: &str,
        settings: &ChatSettings,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
    ) -> ReadResult {
        let (mut format, mut held, mut bytes) = (BodyFormat::Unknown, Vec::new(), 0);
        loop {
            let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    let cause = chain(&error.without_url());
                    return Err(ModelError::Network { url: url.to_owned(), cause });
                }
                Err(_) => return Err(self.timeout_error(url, settings)),
            };
            bytes += chunk.len();
            if RESPONSE_BYTES_MAX < bytes {
                return Err(ModelError::TooLong { url: url.to_owned(), limit: RESPONSE_BYTES_MAX });
            }
            let outcome = match &mut format {
                BodyFormat::Events(reader) => {
                    push_chunk(reader, &chunk, &mut self.accumulator, on_delta)
                }
                BodyFormat::Whole | BodyFormat::Unknown => {
                    held.extend_from_slice(&chunk);
                    match detect_format(&mut format, &held) {
                        Some(reader) => {
                            let held = std::mem::take(&mut held);
                            push_chunk(reader, &held, &mut self.accumulator, on_delta)
                        }
                        None => Ok(ChunkOutcome::default()),
                    }
                }
            };
            let outcome =
                outcome.map_err(|limit| ModelError::TooLong { url: url.to_owned(), limit })?;
            if let Some(error) = outcome.error {
                return Ok(Err(error));
            }
            if self.accumulator.is_done() {
                // No data follows. Reading once more lets the client see the end of the body.
                let _ = timeout(BODY_END_WAIT_MAX, self.response.chunk()).await;
                return Ok(Ok(self.accumulator.finish(on_delta)));
            }
            if outcome.has_data && self.accumulator.has_output() {
                self.deadline = Instant::now() + settings.idle_max;
            }
        }
        self.finish(format, &held, bytes, url, on_delta)
    }

    /// Handles the end of the body without `[DONE]`.
    fn finish(
        mut self,
        format: BodyFormat,
        held: &[u8],
        bytes: usize,
        url: &str,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
    ) -> ReadResult {
        let url = url.to_owned();
        if bytes == 0 {
            return Err(ModelError::NoBody { url });
        }
        let error = match format {
            BodyFormat::Events(reader) => {
                let mut outcome = ChunkOutcome::default();
                let ended = reader.finish(&mut |it| {
                    outcome.push_event(it.data, &mut self.accumulator, on_delta);
                });
                ended.map_err(|it| ModelError::TooLong { url: url.clone(), limit: it.limit })?;
                outcome.error
            }
            BodyFormat::Whole | BodyFormat::Unknown => {
                self.accumulator.push(&String::from_utf8_lossy(held), on_delta).err()
            }
        };
        match error {
            Some(error) => Ok(Err(error)),
            None if self.accumulator.has_unexpected_format() => {
                Err(ModelError::UnexpectedFormat { url, server_message: None })
            }
            None => Ok(Ok(self.accumulator.finish(on_delta))),
        }
    }

    fn timeout_error(&self, url: &str, settings: &ChatSettings) -> ModelError {
        if self.accumulator.has_output() {
            ModelError::idle_timeout(url.to_owned(), settings.idle_max)
        } else {
            ModelError::first_token_timeout(url.to_owned(), settings.first_token_max)
        }
    }
}

/// The effect of one chunk.
#[derive(Default)]
struct ChunkOutcome {
    /// Whether the chunk completed an event. Comments that keep the connection alive do not count.
    has_data: bool,
    error: Option<InStreamError>,
}

impl ChunkOutcome {
    fn push_event(
        &mut self,
        data: &str,
        accumulator: &mut ResponseAccumulator,
        on_delta: &mut dyn FnMut(ResponseDelta<'_>),
    ) {
        self.has_data = true;
        if self.error.is_none() {
            self.error = accumulator.push(data, on_delta).err();
        }
    }
}

/// Reads the events of a chunk. The error is the size limit that an event exceeded.
fn push_chunk(
    reader: &mut EventReader,
    chunk: &[u8],
    accumulator: &mut ResponseAccumulator,
    on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
) -> Result<ChunkOutcome, usize> {
    let mut outcome = ChunkOutcome::default();
    let pushed = reader.push(chunk, &mut |it| outcome.push_event(it.data, accumulator, on_delta));
    pushed.map(|()| outcome).map_err(|it| it.limit)
}

/// Decides the format by the first byte that is not white space: a line of an event stream never
/// begins with a bracket.
fn detect_format<'a>(format: &'a mut BodyFormat, held: &[u8]) -> Option<&'a mut EventReader> {
    let text = held.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(held).trim_ascii_start();
    match text.first() {
        None => None,
        Some(b'{' | b'[' | b'<') => {
            *format = BodyFormat::Whole;
            None
        }
        Some(_) => {
            *format = BodyFormat::Events(EventReader::new(EVENT_BYTES_MAX));
            if let BodyFormat::Events(reader) = format { Some(reader) } else { None }
        }
    }
}
