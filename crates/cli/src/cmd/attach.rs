//! `jackfield attach`: a session in the terminal, line by line. Typed lines are prompts, or answers
//! to what the agent asks.

use super::{log::tell, run::prepare_to_wake};
use crate::{
    app::Desk,
    ask::Ask,
    env,
    hub::{Conn, Heard, Row, find, is_answer, result_of, sessions},
    out::{DIM, Out, Side, Transcript, paint},
    report::Failure,
};
use clap::Args;
use jackfield_wire::{Frame, Kind};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, VecDeque},
    io::{self, IsTerminal as _},
};

/// Follow a session live: type prompts, answer what the agent asks
///
/// Lines you type are prompts. `/steer TEXT` stops the running turn and says that instead, `/cancel`
/// stops it and withdraws what waits, `/detach` (or `/quit`, or Ctrl-D) leaves; the session goes on
/// without you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield attach
  $ jackfield attach s-7f3 --all
  $ echo \"Go on\" | jackfield attach s-7f3")]
pub(crate) struct Attach {
    /// An id, a unique prefix of one, or a title [default: the latest that is running]
    session: Option<String>,

    /// Begin behind this event [default: with the last turn]
    #[arg(long, env = env::AFTER, hide_env_values = true, value_name = "SEQ")]
    after: Option<u64>,

    /// Begin with the first event
    #[arg(long, env = env::ALL, hide_env_values = true, value_parser = env::flag())]
    all: bool,
}

impl Attach {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("attach")?;
        let rows = sessions(&mut conn)?;
        let row = match &self.session {
            Some(named) => find(&rows, named)?,
            None => rows.iter().find(|it| it.is_live()).ok_or(Failure::NothingLive)?.clone(),
        };
        let after = match (self.all, self.after) {
            (true, _) => 0,
            (false, Some(after)) => after,
            (false, None) => last_turn(desk, &row)?,
        };
        prepare_to_wake(&mut conn, &row)?;
        conn.heed_signals()?;
        let params = json!({ "sessionId": row.session_id, "after": after });
        let attach = conn.ask("_jackfield/attach", &params)?;
        View::new(conn, &desk.out, row).run(attach)
    }
}

/// Behind which event the last turn begins: looked for from the end, in ever longer pieces.
fn last_turn(desk: &Desk, row: &Row) -> Result<u64, Failure> {
    const LOOKS: [u64; 3] = [256, 8_192, u64::MAX];
    for look in LOOKS {
        let from = row.events.saturating_sub(look);
        let began = look_for_prompt(desk, row, from)?;
        if let Some(seq) = began {
            return Ok(seq - 1);
        }
        if from == 0 {
            break;
        }
    }
    Ok(0)
}

/// The last prompt behind an event. On a connection of its own: what is heard here is not shown.
fn look_for_prompt(desk: &Desk, row: &Row, from: u64) -> Result<Option<u64>, Failure> {
    let mut conn = desk.dial.talk("attach")?;
    let params = json!({ "sessionId": row.session_id, "after": from, "observe": true });
    let id = conn.ask("_jackfield/attach", &params)?;
    let mut found = None;
    loop {
        match conn.next(None)? {
            Heard::Frame(frame) if is_answer(&frame, id) => {
                result_of(&frame)?;
                return Ok(found);
            }
            Heard::Frame(frame) if frame.method().as_deref() == Some("_jackfield/turn") => {
                let fact = params_of(&frame);
                if fact["is"] == "prompted" {
                    found = fact["seq"].as_u64().filter(|it| 0 < *it).or(found);
                }
            }
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: "the last turn".into() });
            }
            _ => {}
        }
    }
}

/// The session on the screen.
struct View {
    conn: Conn,
    out: Out,
    row: Row,
    transcript: Transcript,
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
    fn new(conn: Conn, out: &Out, row: Row) -> View {
        let transcript = Transcript::new(out, Side::Stderr);
        let works = matches!(row.state.as_str(), "working" | "asks");
        View {
            conn,
            out: out.clone(),
            row,
            transcript,
            prompts: BTreeSet::new(),
            open: VecDeque::new(),
            turn: if works { Turn::Running } else { Turn::None },
            told: false,
            leaving: false,
            live: false,
        }
    }

    fn run(mut self, attach: u64) -> Result<(), Failure> {
        self.out.note(&paint(
            DIM,
            format!(
                "{} with {} in {}; /detach leaves, /cancel stops the turn",
                self.row.session_id, self.row.agent, self.row.cwd
            ),
        ));
        loop {
            let next = match self.conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, attach) => {
                    result_of(&frame)?;
                    self.go_live()?
                }
                Heard::Frame(frame) => self.on_frame(&frame)?,
                Heard::Typed(line) => self.on_typed(line.trim())?,
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
        match (frame.kind(), frame.method().as_deref()) {
            (Kind::Request, _) => self.on_request(frame)?,
            (Kind::Response, _) => return self.on_answer(frame),
            (Kind::Notification, Some("$/cancel_request")) => {
                let request = frame.request_id().unwrap_or_default();
                self.open.retain(|it| it.id != request);
                self.show_question();
            }
            (Kind::Notification, method) => {
                let fact = params_of(frame);
                if method == Some("_jackfield/turn") {
                    self.on_turn(&fact);
                }
                // What we can be asked comes as a question of its own; a form does not.
                let question = fact["frame"]["method"] == "session/request_permission";
                if self.live && fact["is"] == "asked" && question {
                    self.transcript.asked(&fact);
                } else {
                    tell(&mut self.transcript, frame)?;
                }
                if self.turn == Turn::None {
                    self.transcript.finish()?;
                }
            }
        }
        Ok(Next::Stay)
    }

    fn on_turn(&mut self, fact: &Value) {
        match fact["is"].as_str() {
            Some("prompted") => {
                self.turn = Turn::Running;
                self.told = false;
            }
            Some("ended") => {
                self.turn = Turn::None;
                self.told = fact["how"] != "stopped";
            }
            _ => {}
        }
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
            "/steer" => self.out.note("say what instead: `/steer TEXT`"),
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
        let id = self.conn.ask("session/prompt", &params)?;
        self.prompts.insert(id);
        if steers && self.turn == Turn::Running {
            self.turn = Turn::Cancelled;
            // The hub settles the asks of a turn that it stops.
            self.open.clear();
            self.out.note(&paint(DIM, "stopping the running turn"));
        } else if self.turn != Turn::None {
            self.out.note(&paint(DIM, "queued behind the running turn"));
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
        self.conn.notify("session/cancel", &params)
    }

    fn show_question(&self) {
        if let (true, Some(ask)) = (self.live, self.open.front()) {
            self.out.question(&ask.question(&self.row.agent));
        }
    }
}

fn params_of(frame: &Frame) -> Value {
    serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default()
}
