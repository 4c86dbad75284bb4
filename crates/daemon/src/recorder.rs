//! The flight recorder: the last inputs of the hub, written to a file when an assertion fails.

use jackfield_hub::{Input, Time};
use jackfield_protocol::redact;
use std::{fmt::Write as _, path::PathBuf};

/// The size of each half; together they hold between one and two of these.
const HALF_BYTES: usize = 256 * 1024;

const HEAD_BYTES: usize = 160;

#[derive(Debug)]
pub(crate) struct InputRecorder {
    older: String,
    newer: String,
    /// The directory of a dump; `None` disables it.
    dir: Option<PathBuf>,
}

impl InputRecorder {
    pub(crate) fn new(dir: Option<PathBuf>) -> InputRecorder {
        InputRecorder { older: String::new(), newer: String::new(), dir }
    }

    pub(crate) fn record(&mut self, now: Time, input: &Input) {
        if HALF_BYTES < self.newer.len() {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        let line = &mut self.newer;
        let result = match input {
            Input::ClientSpoke { conn, frame } => {
                writeln!(line, "{} client {conn} {}", now.0, frame_head(frame.bytes()))
            }
            Input::AgentSpoke { agent, frame } => {
                writeln!(line, "{} agent {agent} {}", now.0, frame_head(frame.bytes()))
            }
            Input::Read { conn, session, after, events } => {
                writeln!(line, "{} read {conn} {session} {} +{}", now.0, after.0, events.len())
            }
            Input::PageRead { page, events: Ok(events) } => {
                writeln!(line, "{} read page {page} +{}", now.0, events.len())
            }
            Input::Durable { session, upto } => {
                writeln!(line, "{} durable {session} {}", now.0, upto.0)
            }
            Input::Adopted { session, from, .. } => {
                writeln!(line, "{} adopted {session} from {from:?}", now.0)
            }
            Input::ClientWrote { conn, bytes } => writeln!(line, "{} wrote {conn} {bytes}", now.0),
            other => writeln!(line, "{} {other:?}", now.0),
        };
        result.expect("writing to memory cannot fail");
    }

    fn dump(&self) -> Option<PathBuf> {
        let path = self.dir.as_ref()?.join(format!("crash-{}.log", std::process::id()));
        let lines = format!("{}{}", self.older, self.newer);
        jackfield_private_files::write_file(&path, redact::text(&lines).as_bytes()).ok()?;
        Some(path)
    }
}

/// Enough of a frame to identify it; prompts and file contents stay out of the dump.
fn frame_head(frame: &[u8]) -> &str {
    let head = &frame[..frame.len().min(HEAD_BYTES)];
    // Ends before a character that is cut.
    let end = str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
    str::from_utf8(&head[..end]).unwrap_or_default()
}

impl Drop for InputRecorder {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(path) = self.dump()
        {
            tracing::error!(path = %path.display(), "the hub failed an assertion; wrote its last inputs to a file");
        }
    }
}
