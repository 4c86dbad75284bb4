//! `jackfield run`: one prompt, its answer, its outcome.

use super::turn::{Follow, Turn};
use crate::{
    app::Desk,
    ask::{Approve, OnAsk, Rules},
    env,
    hub::{
        Address, AgentChoice, Conn, Deadline, Heard, Hosted, Row, Until, Wait, find, greet,
        initialize, is_answer, result_of, sessions, working_directory,
    },
    out::{DIM, Format, paint},
    report::Failure,
};
use clap::Args;
use serde_json::{Value, json};
use std::{ffi::OsString, io::Read as _, path::PathBuf};

/// Run one prompt: stream the answer, exit with the outcome
///
/// The agent's words go to stdout, what it does to stderr. On a terminal you are asked before a tool
/// runs; elsewhere `--approve` and `--on-ask` answer for you.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which stands alone")]
#[command(after_help = "Examples:
  $ jackfield run \"What does this project do?\" -- goose acp
  $ jackfield run -a claude --approve reads \"Find the bug in parse.rs\"
  $ git diff | jackfield run -a codex --format quiet --timeout 300 -
  $ jackfield run -s s-7f3 \"Go on\"
  $ jackfield run -s s-7f3 --steer \"No, the other file\"")]
pub(crate) struct Run {
    /// What to say to the agent; `-` reads it from stdin
    prompt: Option<String>,

    /// An agent by its name; `jackfield agents` lists them
    #[arg(short, long, env = env::AGENT, hide_env_values = true)]
    agent: Option<String>,

    /// Go on with this session: an id, a unique prefix of one, or a title
    #[arg(short, long, env = env::SESSION, hide_env_values = true)]
    session: Option<String>,

    /// Stop what the session does and say this instead, before whatever waits
    #[arg(long, env = env::STEER, hide_env_values = true, value_parser = env::flag(), requires = "session")]
    steer: bool,

    /// The directory the agent works in [default: this one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Cancel the turn after so many seconds, with exit code 3
    #[arg(long, env = env::TIMEOUT, hide_env_values = true, value_name = "SECS")]
    timeout: Option<u64>,

    /// What to allow without asking; never for good
    #[arg(long, env = env::APPROVE, hide_env_values = true, value_enum, default_value_t = Approve::None)]
    approve: Approve,

    /// What to do with other asks [default: ask on a terminal, deny elsewhere]
    #[arg(long, env = env::ON_ASK, hide_env_values = true, value_enum)]
    on_ask: Option<OnAsk>,

    /// How to print what the agent says
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,

    /// Do not wait for the answer: print the session's id and leave
    #[arg(long, env = env::NO_WAIT, hide_env_values = true, value_parser = env::flag())]
    no_wait: bool,

    /// Leave the agent running when the turn is over, ready for `-s`
    #[arg(long, env = env::KEEP, hide_env_values = true, value_parser = env::flag())]
    keep: bool,

    /// Use no daemon: a hub in this process that forgets everything, for CI and containers
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag())]
    isolated: bool,

    /// The command of an agent; it sees your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The session a prompt goes to.
struct Goal {
    session: String,
    agent: String,
    /// We opened or woke it, so we close it.
    ours: bool,
}

