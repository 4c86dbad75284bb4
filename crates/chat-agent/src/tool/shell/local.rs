//! A command of ours: under a guard, so that its whole tree ends with it.

use super::{Ended, How, OUTPUT_BYTES_MAX, Shell};
use crate::{
    process,
    tool::{Show, Site, cut, fenced},
};
use agent_client_protocol::v1::schema::ToolCallUpdateFields;
use jackfield_agents::{AgentProcessEvent, Exit, Launch, Ledger, Speaks, Stop, spawn};
use jackfield_workspace_fs::OutputTail;
use jackfield_protocol::chain;
use std::{pin::pin, time::Duration};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};

const EVENTS_MAX: usize = 64;
/// How often people see more.
const SHOW_EVERY: Duration = Duration::from_millis(250);
/// What they see while it runs: the end, because each update replaces the one before.
const SHOWN_CHARS_MAX: usize = 8_000;
/// What is kept of the beginning of very much output.
const HEAD_BYTES_MAX: usize = 16 << 10;

pub(super) async fn run(shell: &Shell, site: &Site, show: Show<'_>) -> Result<Ended, String> {
    let (events, mut heard) = mpsc::channel(EVENTS_MAX);
    let (ledger, mark) = ground(site).map_err(|it| format!("No command can be run: {it}."))?;
    let launch = Launch {
        argv: ["/bin/sh", "-c", &shell.line].map(str::to_owned).into(),
        cwd: shell.cwd.real.clone(),
        env: process::environment(std::env::vars_os()),
        speaks: Speaks::Bytes,
    };
    // Dropping it ends the tree: that is how a command is cancelled.
    let mut handle = spawn(&site.guard, &launch, &mark, &ledger, events, ())
        .map_err(|it| format!("The command could not be started: {}.", chain(&it)))?;
    handle.close_stdin();
    let mut printed = PrintedOutput::new();
    let (mut late, mut news) = (false, false);
    let mut deadline = pin!(sleep(shell.limit));
    let mut tick = interval(SHOW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let exit = loop {
        tokio::select! {
            event = heard.recv() => match event {
                Some(((), AgentProcessEvent::Output(bytes))) => {
                    printed.push(&bytes);
                    news = true;
                }
                Some(((), AgentProcessEvent::Gone(exit))) => break exit,
                Some(_) => {}
                None => break Exit::default(),
            },
            () = &mut deadline, if !late => {
                late = true;
                handle.stop(Stop::Soon);
            }
            _ = tick.tick(), if news => {
                news = false;
                show(ToolCallUpdateFields::new().content(vec![fenced(&printed.last())]));
            }
        }
    };
    // The events end when nothing of the tree is left.
    while heard.recv().await.is_some() {}
    if let Some(why) = exit.failed_to_start {
        return Err(format!("The command could not be started: {why}."));
    }
    let how = match (late, exit.code, exit.signal_name()) {
        (true, ..) => How::TimedOut,
        (_, Some(code), _) => How::Code(code.into()),
        (_, None, Some(signal)) => How::Signal(signal),
        (_, None, None) => How::Lost,
    };
    let output = printed.text();
    let content = if output.is_empty() { Vec::new() } else { vec![fenced(&printed.last())] };
    Ok(Ended { how, output, content })
}

/// The beginning and the end of what was printed.
struct PrintedOutput {
    head: Vec<u8>,
    screen: OutputTail,
    bytes: usize,
}

impl PrintedOutput {
    fn new() -> PrintedOutput {
        PrintedOutput { head: Vec::new(), screen: OutputTail::new(OUTPUT_BYTES_MAX), bytes: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.screen.push(bytes);
        self.bytes += bytes.len();
    }

    fn last(&self) -> String {
        let text = self.screen.partial_text().0;
        let from = text.char_indices().rev().nth(SHOWN_CHARS_MAX - 1).map_or(0, |(at, _)| at);
        text[from..].to_owned()
    }

    fn text(&self) -> String {
        let (text, is_cut) = self.screen.final_text();
        let between = self.bytes.saturating_sub(self.head.len() + text.len());
        if is_cut && 0 < between {
            return cut::join(&String::from_utf8_lossy(&self.head), &text, between);
        }
        text
    }
}

fn ground(site: &Site) -> Result<(Ledger, String), String> {
    Ok((process::ledger(&site.ledger)?, process::new_mark("shell")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_much_output_are_kept() {
        let mut printed = PrintedOutput::new();
        printed.push(b"first\n");
        assert_eq!(printed.text(), "first\n");
        for _ in 0..300 {
            printed.push(&[b'x'; 10_000]);
        }
        printed.push(b"last\n");
        let text = printed.text();
        assert!(text.starts_with("first\n") && text.ends_with("last\n"));
        assert!(text.contains("bytes are left out here"));
        assert!(text.len() < OUTPUT_BYTES_MAX + HEAD_BYTES_MAX + 99);
        assert_eq!(printed.last().chars().count(), SHOWN_CHARS_MAX);
    }
}
