//! `jackfield attach`: follows a session in the terminal. Typed lines are prompts, or answers to the agent's requests.

mod view;

use super::run::{AgentLaunchArgs, NewSessionOptions, prepare_agent_restart};
use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{
        AgentChoice, CommandConnection, SessionRow, find_latest_session, find_session,
        list_sessions, read_notifications,
    },
    out::ConversationFormat,
    report::CommandError,
};
use clap::Args;
use jackfield_events::EventKind;
use jackfield_hub_client::{ClientProtocol, parse_event};
use jackfield_protocol::acp::Method;
use serde_json::json;
use view::AttachView;

/// Follow a session live: type prompts, answer the agent's requests
///
/// Lines you type are prompts. `/steer TEXT` cancels the running turn and runs TEXT instead, `/cancel`
/// cancels it and withdraws queued prompts, `/detach` (or `/quit`, or Ctrl-D) exits; the session
/// continues without you. If the daemon ends, the command says so, connects to the next one and goes on;
/// a running turn ends as interrupted. With `--new`, or with a command after `--`, a session is opened first. If
/// stdin is not a terminal, the exit code is that of the last prompt that failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield attach
  $ jackfield attach -c
  $ jackfield attach s-7f3 --all
  $ jackfield attach --new -a claude
  $ jackfield attach --new -- goose acp
  $ echo \"Go on\" | jackfield attach s-7f3
  $ jackfield attach s-7f3 --format events")]
pub(crate) struct AttachCommand {
    /// A name, an id, a unique prefix of an id, or a title [default: the latest running session of the agent]
    #[arg(add = complete::sessions())]
    session: Option<String>,

    /// Use the latest session of this directory
    #[arg(short, long = "continue", env = env::CONTINUE_LATEST, hide_env_values = true, value_parser = env::flag_parser(), conflicts_with_all = ["session", "new"])]
    continue_latest: bool,

    /// Open a new session
    #[arg(short, long, env = env::NEW, hide_env_values = true, value_parser = env::flag_parser(), conflicts_with = "session")]
    new: bool,

    #[command(flatten)]
    launch_args: AgentLaunchArgs,

    /// Start after this event [default: start with the last turn]
    #[arg(long, env = env::AFTER, hide_env_values = true, value_name = "SEQ")]
    after: Option<u64>,

    /// Start with the first event
    #[arg(long, env = env::ALL, hide_env_values = true, value_parser = env::flag_parser())]
    all: bool,

    /// How to print the conversation
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: ConversationFormat,
}

impl AttachCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        self.check_flags()?;
        let continues = self.session.is_some() || self.continue_latest;
        let opens_session = self.new || (!continues && self.launch_args.has_command());
        let (mut conn, row) =
            if opens_session { self.open_session(context)? } else { self.find_session(context)? };
        let after = match (self.all, self.after) {
            // A new session has no earlier events to show.
            _ if opens_session => u64::MAX,
            (true, _) => 0,
            (false, Some(after)) => after,
            (false, None) => find_last_turn(context, &row)?,
        };
        conn.watch_signals()?;
        let params = json!({ "sessionId": row.session_id, "after": after });
        let attach_id = conn.send_request(Method::ControlAttach, &params)?;
        AttachView::new(conn, &context.output, row, self.format).run(attach_id)
    }

    /// Rejects flags that cannot be combined.
    fn check_flags(&self) -> Result<(), CommandError> {
        self.launch_args.check_agent()?;
        let session = match &self.session {
            Some(_) => "a session",
            None if self.continue_latest => "`--continue`",
            None => return Ok(()),
        };
        let other = if self.launch_args.has_typed_agent() {
            "--agent"
        } else if self.session.is_some() && self.launch_args.has_typed_directory() {
            "--cwd"
        } else {
            return Ok(());
        };
        let message = format!("`{other}` cannot be combined with {session}, which has its own");
        Err(CommandError::usage(
            message,
            format!("leave out `{other}`, or open a session with `--new`"),
        ))
    }

    /// Opens a session, which stays open when the command exits.
    fn open_session(
        &self,
        context: &CommandContext,
    ) -> Result<(CommandConnection, SessionRow), CommandError> {
        let mut launch = self.launch_args.resolve(context, None)?;
        launch.name_agent(context)?;
        let conn = context.daemon.dial_through_bridge(&context.output)?;
        let mut conn = self.with_frame_printing(conn);
        launch.start_agent(&mut conn, "attach", ClientProtocol::WithHubEvents)?;
        let opened = launch.open_session(&mut conn, &NewSessionOptions::default())?;
        let id = opened["sessionId"].as_str().unwrap_or_default();
        let row = find_session(&list_sessions(&mut conn)?, id)?;
        Ok((conn, row))
    }

    /// Finds an existing session. If its agent has to be restarted, it gets the caller's environment.
    fn find_session(
        &self,
        context: &CommandContext,
    ) -> Result<(CommandConnection, SessionRow), CommandError> {
        let choice = self.launch_args.choose_agent(context)?;
        let mut conn = self.with_frame_printing(context.daemon.connect_through_bridge("attach")?);
        let rows = list_sessions(&mut conn)?;
        let row = match (&self.session, &choice) {
            (Some(named), _) => find_session(&rows, named)?,
            (None, _) if self.continue_latest => {
                find_latest_session(&rows, &self.launch_args.directory()?)?
            }
            (None, choice) => {
                let agent = choice.name();
                let is_candidate =
                    |it: &&SessionRow| it.is_live() && agent.is_none_or(|name| it.agent == name);
                let agent = agent.map(str::to_owned);
                rows.iter().find(is_candidate).ok_or(CommandError::NoLiveSession { agent })?.clone()
            }
        };
        match &choice {
            AgentChoice::Command { .. } => {
                choice.send_to_hub(&mut conn, row.cwd.as_ref())?;
            }
            AgentChoice::Named { .. } | AgentChoice::Configured => {
                prepare_agent_restart(&mut conn, &row)?;
            }
        }
        Ok((conn, row))
    }

    fn with_frame_printing(&self, mut conn: CommandConnection) -> CommandConnection {
        if self.format == ConversationFormat::Json {
            conn.start_printing_frames();
        }
        conn
    }
}

/// The event before the last turn. Searches backwards in growing ranges.
fn find_last_turn(context: &CommandContext, row: &SessionRow) -> Result<u64, CommandError> {
    const RANGES: [u64; 3] = [256, 8_192, u64::MAX];
    for range in RANGES {
        let from = row.events.saturating_sub(range);
        let prompt = find_last_prompt(context, row, from)?;
        if let Some(seq) = prompt {
            return Ok(seq - 1);
        }
        if from == 0 {
            break;
        }
    }
    Ok(0)
}

/// The last prompt after an event. Uses its own connection, because these events are not printed.
fn find_last_prompt(
    context: &CommandContext,
    row: &SessionRow,
    from: u64,
) -> Result<Option<u64>, CommandError> {
    let mut conn = context.daemon.connect("attach")?;
    let mut found = None;
    read_notifications(&mut conn, &row.session_id, from, "the last turn", &mut |frame| {
        if frame.is_method(Method::ControlTurn)
            && let Some(event) = parse_event(frame)
            && event.body.kind() == EventKind::Prompted
        {
            found = event.seq.map(|it| it.0).filter(|it| 0 < *it).or(found);
        }
    })?;
    Ok(found)
}