impl Run {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        if self.isolated && (self.session.is_some() || self.no_wait) {
            let message = "a hub in this process knows no earlier sessions and outlives no command";
            let hint = "leave out `--isolated`, or `--session` and `--no-wait`";
            return Err(Failure::usage(message, hint));
        }
        let prompt = self.prompt()?;
        let cwd = working_directory(self.cwd.as_deref())?;
        let choice = AgentChoice::new(self.agent.clone(), &self.command)?;
        if !matches!(desk.dial.address(), Address::Tcp(_)) {
            choice.check()?;
        }
        let deadline = self.timeout.map(Deadline::after);
        // Declared first, dropped last: the hub in this process ends when its client has left.
        let (_hosted, socket) = if self.isolated {
            let (hosted, socket) = Hosted::start(desk.dial.paths())?;
            (Some(hosted), socket)
        } else {
            (None, desk.dial.open()?)
        };
        let mut conn = Conn::new(socket, &desk.out)?;
        conn.heed_signals()?;
        let raw = self.format == Format::Json && !self.no_wait;
        if raw {
            conn.tap();
        }
        let goal = match &self.session {
            Some(named) => self.go_on(&mut conn, named, &choice, &cwd)?,
            None => self.begin(&mut conn, &choice, &cwd, deadline)?,
        };
        if self.format == Format::Text && !self.no_wait {
            desk.out.note(&paint(DIM, format!("session {}", goal.session)));
        }
        let blocks = json!([{ "type": "text", "text": prompt }]);
        let mut params = json!({ "sessionId": goal.session, "prompt": blocks });
        if self.steer {
            params["_meta"] = json!({ "jackfield": { "steer": true } });
        }
        let id = conn.ask("session/prompt", &params)?;
        if self.no_wait {
            return self.leave(&mut conn, &goal, id, desk);
        }
        let follow = Follow {
            session: &goal.session,
            agent: &goal.agent,
            format: self.format,
            rules: self.rules(desk),
            deadline,
        };
        let done = Turn::new(&mut conn, &desk.out, follow).run(id);
        if goal.ours && !self.keep && done.over {
            close(&mut conn, &goal);
        }
        done.outcome
    }

    fn prompt(&self) -> Result<String, Failure> {
        let hint = "give it as an argument, or `-` to read it from stdin; \
                    the agent's command goes after `--`";
        match self.prompt.as_deref() {
            None => Err(Failure::usage("there is no prompt", hint)),
            Some("-") => {
                let mut prompt = String::new();
                std::io::stdin().read_to_string(&mut prompt).map_err(|source| {
                    Failure::local("cannot read the prompt from stdin", source)
                })?;
                if prompt.trim().is_empty() {
                    return Err(Failure::usage("the prompt on stdin is empty", ""));
                }
                Ok(prompt)
            }
            Some(prompt) if prompt.trim().is_empty() => {
                Err(Failure::usage("the prompt is empty", hint))
            }
            Some(prompt) => Ok(prompt.to_owned()),
        }
    }

    fn rules(&self, desk: &Desk) -> Rules {
        let otherwise = if desk.out.can_ask() { None } else { Some(OnAsk::Deny) };
        Rules { approve: self.approve, otherwise: self.on_ask.or(otherwise) }
    }

    /// Clients that print raw ACP get nothing else; the others like to know more.
    fn aware(&self) -> bool {
        self.format != Format::Json || self.no_wait
    }

    /// Starts the agent and opens a session.
    fn begin(
        &self,
        conn: &mut Conn,
        choice: &AgentChoice,
        cwd: &std::path::Path,
        deadline: Option<Deadline>,
    ) -> Result<Goal, Failure> {
        let until = Until::Deadline(deadline);
        let what = format!("{} to start", choice.shown());
        choice.connect(conn, cwd)?;
        initialize(conn, "run", self.aware(), Wait { what: &what, until })?;
        let what = format!("{} to open a session", choice.shown());
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        let opened = conn.call("session/new", &params, Wait { what: &what, until })?;
        let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(Goal { session, agent: choice.shown().to_owned(), ours: true })
    }

    /// Finds a session that exists. If its agent must be started again, it is as the caller would.
    fn go_on(
        &self,
        conn: &mut Conn,
        named: &str,
        choice: &AgentChoice,
        cwd: &std::path::Path,
    ) -> Result<Goal, Failure> {
        greet(conn, "run", self.aware())?;
        let row = find(&sessions(conn)?, named)?;
        match choice {
            AgentChoice::Configured => prepare_to_wake(conn, &row)?,
            given => {
                given.connect(conn, cwd)?;
            }
        }
        Ok(Goal { ours: !row.is_live(), session: row.session_id, agent: row.agent })
    }

    /// The prompt is on its way: says where to, as soon as the hub has it.
    fn leave(&self, conn: &mut Conn, goal: &Goal, id: u64, desk: &Desk) -> Result<(), Failure> {
        let taken =
            |rows: &[Row]| rows.iter().any(|it| it.session_id == goal.session && 0 < it.queued);
        let listing = conn.ask("_jackfield/sessions", &json!({}))?;
        loop {
            match conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, id) => {
                    result_of(&frame)?;
                    break;
                }
                // Behind another turn it is only queued, and no notice comes.
                Heard::Frame(frame) if is_answer(&frame, listing) => {
                    let rows = result_of(&frame)?["sessions"].take();
                    let rows: Vec<Row> = serde_json::from_value(rows).unwrap_or_default();
                    if taken(&rows) {
                        break;
                    }
                }
                Heard::Frame(frame) if frame.method().as_deref() == Some("_jackfield/turn") => {
                    let fact: Value =
                        serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
                    if fact["is"] == "prompted" {
                        break;
                    }
                }
                Heard::Interrupt => {
                    let waited_for = "the daemon to take the prompt".to_owned();
                    return Err(Failure::Interrupted { waited_for });
                }
                Heard::HubGone => {
                    let waited_for = "the daemon to take the prompt".to_owned();
                    return Err(Failure::HubGone { waited_for });
                }
                Heard::Frame(_) | Heard::Typed(_) | Heard::TypedEnd | Heard::TimedOut => {}
            }
        }
        match self.format {
            Format::Json => crate::out::document(&desk.out, &json!({ "sessionId": goal.session })),
            Format::Text | Format::Quiet => desk.out.line(&goal.session),
        }
    }
}

/// Should the session's agent have to be started again: as configured, or else as the caller would.
pub(super) fn prepare_to_wake(conn: &mut Conn, row: &Row) -> Result<(), Failure> {
    let cwd = std::path::Path::new(&row.cwd);
    let configured = match AgentChoice::Named(row.agent.clone()).connect(conn, cwd) {
        Err(Failure::Answer(answer)) if answer.name() == "no_agent" => false,
        connected => connected?,
    };
    // One of the catalogue's was opened by its name, or with a command of somebody's.
    if !configured && !row.argv.is_empty() {
        let (name, argv) = (row.agent.clone(), row.argv.clone());
        AgentChoice::Command { name, argv }.connect(conn, cwd)?;
    }
    Ok(())
}

/// Ends the agent of the session we opened; the journal keeps what was said.
fn close(conn: &mut Conn, goal: &Goal) {
    conn.untap();
    let wait = Wait { what: "the session to close", until: Until::Hub };
    let params = json!({ "sessionId": goal.session });
    // The outcome of the turn is what counts; a session that stays open is in `ps`.
    let _closed = conn.call("session/close", &params, wait);
}
