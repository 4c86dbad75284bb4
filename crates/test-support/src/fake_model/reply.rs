//! Sends a response piece by piece at the script's pace; hangs or drops the connection if the script demands it.

use std::{
    io,
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    http::{EventStream, send_json},
    script::{ReplyEnding, ReplyScript},
};

/// How long a hanging response keeps its connection.
const HANG_TIME: Duration = Duration::from_mins(1);

/// How often a pause checks whether the server stops or the client is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A response that is being sent.
pub(crate) struct StreamedReply<'a> {
    events: EventStream<'a>,
    stopping: &'a AtomicBool,
}

impl<'a> StreamedReply<'a> {
    pub(crate) fn start(stream: &'a mut TcpStream, stopping: &'a AtomicBool) -> io::Result<Self> {
        Ok(StreamedReply { events: EventStream::start(stream)?, stopping })
    }

    /// APIs with named events repeat the name as the `type` of the data.
    pub(crate) fn event(&mut self, data: &Value) -> io::Result<()> {
        if let Some(name) = data["type"].as_str() {
            self.events.named(name, &data.to_string())
        } else {
            self.text(&data.to_string())
        }
    }

    /// An event that is not JSON.
    pub(crate) fn text(&mut self, data: &str) -> io::Result<()> {
        self.events.data(data)
    }

    pub(crate) fn end(self) -> io::Result<()> {
        self.events.end()
    }

    /// Sends the chunks of a script, each as an event made by `event`.
    pub(crate) fn send_chunks(
        &mut self,
        script: &ReplyScript,
        event: impl Fn(&str) -> Value,
    ) -> io::Result<()> {
        for (index, chunk) in script.chunks.iter().enumerate() {
            self.event(&event(chunk))?;
            match script.ending {
                ReplyEnding::Hang => self.hang()?,
                ReplyEnding::Cut if index == 1 => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                _ => pause(script.pause, self.stopping)?,
            }
        }
        Ok(())
    }

    fn hang(&mut self) -> io::Result<()> {
        let end = Instant::now() + HANG_TIME;
        while Instant::now() < end {
            pause(CHECK_INTERVAL, self.stopping)?;
            self.events.comment()?;
        }
        Ok(())
    }
}

/// Sends a response in one piece, after the time that streaming it would take.
pub(crate) fn send_whole(
    stream: &mut TcpStream,
    script: &ReplyScript,
    body: &Value,
    stopping: &AtomicBool,
) -> io::Result<()> {
    let count = u32::try_from(script.chunks.len()).unwrap_or(u32::MAX);
    match script.ending {
        ReplyEnding::Whole => pause(script.pause.saturating_mul(count), stopping)?,
        ReplyEnding::Hang => pause(HANG_TIME, stopping)?,
        ReplyEnding::Cut => {
            stream.shutdown(Shutdown::Both)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    send_json(stream, 200, "", body)
}

/// Sleeps, unless the server stops.
fn pause(time: Duration, stopping: &AtomicBool) -> io::Result<()> {
    let end = Instant::now() + time;
    loop {
        if stopping.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(CHECK_INTERVAL));
    }
}
