//! The client whose prompts run: words are printed, asks answered, and there is always a way to stop.

use super::{goal::Goal, input::Input, lines::Lines};
use crate::{
    ask::{Ask, Rules},
    hub::{Conn, Deadline, Heard, Hearing, event_of, is_answer, result_of},
    out::{Out, Retold, Side, Telling, Transcript},
    report::Failure,
};
use jackfield_events::{EventBody, ReceivedEvent, RequestServed, ServedOutcome, UserAsked};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The hub ends an agent that does not stop after six seconds.
const STOP_MAX: Duration = Duration::from_secs(15);

/// A run that shall fail at an ask fails at once, whatever the agent makes of it.
const FAIL_MAX: Duration = Duration::from_millis(500);

/// How turns are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) format: Telling,
    pub(super) rules: Rules,
    /// Seconds a turn may take, where each has a limit of its own.
    pub(super) timeout: Option<u64>,
    pub(super) input: Input,
}

impl Manner {
    /// Where short lines for people go.
    pub(super) fn side(&self) -> Side {
        if self.format == Telling::Text { Side::Stderr } else { Side::Nowhere }
    }
}

/// Why we asked the turn to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    Interrupted,
    /// A line of stdin said so.
    Told,
    TimedOut {
        seconds: u64,
    },
    Denied,
}

/// How following ended.
pub(super) struct Done {
    /// The turn itself is over, or shall be; otherwise we only left.
    pub(super) over: bool,
    pub(super) outcome: Result<(), Failure>,
}

/// The turn that runs.
pub(super) struct Turn {
    deadline: Option<Deadline>,
    /// Until when it is waited for.
    limit: Option<Instant>,
    stopping: Option<Stopping>,
    /// What was asked and refused, in words.
    pub(super) denied: Vec<String>,
    /// A rule of the policy refused some of it.
    pub(super) denied_by_rule: bool,
}

