//! `jackfield run`: runs one prompt, or with `--interactive` one prompt after the other.

mod conflicts;
mod driver;
mod image;
mod input;
mod launch;
mod mcp;
mod no_wait;
mod permissions;
mod settings;
mod stdin_block;
mod stdin_prompts;
mod target;

pub(super) use launch::{AgentLaunchArgs, NewSessionOptions};
pub(super) use target::prepare_agent_restart;

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{AgentChoice, CommandConnection, InProcessHub, TimeLimit},
    out::{ConversationFormat, DIM, paint},
    plain_text::to_one_line,
    report::CommandError,
    requests::{ApprovalLevel, ApprovalRules, UnapprovedAction},
};
use clap::Args;
use driver::{TurnDriver, TurnOptions};
use input::InputFormat;
use jackfield_hub_client::ClientProtocol;
use jackfield_views::options::describe_options;
use serde_json::{Value, json};
use settings::SessionSettingsArgs;
use std::io::Read as _;
use target::TargetSession;

const LINE_CHARS_MAX: usize = 200;

/// Run one prompt, print the answer, and exit with its outcome
///
/// If stdin is a pipe or a file, its content is appended to the prompt.
/// The agent's messages go to stdout, notes about its actions to stderr. On a terminal you are asked
/// before a tool runs; elsewhere `--approve` and `--on-ask` decide. With `--interactive`, every line
/// of stdin is a prompt for the same agent: Ctrl-C cancels the running turn, and the end of stdin ends
/// the command. Its exit code is that of the last turn that failed.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags that do not depend on each other")]
#[command(after_help = "Examples:
  $ jackfield run \"What does this project do?\" -- goose acp
  $ jackfield run -a claude --approve reads \"Find the bug in parse.rs\"
  $ jackfield run -a opencode -m anthropic/claude-opus-4-5 --mode plan --image ui.png \"Why is it cut off?\"
  $ jackfield run -a codex --mcp .mcp.json --mcp github \"What does the latest issue say?\"
  $ git diff | jackfield run -a codex --format quiet --timeout 300 -
  $ jackfield run -a gemini -i
  $ jackfield run -i --input json --format json -- goose acp < prompts.jsonl
  $ cat err.log | jackfield run -a claude \"Explain this error\"
  $ jackfield run --name parser -a claude \"Fix the parser\" && jackfield run -s parser \"Go on\"
  $ jackfield run -c \"Go on\"
  $ jackfield run -s s-7f3 --steer \"No, the other file\"")]
pub(crate) struct RunCommand {
    /// The prompt; `-` reads it from stdin
    prompt: Option<String>,

    /// Continue this session: a name, an id, a unique prefix of an id, or a title
    #[arg(short, long, env = env::SESSION, hide_env_values = true, group = "continued", add = complete::sessions())]
    session: Option<String>,

    /// Use the latest session of this directory
    #[arg(short, long = "continue", env = env::CONTINUE_LATEST, hide_env_values = true, group = "continued", value_parser = env::flag_parser())]
    continue_latest: bool,

    /// Name the new session; names are accepted wherever an id is
    #[arg(long, env = env::NAME, hide_env_values = true)]
    name: Option<String>,

    /// Cancel the running turn and run this prompt next, before queued ones
    #[arg(long, env = env::STEER, hide_env_values = true, value_parser = env::flag_parser(), requires = "continued")]
    steer: bool,

    /// Read prompts from stdin, one per line
    #[arg(short, long, env = env::INTERACTIVE, hide_env_values = true, value_parser = env::flag_parser())]
    interactive: bool,

    /// The format of a line of stdin, with `--interactive`
    #[arg(long, env = env::INPUT, hide_env_values = true, value_enum, default_value_t)]
    input: InputFormat,

    #[command(flatten)]
    launch_args: AgentLaunchArgs,

    #[command(flatten)]
    settings: SessionSettingsArgs,

    /// Cancel a turn after this many seconds, with exit code 3
    #[arg(long, env = env::TIMEOUT, hide_env_values = true, value_name = "SECS")]
    timeout: Option<u64>,

    /// Approve without asking
    #[arg(long, env = env::APPROVE, hide_env_values = true, value_enum, default_value_t = ApprovalLevel::None)]
    approve: ApprovalLevel,

    /// What to do with asks that `--approve` does not cover [default: ask on a terminal, deny elsewhere]
    #[arg(long, env = env::ON_ASK, hide_env_values = true, value_enum)]
    on_ask: Option<UnapprovedAction>,

    /// How to print the conversation
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: ConversationFormat,

    /// Print the session's id and exit without waiting for the answer
    #[arg(long, env = env::NO_WAIT, hide_env_values = true, value_parser = env::flag_parser())]
    no_wait: bool,

    /// Keep the agent running after the turn, ready for `-s`
    #[arg(long, env = env::KEEP, hide_env_values = true, value_parser = env::flag_parser())]
    keep: bool,

    /// Run without a daemon and without stored sessions
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag_parser())]
    isolated: bool,
}

