//! One turn of ours, from the prompt to its outcome: words are printed, asks answered, and there is
//! always a way to stop.

use crate::{
    ask::{Ask, Rules, Verdict},
    hub::{Conn, Deadline, Heard, is_answer, result_of},
    out::{Format, Out, Side, Transcript},
    report::Failure,
};
use jackfield_wire::{Frame, Kind};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The hub ends an agent that does not stop after six seconds.
const STOP_MAX: Duration = Duration::from_secs(15);

/// A run that shall fail at an ask fails at once, whatever the agent makes of it.
const FAIL_MAX: Duration = Duration::from_millis(500);

/// Which turn, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follow<'a> {
    pub(crate) session: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) format: Format,
    pub(crate) rules: Rules,
    pub(crate) deadline: Option<Deadline>,
}

/// Why we asked the turn to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    Interrupted,
    TimedOut { seconds: u64 },
    Denied,
}

/// How following a turn ended.
pub(crate) struct Done {
    /// The turn itself is over, or shall be; otherwise we only left.
    pub(crate) over: bool,
    pub(crate) outcome: Result<(), Failure>,
}

pub(crate) struct Turn<'a> {
    conn: &'a mut Conn,
    out: Out,
    follow: Follow<'a>,
    transcript: Transcript,
    /// Asks that wait for a person; the first is on the screen.
    open: VecDeque<Ask>,
    /// What was asked and refused, in words.
    denied: Vec<String>,
    stopping: Option<Stopping>,
    limit: Option<Instant>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(conn: &'a mut Conn, out: &Out, follow: Follow<'a>) -> Turn<'a> {
        let side = if follow.format == Format::Text { Side::Stderr } else { Side::Nowhere };
        Turn {
            conn,
            out: out.clone(),
            follow,
            transcript: Transcript::new(out, side),
            open: VecDeque::new(),
            denied: Vec::new(),
            stopping: None,
            limit: follow.deadline.map(|it| it.at),
        }
    }

    /// Waits for the answer to the prompt with this id.
    pub(crate) fn run(mut self, id: u64) -> Done {
        let answer = self.wait(id);
        let over = matches!(answer, Ok(_) | Err(Failure::Answer(_) | Failure::Denied { .. }));
        let printed = self.print_end(answer.is_ok());
        Done { over, outcome: printed.and_then(|()| self.outcome(answer)) }
    }

    fn print_end(&mut self, good: bool) -> Result<(), Failure> {
        self.transcript.finish()?;
        if self.follow.format == Format::Quiet && good {
            self.out.data(self.transcript.final_words())?;
            self.out.end_line()?;
        }
        Ok(())
    }

    fn wait(&mut self, id: u64) -> Result<Value, Failure> {
        loop {
            match self.conn.next(self.limit)? {
                Heard::Frame(frame) if is_answer(&frame, id) => return result_of(&frame),
                Heard::Frame(frame) => self.on_frame(&frame)?,
                Heard::Typed(line) => self.on_typed(&line)?,
                Heard::TypedEnd => self.on_typed_end()?,
                Heard::Interrupt => self.on_interrupt()?,
                Heard::TimedOut => self.on_timeout()?,
                Heard::HubGone => {
                    let waited_for = format!("the answer of {}", self.follow.agent);
                    return Err(Failure::HubGone { waited_for });
                }
            }
        }
    }

    fn outcome(&self, answer: Result<Value, Failure>) -> Result<(), Failure> {
        let waited_for = || format!("the answer of {}", self.follow.agent);
        match self.stopping {
            // We left, or could not go on: what happened first is not what counts.
            _ if matches!(&answer, Err(it) if !matches!(it, Failure::Answer(_))) => {}
            Some(Stopping::Interrupted) => {
                return Err(Failure::Interrupted { waited_for: waited_for() });
            }
            Some(Stopping::TimedOut { seconds }) => {
                return Err(Failure::TimedOut { seconds, waited_for: waited_for() });
            }
            Some(Stopping::Denied) => return Err(self.refused()),
            None => {}
        }
        match answer?["stopReason"].as_str().unwrap_or_default() {
            "end_turn" if !self.denied.is_empty() => Err(self.refused()),
            "end_turn" => Ok(()),
            "cancelled" => Err(Failure::Cancelled),
            reason => Err(Failure::Stopped { reason: reason.to_owned() }),
        }
    }

    fn refused(&self) -> Failure {
        Failure::Denied { asks: self.denied.clone() }
    }

    fn on_frame(&mut self, frame: &Frame) -> Result<(), Failure> {
        let params = || -> Value {
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default()
        };
        match (frame.kind(), frame.method().as_deref()) {
            (Kind::Request, _) => self.on_request(frame),
            (Kind::Notification, Some("session/update")) => {
                self.transcript.update(&params()["update"])
            }
            (Kind::Notification, Some("$/cancel_request")) => {
                self.withdraw(frame.request_id().unwrap_or_default());
                Ok(())
            }
            (Kind::Notification, Some("_jackfield/session" | "_jackfield/turn")) => {
                self.on_fact(&params())
            }
            _ => Ok(()),
        }
    }

    /// The outcome is ours to report, and what we did ourselves is no news.
    fn on_fact(&mut self, fact: &Value) -> Result<(), Failure> {
        match fact["is"].as_str() {
            Some("bound" | "quiet") => self.transcript.notice(fact),
            Some("cancelled") if fact["step"].as_u64() != Some(1) => self.transcript.notice(fact),
            _ => Ok(()),
        }
    }

    fn on_request(&mut self, frame: &Frame) -> Result<(), Failure> {
        let Some(ask) = Ask::parse(frame, &mut |call| self.transcript.tool(call)) else {
            return self.conn.refuse(frame);
        };
        match self.follow.rules.judge(&ask) {
            Verdict::Allow(answer) => {
                self.note(&format!("allowed: {}", ask.title()));
                self.conn.answer(&ask.id, &answer)
            }
            Verdict::AskPerson => {
                self.transcript.finish()?;
                self.conn.heed_typing()?;
                self.open.push_back(ask);
                if self.open.len() == 1 {
                    self.show_question();
                }
                Ok(())
            }
            Verdict::LeaveOpen => {
                let session = self.follow.session;
                self.note(&format!(
                    "{} asks: {}; answer it with `jackfield answer {session} …` or `jackfield attach \
                     {session}`",
                    self.follow.agent,
                    ask.title()
                ));
                Ok(())
            }
            Verdict::Deny(answer) => self.deny(&ask, &answer),
            Verdict::Fail(answer) => {
                self.deny(&ask, &answer)?;
                self.stop(Stopping::Denied)
            }
        }
    }

    fn deny(&mut self, ask: &Ask, answer: &Value) -> Result<(), Failure> {
        self.denied.push(format!("{} asked: {}", self.follow.agent, ask.title()));
        self.note(&format!("denied: {}", ask.title()));
        self.conn.answer(&ask.id, answer)
    }

    fn on_typed(&mut self, line: &str) -> Result<(), Failure> {
        let Some(ask) = self.open.front() else { return Ok(()) };
        let Some(answer) = ask.typed(line) else {
            self.show_question();
            return Ok(());
        };
        let id = ask.id.clone();
        self.open.pop_front();
        self.conn.answer(&id, &answer)?;
        self.show_question();
        Ok(())
    }

    /// Nobody can answer any more.
    fn on_typed_end(&mut self) -> Result<(), Failure> {
        self.follow.rules.otherwise.get_or_insert(crate::ask::OnAsk::Deny);
        while let Some(ask) = self.open.pop_front() {
            self.deny(&ask, &ask.deny())?;
        }
        Ok(())
    }

    fn show_question(&self) {
        if let Some(ask) = self.open.front() {
            self.out.question(&ask.question(self.follow.agent));
        }
    }

    /// Another client answered, or the agent no longer wants to know.
    fn withdraw(&mut self, request: &str) {
        let shown = self.open.front().is_some_and(|it| it.id == request);
        self.open.retain(|it| it.id != request);
        if shown {
            self.out.alert("");
            self.note("that ask is settled");
            self.show_question();
        }
    }

    fn on_interrupt(&mut self) -> Result<(), Failure> {
        if self.stopping.is_some() {
            let waited_for = format!("{} to stop", self.follow.agent);
            return Err(Failure::Interrupted { waited_for });
        }
        self.out.alert(&format!(
            "cancelling: waiting for {} to stop; Ctrl-C again leaves at once",
            self.follow.agent
        ));
        self.stop(Stopping::Interrupted)
    }

    fn on_timeout(&mut self) -> Result<(), Failure> {
        let waited_for = format!("{} to stop", self.follow.agent);
        match (self.stopping, self.follow.deadline) {
            (None, Some(Deadline { seconds, .. })) => {
                self.note(&format!("timed out after {seconds} s: waiting for {waited_for}"));
                self.stop(Stopping::TimedOut { seconds })
            }
            (Some(Stopping::TimedOut { seconds }), _) => {
                Err(Failure::TimedOut { seconds, waited_for })
            }
            (Some(Stopping::Denied), _) => Err(self.refused()),
            _ => Err(Failure::Interrupted { waited_for }),
        }
    }

    fn stop(&mut self, why: Stopping) -> Result<(), Failure> {
        if self.stopping.is_none() {
            self.stopping = Some(why);
            let grace = if why == Stopping::Denied { FAIL_MAX } else { STOP_MAX };
            self.limit = Some(Instant::now() + grace);
            // The hub settles the asks of a turn that is cancelled.
            self.open.clear();
            let params = json!({ "sessionId": self.follow.session });
            self.conn.notify("session/cancel", &params)?;
        }
        Ok(())
    }

    fn note(&self, line: &str) {
        if self.follow.format == Format::Text {
            self.out.note(line);
        }
    }
}