pub(super) struct Driver<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) out: Out,
    pub(super) goal: &'a Goal,
    pub(super) manner: Manner,
    pub(super) transcript: Transcript,
    /// Where the conversation is told in another vocabulary.
    retold: Option<(Hearing, Retold)>,
    /// Asks that wait for a person; the first is on the screen.
    pub(super) open: VecDeque<Ask>,
    pub(super) turn: Option<Turn>,
    /// It was said that the agent does not ask.
    warned: bool,
    /// What stdin says, if its lines are prompts.
    pub(super) lines: Option<Lines>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(conn: &'a mut Conn, out: &Out, goal: &'a Goal, manner: Manner) -> Driver<'a> {
        let retold = Retold::new(out, manner.format, &goal.session);
        Driver {
            conn,
            out: out.clone(),
            goal,
            manner,
            transcript: Transcript::new(out, manner.side()),
            retold: retold.map(|it| (Hearing::default(), it)),
            open: VecDeque::new(),
            turn: None,
            warned: false,
            lines: None,
        }
    }

    /// One turn, from the prompt to its outcome.
    pub(super) fn turn(&mut self, prompt: &Value, deadline: Option<Deadline>) -> Done {
        let limit = deadline.map(|it| it.at);
        let denied = Vec::new();
        self.turn = Some(Turn { deadline, limit, stopping: None, denied, denied_by_rule: false });
        let answer = self.follow(prompt);
        let turn = self.turn.take();
        let over = match &answer {
            Err(it) => matches!(it, Failure::Answer(_) | Failure::Denied { .. } | Failure::TooLong),
            Ok(_) => true,
        };
        let printed = self.print_end(answer.is_ok());
        let outcome = printed.and_then(|()| match turn {
            Some(turn) => self.outcome(&turn, answer),
            None => answer.map(drop),
        });
        Done { over, outcome }
    }

    /// Waits for the answer to the prompt.
    fn follow(&mut self, prompt: &Value) -> Result<Value, Failure> {
        let id = self.conn.ask(Method::SessionPrompt.name(), prompt)?;
        loop {
            match self.conn.next(self.turn.as_ref().and_then(|it| it.limit))? {
                Heard::Frame(frame) if is_answer(&frame, id) => return result_of(&frame),
                Heard::Frame(frame) => self.on_frame(&frame)?,
                Heard::Typed(line) => self.on_typed(line)?,
                Heard::TypedEnd => self.on_typed_end()?,
                Heard::Interrupt => self.on_interrupt()?,
                Heard::TimedOut => self.on_timeout()?,
                Heard::HubGone => {
                    let waited_for = format!("the answer of {}", self.goal.agent);
                    return Err(Failure::HubGone { waited_for });
                }
            }
        }
    }

    fn print_end(&mut self, good: bool) -> Result<(), Failure> {
        self.transcript.finish()?;
        if self.manner.format == Telling::Quiet && good {
            self.out.data(self.transcript.final_words())?;
            self.out.end_line()?;
        }
        Ok(())
    }

    fn outcome(&self, turn: &Turn, answer: Result<Value, Failure>) -> Result<(), Failure> {
        let waited_for = || format!("the answer of {}", self.goal.agent);
        match turn.stopping {
            // We left, or could not go on: what happened first is not what counts.
            _ if matches!(&answer, Err(it) if !matches!(it, Failure::Answer(_))) => {}
            // Who goes on afterwards is told of the turn, not of the command.
            Some(Stopping::Interrupted) if self.lines.is_none() => {
                return Err(Failure::Interrupted { waited_for: waited_for() });
            }
            Some(Stopping::TimedOut { seconds }) => {
                return Err(Failure::TimedOut { seconds, waited_for: waited_for() });
            }
            Some(Stopping::Denied) => return Err(self.refused(turn)),
            Some(Stopping::Interrupted | Stopping::Told) | None => {}
        }
        match answer?["stopReason"].as_str().unwrap_or_default() {
            "end_turn" if !turn.denied.is_empty() => Err(self.refused(turn)),
            "end_turn" => Ok(()),
            "cancelled" => Err(Failure::Cancelled),
            reason => Err(Failure::Stopped { reason: reason.to_owned() }),
        }
    }

    pub(super) fn on_frame(&mut self, frame: &Frame) -> Result<(), Failure> {
        if let Some((hearing, retold)) = &mut self.retold
            && let Some(event) = hearing.event(frame)
        {
            retold.event(&event)?;
        }
        match (frame.kind(), frame.known_method()) {
            (Kind::Request, _) => self.on_request(frame),
            (Kind::Notification, Some(Method::SessionUpdate)) => {
                let params: Value =
                    serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
                self.transcript.update(&params["update"])
            }
            (Kind::Notification, Some(Method::CancelRequest)) => {
                self.withdraw(frame.request_id().unwrap_or_default());
                Ok(())
            }
            (
                Kind::Notification,
                Some(Method::ControlSession | Method::ControlTurn | Method::ControlAsk),
            ) => event_of(frame).map_or(Ok(()), |it| self.on_event(&it)),
            _ => Ok(()),
        }
    }

    /// The outcome is ours to report, and what we did ourselves is no news.
    fn on_event(&mut self, event: &ReceivedEvent) -> Result<(), Failure> {
        match &event.body {
            EventBody::Bound(_) | EventBody::Quiet(_) => self.transcript.event(event),
            EventBody::Unasked(unasked) if !std::mem::replace(&mut self.warned, true) => {
                let what = unasked.call["title"].as_str().unwrap_or("a tool");
                let agent = &self.goal.agent;
                self.conn
                    .warn(&format!("{agent} ran `{what}` without asking: rules do nothing here"));
                Ok(())
            }
            EventBody::Asked(UserAsked { decision: Some(decision), frame, .. })
                if decision["effect"] == "deny" =>
            {
                let what = self.transcript.tool(&frame["params"]["toolCall"]).title;
                self.report_denial(&what, decision);
                Ok(())
            }
            EventBody::Served(RequestServed { call, decision, outcome }) => {
                if let ServedOutcome::Denied(_) = outcome {
                    let what = call["path"].as_str().or(call["command"].as_str());
                    let decision = decision.as_ref().unwrap_or(&Value::Null);
                    self.report_denial(what.unwrap_or_default(), decision);
                }
                Ok(())
            }
            EventBody::Cancelled(cancelled) if cancelled.step != 1 => self.transcript.event(event),
            _ => Ok(()),
        }
    }

    fn on_interrupt(&mut self) -> Result<(), Failure> {
        if self.turn.as_ref().is_some_and(|it| it.stopping.is_some()) {
            let waited_for = format!("{} to stop", self.goal.agent);
            return Err(Failure::Interrupted { waited_for });
        }
        self.out.alert(&format!(
            "cancelling: waiting for {} to stop; Ctrl-C again leaves at once",
            self.goal.agent
        ));
        self.stop(Stopping::Interrupted)
    }

    fn on_timeout(&mut self) -> Result<(), Failure> {
        let waited_for = format!("{} to stop", self.goal.agent);
        let Some(turn) = &self.turn else { return Ok(()) };
        match (turn.stopping, turn.deadline) {
            (None, Some(Deadline { seconds, .. })) => {
                self.note(&format!("timed out after {seconds} s: waiting for {waited_for}"));
                self.stop(Stopping::TimedOut { seconds })
            }
            (Some(Stopping::TimedOut { seconds }), _) => {
                Err(Failure::TimedOut { seconds, waited_for })
            }
            (Some(Stopping::Denied), _) => Err(self.refused(turn)),
            _ => Err(Failure::Interrupted { waited_for }),
        }
    }

    /// Asks the turn to stop, once.
    pub(super) fn stop(&mut self, why: Stopping) -> Result<(), Failure> {
        let Some(turn) = self.turn.as_mut().filter(|it| it.stopping.is_none()) else {
            return Ok(());
        };
        turn.stopping = Some(why);
        // Who reads events wants the one that ends the turn, too.
        let at_once = why == Stopping::Denied && self.retold.is_none();
        let grace = if at_once { FAIL_MAX } else { STOP_MAX };
        turn.limit = Some(Instant::now() + grace);
        // The hub settles the asks of a turn that is cancelled.
        self.open.clear();
        let params = json!({ "sessionId": self.goal.session });
        self.conn.notify(Method::SessionCancel.name(), &params)
    }

    fn refused(&self, turn: &Turn) -> Failure {
        let ruled_in = turn.denied_by_rule.then(|| self.goal.session.clone());
        Failure::Denied { asks: turn.denied.clone(), ruled_in }
    }

    pub(super) fn note(&self, line: &str) {
        if self.manner.format == Telling::Text {
            self.out.note(line);
        }
    }
}
