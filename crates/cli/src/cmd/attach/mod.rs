//! `jackfield attach`: a session in the terminal, line by line. Typed lines are prompts, or answers
//! to what the agent asks.

mod view;

use super::run::{Launch, prepare_to_wake};
use crate::{
    app::Desk,
    env,
    hub::{AgentChoice, Conn, Heard, Row, event_of, find, is_answer, result_of, sessions},
    out::Telling,
    report::Failure,
};
use clap::Args;
use jackfield_events::EventKind;
use jackfield_protocol::acp::Method;
use serde_json::json;
use view::View;

/// Follow a session live: type prompts, answer what the agent asks
///
/// Lines you type are prompts. `/steer TEXT` stops the running turn and says that instead, `/cancel`
/// stops it and withdraws what waits, `/detach` (or `/quit`, or Ctrl-D) leaves; the session goes on
/// without you. With `--new`, or with a command after `--`, a session is opened first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield attach
  $ jackfield attach s-7f3 --all
  $ jackfield attach --new -a claude
  $ jackfield attach --new -- goose acp
  $ echo \"Go on\" | jackfield attach s-7f3
  $ jackfield attach s-7f3 --format events")]
pub(crate) struct Attach {
    /// An id, a unique prefix of one, or a title [default: the latest of the agent that is running]
    session: Option<String>,

    /// Open a session
    #[arg(short, long, env = env::NEW, hide_env_values = true, value_parser = env::flag(), conflicts_with = "session")]
    new: bool,

    #[command(flatten)]
    launch: Launch,

    /// Begin behind this event [default: with the last turn]
    #[arg(long, env = env::AFTER, hide_env_values = true, value_name = "SEQ")]
    after: Option<u64>,

    /// Begin with the first event
    #[arg(long, env = env::ALL, hide_env_values = true, value_parser = env::flag())]
    all: bool,

    /// How to print what is said
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Telling,
}

impl Attach {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let opens = self.new || (self.session.is_none() && self.launch.has_command());
        let (mut conn, row) = if opens { self.open(desk)? } else { self.find(desk)? };
        let after = match (self.all, self.after) {
            // What was said until now was heard.
            _ if opens => u64::MAX,
            (true, _) => 0,
            (false, Some(after)) => after,
            (false, None) => last_turn(desk, &row)?,
        };
        conn.heed_signals()?;
        let params = json!({ "sessionId": row.session_id, "after": after });
        let attach = conn.ask(Method::ControlAttach.name(), &params)?;
        View::new(conn, &desk.out, row, self.format).run(attach)
    }

    /// A new session, which stays when we leave.
    fn open(&self, desk: &Desk) -> Result<(Conn, Row), Failure> {
        let starting = self.launch.starting(desk, None)?;
        let mut conn = self.tapped(Conn::new(desk.dial.open()?, &desk.out)?);
        starting.hello(&mut conn, "attach", true)?;
        let opened = starting.open(&mut conn, &[])?;
        let id = opened["sessionId"].as_str().unwrap_or_default();
        let row = find(&sessions(&mut conn)?, id)?;
        Ok((conn, row))
    }

    /// One that is there. Should its agent have to be started again, it is as the caller would.
    fn find(&self, desk: &Desk) -> Result<(Conn, Row), Failure> {
        let choice = self.launch.choice(desk)?;
        let mut conn = self.tapped(desk.dial.talk("attach")?);
        let rows = sessions(&mut conn)?;
        let row = match (&self.session, &choice) {
            (Some(named), _) => find(&rows, named)?,
            (None, choice) => {
                let agent = choice.name();
                let is_it = |it: &&Row| it.is_live() && agent.is_none_or(|name| it.agent == name);
                let agent = agent.map(str::to_owned);
                rows.iter().find(is_it).ok_or(Failure::NothingLive { agent })?.clone()
            }
        };
        match &choice {
            AgentChoice::Command { .. } => {
                choice.connect(&mut conn, row.cwd.as_ref())?;
            }
            AgentChoice::Named(_) | AgentChoice::Configured => prepare_to_wake(&mut conn, &row)?,
        }
        Ok((conn, row))
    }

    fn tapped(&self, mut conn: Conn) -> Conn {
        if self.format == Telling::Json {
            conn.tap();
        }
        conn
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
    let id = conn.ask(Method::ControlAttach.name(), &params)?;
    let mut found = None;
    loop {
        match conn.next(None)? {
            Heard::Frame(frame) if is_answer(&frame, id) => {
                result_of(&frame)?;
                return Ok(found);
            }
            Heard::Frame(frame) if frame.is_method(Method::ControlTurn) => {
                if let Some(event) = event_of(&frame)
                    && event.body.kind() == EventKind::Prompted
                {
                    found = event.seq.map(|it| it.0).filter(|it| 0 < *it).or(found);
                }
            }
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: "the last turn".into() });
            }
            _ => {}
        }
    }
}
