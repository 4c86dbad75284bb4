//! The session on the screen: what is said in it, and what is typed here.

use super::super::log::tell;
use crate::{
    ask::Ask,
    hub::{Conn, Heard, Hearing, Row, event_of, is_answer, result_of},
    out::{DIM, Out, Retold, Side, Telling, Transcript, paint},
    report::Failure,
};
use jackfield_events::{EventBody, TurnOutcome, UserAsked};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    io::{self, IsTerminal as _},
};

/// The session on the screen.
pub(super) struct View {
    conn: Conn,
    out: Out,
    row: Row,
    format: Telling,
    transcript: Transcript,
    /// Where it is told in another vocabulary.
    retold: Option<(Hearing, Retold)>,
    /// Our prompts that have no answer yet.
    prompts: BTreeSet<u64>,
    /// Asks that wait for an answer; the first is on the screen.
    open: VecDeque<Ask>,
    turn: Turn,
    /// The last turn's bad end is on the screen already.
    told: bool,
    /// Nothing more is typed: leave when our prompts are answered.
    leaving: bool,
    live: bool,
}

/// The turn that runs, ours or another client's.
#[derive(PartialEq, Eq)]
enum Turn {
    None,
    Running,
    /// We asked it to stop.
    Cancelled,
}

/// What to do next.
#[derive(PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}

impl View {
    pub(super) fn new(conn: Conn, out: &Out, row: Row, format: Telling) -> View {
        let side = if format == Telling::Text { Side::Stderr } else { Side::Nowhere };
        let retold = Retold::new(out, format, &row.session_id);
        let works = matches!(row.state.as_str(), "working" | "asks");
        View {
            conn,
            out: out.clone(),
            row,
            format,
            transcript: Transcript::new(out, side),
            retold: retold.map(|it| (Hearing::default(), it)),
            prompts: BTreeSet::new(),
            open: VecDeque::new(),
            turn: if works { Turn::Running } else { Turn::None },
            told: false,
            leaving: false,
            live: false,
        }
    }

