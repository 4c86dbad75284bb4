//! `shell`: a command line, in a terminal of the client or under a guard of ours.

mod cover;
mod lent;
mod local;

use super::{
    Grant, Job, Outcome, Show, Site, Work,
    args::Args,
    cut::{OUTPUT_CHARS_MAX, cut},
    files::Target,
};
use agent_client_protocol::v1::schema::ToolCallContent;
use serde_json::json;
use std::time::Duration;

const LIMIT_SECS: u64 = 120;
const LIMIT_SECS_MAX: u64 = 600;
/// Room for the words about the end.
const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX - 300;
/// What is kept of the output: much more than is told, so that the gap can be counted.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Shell {
    line: String,
    cwd: Target,
    limit: Duration,
}

/// How a command ended, and what it printed.
struct Ended {
    how: How,
    output: String,
    /// For people.
    content: Vec<ToolCallContent>,
}

enum How {
    Code(i64),
    Signal(String),
    TimedOut,
    /// Nobody knows.
    Lost,
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let line = args.text("command")?;
    if line.trim().is_empty() {
        return Err(args.wrong("command", "is empty"));
    }
    let cwd = args.optional_text("cwd")?.filter(|it| !it.is_empty());
    let cwd = Target::find_existing(cwd.as_deref().unwrap_or("."), site).await?;
    if !cwd.is_dir {
        return Err(args.wrong("cwd", "is no directory"));
    }
    let secs = args.number("timeout")?.unwrap_or(LIMIT_SECS).min(LIMIT_SECS_MAX);
    Ok(Job {
        input: args.input(),
        title: line.clone(),
        kind: args.tool().kind,
        locations: vec![cwd.location(None)],
        content: Vec::new(),
        grant: Grant::Ask(name(&line, &cwd.shown)),
        work: Work::Shell(Shell { line, cwd, limit: Duration::from_secs(secs) }),
    })
}

/// The same words may run another program elsewhere.
fn name(line: &str, cwd: &str) -> String {
    let covered = cover::cover(line);
    if cwd == "." { format!("shell {covered}") } else { format!("shell in {cwd}: {covered}") }
}

impl Shell {
    pub(super) async fn run(self, site: &Site, show: Show<'_>) -> Outcome {
        let ended = if site.offers.terminal {
            lent::run(&self, site, show).await
        } else {
            local::run(&self, site, show).await
        };
        ended.map_or_else(Outcome::failed, |it| self.tell(it))
    }

    fn tell(&self, ended: Ended) -> Outcome {
        let Ended { how, output, content } = ended;
        let secs = self.limit.as_secs();
        let end = match &how {
            How::Code(code) => format!("exit status {code}"),
            How::Signal(signal) => format!("ended by {signal}"),
            How::TimedOut => format!(
                "it had not ended after {secs} s and was ended, with all it started; `timeout` may \
                 be up to {LIMIT_SECS_MAX}"
            ),
            How::Lost => "its end is not known".to_owned(),
        };
        let way = "print less, or into a file that you read in parts";
        let output = cut(&output, TEXT_CHARS_MAX, way);
        let text = match output.trim_end() {
            "" => format!("[it printed nothing; {end}]"),
            output => format!("{output}\n[{end}]"),
        };
        let (code, signal, timed_out) = match how {
            How::Code(code) => (Some(code), None, false),
            How::Signal(signal) => (None, Some(signal), false),
            How::TimedOut => (None, None, true),
            How::Lost => (None, None, false),
        };
        let raw = json!({ "exitCode": code, "signal": signal, "timedOut": timed_out });
        Outcome { text, failed: code != Some(0), content, raw: Some(raw), plan: None }
    }
}

#[cfg(test)]
mod tests;