impl RunCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        self.check_flags()?;
        let prompt = self.read_prompt()?;
        let mut attachments = self.settings.image_blocks()?;
        if !self.interactive && self.prompt.as_deref() != Some("-") {
            attachments.extend(stdin_block::read_stdin_block(&context.output)?);
        }
        let time_limit = self.timeout.map(TimeLimit::after);
        let mut launch = self.launch_args.resolve(context, time_limit)?;
        if self.continues_session() && !self.launch_args.has_command() {
            // The session has its agent; a name can only come from the environment.
            launch.choice = AgentChoice::Configured;
        } else {
            launch.name_agent(context)?;
        }
        // Declared before the connection, so that it is dropped after it.
        let (_hub, socket) = if self.isolated {
            let (hub, socket) = InProcessHub::start(context.daemon.paths())?;
            (Some(hub), socket)
        } else {
            (None, context.daemon.dial_or_start()?)
        };
        let mut conn = CommandConnection::new(socket, &context.output)?;
        conn.watch_signals()?;
        conn.watch_stdout()?;
        if self.format == ConversationFormat::Json && !self.no_wait {
            conn.start_printing_frames();
        }
        let mut target = if self.continues_session() {
            self.continue_session(&mut conn, &launch)?
        } else {
            self.open_session(&mut conn, &launch)?
        };
        let details = self.describe_session(&target, context);
        if let Err(error) = self.apply_settings(&mut conn, &mut target, &launch) {
            target.abandon(&mut conn);
            return Err(error);
        }
        if self.format == ConversationFormat::Text && !self.no_wait {
            context.output.print_note(&paint(DIM, format!("session {}", target.session)));
        }
        for it in details {
            context.output.print_note(&paint(DIM, it));
        }
        let first_prompt = prompt.map(|it| self.prompt_params(&target, &it, attachments));
        if self.no_wait {
            return self.submit_prompt(
                &mut conn,
                &target,
                &first_prompt.unwrap_or_default(),
                context,
            );
        }
        let mut driver =
            TurnDriver::new(&mut conn, &context.output, &target, self.turn_options(context));
        let completion = match first_prompt {
            Some(params) if !self.interactive => driver.run_turn(&params, time_limit),
            first_prompt => driver.run_stdin_prompts(first_prompt),
        };
        if target.close_after_use && !self.keep && completion.is_turn_over {
            target.close(&mut conn);
        }
        completion.outcome
    }

    /// The lines about the agent and what it offers, with `--verbose`.
    fn describe_session(&self, target: &TargetSession, context: &CommandContext) -> Vec<String> {
        if self.format != ConversationFormat::Text || self.no_wait || !context.output.is_verbose() {
            return Vec::new();
        }
        let info = &target.initialize_result["agentInfo"];
        let text = |name: &str| info[name].as_str().unwrap_or_default();
        let agent = format!("{} {}", text("name"), text("version"));
        let agent = [("agent".to_owned(), agent)].into_iter().filter(|it| it.1 != " ");
        agent
            .chain(describe_options(&target.setup))
            .map(|(name, text)| to_one_line(&format!("{name:<5} {text}"), LINE_CHARS_MAX))
            .collect()
    }

    /// Whether the prompts go to an existing session.
    fn continues_session(&self) -> bool {
        self.session.is_some() || self.continue_latest
    }

    fn read_prompt(&self) -> Result<Option<String>, CommandError> {
        let hint = "pass it as an argument, `-` to read it from stdin, or `--interactive` to read one \
                    prompt per line; the agent's command goes after `--`";
        match self.prompt.as_deref() {
            None if self.interactive => Ok(None),
            None => Err(CommandError::usage("no prompt given", hint)),
            Some("-") => {
                let mut prompt = String::new();
                std::io::stdin().read_to_string(&mut prompt).map_err(|source| {
                    CommandError::local("cannot read the prompt from stdin", source)
                })?;
                if prompt.trim().is_empty() {
                    return Err(CommandError::usage("the prompt on stdin is empty", ""));
                }
                Ok(Some(prompt))
            }
            Some(prompt) if prompt.trim().is_empty() => {
                Err(CommandError::usage("the prompt is empty", hint))
            }
            Some(prompt) => Ok(Some(prompt.to_owned())),
        }
    }

    /// The parameters of `session/prompt` for the prompt of the command line.
    fn prompt_params(
        &self,
        target: &TargetSession,
        prompt: &str,
        attachments: Vec<Value>,
    ) -> Value {
        let mut blocks = vec![input::text_block(prompt)];
        blocks.extend(attachments);
        let mut params = json!({ "sessionId": target.session, "prompt": blocks });
        if self.steer {
            params["_meta"] = json!({ "jackfield": { "steer": true } });
        }
        params
    }

    fn turn_options(&self, context: &CommandContext) -> TurnOptions {
        // With `--input json` stdin is a program, which does not answer questions.
        let can_ask_user = context.output.can_prompt_user()
            && !(self.interactive && self.input == InputFormat::Json);
        let otherwise = if can_ask_user { None } else { Some(UnapprovedAction::Deny) };
        TurnOptions {
            format: self.format,
            rules: ApprovalRules { approve: self.approve, otherwise: self.on_ask.or(otherwise) },
            timeout: self.timeout,
            input: self.input,
        }
    }

    /// With `--format json` the client receives ACP messages only.
    fn client_protocol(&self) -> ClientProtocol {
        if self.format == ConversationFormat::Json && !self.no_wait {
            ClientProtocol::AcpOnly
        } else {
            ClientProtocol::WithHubEvents
        }
    }
}