    /// Until somebody wants to leave; `attach` is the request that brings the past.
    pub(super) fn run(mut self, attach: u64) -> Result<(), Failure> {
        self.note(&format!(
            "{} with {} in {}; /detach leaves, /cancel stops the turn",
            self.row.session_id, self.row.agent, self.row.cwd
        ));
        loop {
            let next = match self.conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, attach) => {
                    result_of(&frame)?;
                    self.go_live()?
                }
                Heard::Frame(frame) => self.on_frame(&frame)?,
                Heard::Typed(line) => self.on_typed(line?.trim())?,
                Heard::TypedEnd => self.on_typed_end(),
                Heard::Interrupt => self.on_interrupt()?,
                Heard::TimedOut => Next::Stay,
                Heard::HubGone => {
                    self.transcript.finish()?;
                    let waited_for = "what is said next".to_owned();
                    return Err(Failure::HubGone { waited_for });
                }
            };
            if next == Next::Leave {
                return self.transcript.finish();
            }
        }
    }

    /// The past is on the screen: from now on typing counts.
    fn go_live(&mut self) -> Result<Next, Failure> {
        self.live = true;
        self.transcript.finish()?;
        self.show_question();
        self.conn.heed_typing()?;
        Ok(Next::Stay)
    }

    fn on_frame(&mut self, frame: &Frame) -> Result<Next, Failure> {
        match (frame.kind(), frame.known_method()) {
            (Kind::Request, _) => self.on_request(frame)?,
            (Kind::Response, _) => return self.on_answer(frame),
            (Kind::Notification, Some(Method::CancelRequest)) => {
                let request = frame.request_id().unwrap_or_default();
                self.open.retain(|it| it.id != request);
                self.show_question();
            }
            (Kind::Notification, _) => {
                if let Some((hearing, retold)) = &mut self.retold
                    && let Some(event) = hearing.event(frame)
                {
                    retold.event(&event)?;
                }
                let event = event_of(frame);
                // A permission request comes as a question of its own; a form does not.
                match event.as_ref().map(|it| &it.body) {
                    Some(EventBody::Asked(asked)) if self.live && is_permission(asked) => {
                        self.transcript.asked(asked);
                    }
                    _ => tell(&mut self.transcript, frame)?,
                }
                if let Some(event) = event {
                    self.on_event(&event.body)?;
                }
                if self.turn == Turn::None {
                    self.transcript.finish()?;
                }
            }
        }
        Ok(Next::Stay)
    }

    fn on_event(&mut self, body: &EventBody<Value>) -> Result<(), Failure> {
        match body {
            EventBody::Prompted(_) => {
                self.turn = Turn::Running;
                self.told = false;
            }
            EventBody::Ended(ended) => {
                self.turn = Turn::None;
                self.told = !matches!(ended.outcome, TurnOutcome::Stopped(_));
                if self.format == Telling::Quiet && self.live {
                    self.out.data(self.transcript.final_words())?;
                    self.out.end_line()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn on_request(&mut self, frame: &Frame) -> Result<(), Failure> {
        match Ask::parse(frame, &mut |call| self.transcript.tool(call)) {
            None => self.conn.refuse(frame),
            Some(ask) => {
                self.transcript.finish()?;
                self.open.push_back(ask);
                if self.open.len() == 1 {
                    self.show_question();
                }
                Ok(())
            }
        }
    }

    /// The answer to a prompt of ours; how the turn went was told as an event, unless there was none.
    fn on_answer(&mut self, frame: &Frame) -> Result<Next, Failure> {
        let id = frame.id().and_then(|it| it.parse().ok()).unwrap_or_default();
        if !self.prompts.remove(&id) {
            return Ok(Next::Stay);
        }
        self.transcript.finish()?;
        if let Err(failure) = result_of(frame)
            && !self.told
        {
            failure.report(&self.out);
        }
        Ok(if self.leaving && self.prompts.is_empty() { Next::Leave } else { Next::Stay })
    }

    fn on_typed(&mut self, line: &str) -> Result<Next, Failure> {
        match line {
            "/detach" | "/quit" => return Ok(Next::Leave),
            "/cancel" => self.cancel()?,
            "/steer" => self.note("say what instead: `/steer TEXT`"),
            _ if line.starts_with("/steer ") => {
                self.prompt(line["/steer ".len()..].trim_start(), true)?;
            }
            _ => {
                if let Some(ask) = self.open.front() {
                    let (answer, id) = (ask.typed(line), ask.id.clone());
                    if let Some(answer) = answer {
                        self.open.pop_front();
                        self.conn.answer(&id, &answer)?;
                    }
                    self.show_question();
                } else if !line.is_empty() {
                    self.prompt(line, false)?;
                }
            }
        }
        Ok(Next::Stay)
    }

    fn prompt(&mut self, line: &str, steers: bool) -> Result<(), Failure> {
        let blocks = json!([{ "type": "text", "text": line }]);
        let mut params = json!({ "sessionId": self.row.session_id, "prompt": blocks });
        if steers {
            params["_meta"] = json!({ "jackfield": { "steer": true } });
        }
        let id = self.conn.ask(Method::SessionPrompt.name(), &params)?;
        self.prompts.insert(id);
        if steers && self.turn == Turn::Running {
            self.turn = Turn::Cancelled;
            // The hub settles the asks of a turn that it stops.
            self.open.clear();
            self.note("stopping the running turn");
        } else if self.turn != Turn::None {
            self.note("queued behind the running turn");
        }
        Ok(())
    }

    fn on_typed_end(&mut self) -> Next {
        self.leaving = true;
        let waits = !self.prompts.is_empty() && !io::stdin().is_terminal();
        if waits { Next::Stay } else { Next::Leave }
    }

    fn on_interrupt(&mut self) -> Result<Next, Failure> {
        if self.turn != Turn::Running {
            return Ok(Next::Leave);
        }
        self.out.alert(&format!(
            "cancelling: waiting for {} to stop; Ctrl-C again leaves",
            self.row.agent
        ));
        self.cancel()?;
        Ok(Next::Stay)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        if self.turn == Turn::Running {
            self.turn = Turn::Cancelled;
        }
        let params = json!({ "sessionId": self.row.session_id });
        self.conn.notify(Method::SessionCancel.name(), &params)
    }

    fn note(&self, line: &str) {
        if self.format == Telling::Text {
            self.out.note(&paint(DIM, line));
        }
    }

    fn show_question(&mut self) {
        if let (true, Some(ask)) = (self.live, self.open.front()) {
            self.conn.show_question(&ask.question(&self.row.agent));
        }
    }
}

fn is_permission(asked: &UserAsked<Value>) -> bool {
    asked.frame["method"] == Method::SessionRequestPermission.name()
}
