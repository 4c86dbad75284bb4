//! Sends an answer piece by piece at the script's pace, hangs or drops it if it says so.

use std::{
    io,
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    http::{Events, send_json},
    script::{Ending, Script},
};

/// How long a hanging answer keeps its connection.
const HANG: Duration = Duration::from_mins(1);

/// How often a pause looks whether the server stops or the client is gone.
const LOOK: Duration = Duration::from_millis(50);

/// One answer on its way to the client.
pub(crate) struct Reply<'a> {
    events: Events<'a>,
    stopping: &'a AtomicBool,
}

impl<'a> Reply<'a> {
    pub(crate) fn start(stream: &'a mut TcpStream, stopping: &'a AtomicBool) -> io::Result<Self> {
        Ok(Reply { events: Events::start(stream)?, stopping })
    }

    /// APIs that name their events repeat the name as the `type` of the data.
    pub(crate) fn event(&mut self, data: &Value) -> io::Result<()> {
        if let Some(name) = data["type"].as_str() {
            self.events.named(name, &data.to_string())
        } else {
            self.text(&data.to_string())
        }
    }

    /// An event that is no JSON.
    pub(crate) fn text(&mut self, data: &str) -> io::Result<()> {
        self.events.data(data)
    }

    pub(crate) fn end(self) -> io::Result<()> {
        self.events.end()
    }

    /// Says the chunks of a script, each as the event that `event` makes of it.
    pub(crate) fn say(&mut self, script: &Script, event: impl Fn(&str) -> Value) -> io::Result<()> {
        for (index, chunk) in script.chunks.iter().enumerate() {
            self.event(&event(chunk))?;
            match script.ending {
                Ending::Hang => self.hang()?,
                Ending::Cut if index == 1 => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => pause(script.pause, self.stopping)?,
            }
        }
        Ok(())
    }

    fn hang(&mut self) -> io::Result<()> {
        let end = Instant::now() + HANG;
        while Instant::now() < end {
            pause(LOOK, self.stopping)?;
            self.events.comment()?;
        }
        Ok(())
    }
}

/// Sends an answer in one piece, after the time it would take to say it.
pub(crate) fn send_whole(
    stream: &mut TcpStream,
    script: &Script,
    body: &Value,
    stopping: &AtomicBool,
) -> io::Result<()> {
    let count = u32::try_from(script.chunks.len()).unwrap_or(u32::MAX);
    match script.ending {
        Ending::Whole => pause(script.pause.saturating_mul(count), stopping)?,
        Ending::Hang => pause(HANG, stopping)?,
        Ending::Cut => {
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
        thread::sleep(left.min(LOOK));
    }
}
