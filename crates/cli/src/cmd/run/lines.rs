//! Turn after turn, as the lines of stdin want them: one session, one agent process, one connection.

use super::{
    driver::{Done, Driver, Stopping},
    input::{Input, Line},
};
use crate::{
    exit::Exit,
    hub::{Deadline, Heard},
    out::{Telling, Transcript, count},
    report::Failure,
};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Prompts that wait for the running turn. Behind so many, the rest of stdin is left where it is.
const WAITING_MAX: usize = 16;

/// What stdin has said.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Prompts that wait for their turn, as the hub gets them.
    waiting: VecDeque<Value>,
    /// There will be no more.
    pub(super) ended: bool,
    /// The exit code of the last failure; it was told when it happened.
    failed: Option<Exit>,
}

impl Driver<'_> {
    /// Turn after turn, until stdin ends or somebody wants to leave.
    pub(super) fn converse(&mut self, first: Option<Value>) -> Done {
        self.lines = Some(Lines { waiting: first.into_iter().collect(), ..Lines::default() });
        let ended = self.conn.heed_typing().and_then(|()| self.turns());
        let over = ended.is_ok();
        let failed = self.lines.take().and_then(|it| it.failed);
        let told = failed.map_or(Ok(()), |exit| Err(Failure::Told(exit)));
        Done { over, outcome: ended.and(told) }
    }

    fn turns(&mut self) -> Result<(), Failure> {
        while let Some(prompt) = self.next_prompt()? {
            let done = self.turn(&prompt, self.manner.timeout.map(Deadline::after));
            match done.outcome {
                Ok(()) => {}
                Err(failure) if done.over => self.tell(&failure),
                Err(failure) => return Err(failure),
            }
            self.part()?;
        }
        Ok(())
    }

    /// Between two turns: one is told from the next, and its words are not those of the next.
    fn part(&mut self) -> Result<(), Failure> {
        self.transcript = Transcript::new(&self.out, self.manner.side());
        match self.manner.format {
            Telling::Text | Telling::Quiet => self.out.data("\n"),
            Telling::Json | Telling::Events | Telling::Envelopes => Ok(()),
        }
    }

    /// The next prompt; nothing if there is none, or if somebody wants to leave. Meanwhile the agent
    /// may talk, and ask.
    fn next_prompt(&mut self) -> Result<Option<Value>, Failure> {
        let asks = self.show_that_we_listen();
        loop {
            let Some(lines) = &mut self.lines else { return Ok(None) };
            let prompt = lines.waiting.pop_front();
            if prompt.is_some() || lines.ended {
                if asks && prompt.is_none() {
                    // Nothing was typed that would have ended the line.
                    self.out.alert("");
                }
                self.conn.let_typing_wait(false);
                return Ok(prompt);
            }
            match self.conn.next(None)? {
                Heard::Frame(frame) => self.on_frame(&frame)?,
                Heard::Typed(line) => self.on_typed(line)?,
                Heard::TypedEnd => self.on_typed_end()?,
                Heard::Interrupt => return Ok(None),
                Heard::TimedOut => {}
                Heard::HubGone => {
                    return Err(Failure::HubGone { waited_for: "the next prompt".into() });
                }
            }
        }
    }

    /// On a terminal; false elsewhere, and if the next prompt is there.
    fn show_that_we_listen(&self) -> bool {
        let waits = self.lines.as_ref().is_some_and(|it| it.waiting.is_empty() && !it.ended);
        let asks = waits && self.manner.input == Input::Text && self.out.can_ask();
        if asks {
            self.out.prompt(">");
        }
        asks
    }

    /// A line of stdin that answers no question.
    pub(super) fn on_line(&mut self, line: &str) -> Result<(), Failure> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        match self.manner.input.read(line) {
            Line::Empty => {}
            Line::Prompt(blocks) => {
                let params = json!({ "sessionId": self.goal.session, "prompt": blocks });
                lines.waiting.push_back(params);
                self.conn.let_typing_wait(WAITING_MAX <= lines.waiting.len());
            }
            Line::Cancel => {
                self.withdraw_waiting();
                return self.stop(Stopping::Told);
            }
            Line::Unclear(why) => self.tell(&Failure::usage(
                format!("cannot use a line of stdin: {why}"),
                "give `{\"prompt\":\"…\"}`, `{\"prompt\":[BLOCK,…]}` or `{\"type\":\"cancel\"}`",
            )),
        }
        Ok(())
    }

    /// A cancel is about everything that stands before it.
    fn withdraw_waiting(&mut self) {
        let Some(lines) = self.lines.as_mut().filter(|it| !it.waiting.is_empty()) else { return };
        let waited = lines.waiting.len();
        lines.waiting.clear();
        lines.failed = Some(Failure::Cancelled.exit());
        self.out.note(&format!("{} withdrawn", count(waited, "prompt")));
        self.conn.let_typing_wait(false);
    }

    /// Says what went wrong, and goes on.
    pub(super) fn tell(&mut self, failure: &Failure) {
        let exit = failure.report(&self.out);
        if let Some(lines) = &mut self.lines {
            lines.failed = Some(exit);
        }
    }
}
