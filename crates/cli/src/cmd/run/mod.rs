//! `jackfield run`: one prompt, its answer, its outcome; or one after the other.

mod asked;
mod driver;
mod goal;
mod image;
mod input;
mod leave;
mod lines;
mod start;
mod wishes;

pub(super) use goal::prepare_to_wake;
pub(super) use start::Launch;

use crate::{
    app::Desk,
    ask::{Approve, OnAsk, Rules},
    env,
    hub::{Conn, Deadline, Hosted},
    out::{DIM, Telling, one_line, paint},
    report::Failure,
};
use clap::Args;
use driver::{Driver, Manner};
use goal::Goal;
use input::Input;
use jackfield_views::options::described;
use serde_json::{Value, json};
use std::io::Read as _;
use wishes::Wishes;

const LINE_CHARS_MAX: usize = 200;

/// Run one prompt: stream the answer, exit with the outcome
///
/// The agent's words go to stdout, what it does to stderr. On a terminal you are asked before a tool
/// runs; elsewhere `--approve` and `--on-ask` answer for you. With `--interactive` every line of
/// stdin is a prompt, and one agent answers them all: Ctrl-C stops the running turn, the end of stdin
/// ends the command, whose exit code is that of the last turn that did not end well.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which stands alone")]
#[command(after_help = "Examples:
  $ jackfield run \"What does this project do?\" -- goose acp
  $ jackfield run -a claude --approve reads \"Find the bug in parse.rs\"
  $ jackfield run -a opencode -m anthropic/claude-opus-4-5 --mode plan --image ui.png \"Why is it cut off?\"
  $ git diff | jackfield run -a codex --format quiet --timeout 300 -
  $ jackfield run -a gemini -i
  $ jackfield run -i --input json --format json -- goose acp < prompts.jsonl
  $ jackfield run -s s-7f3 \"Go on\"
  $ jackfield run -s s-7f3 --steer \"No, the other file\"")]
pub(crate) struct Run {
    /// What to say to the agent; `-` reads it from stdin
    prompt: Option<String>,

    /// Go on with this session: an id, a unique prefix of one, or a title
    #[arg(short, long, env = env::SESSION, hide_env_values = true)]
    session: Option<String>,

    /// Stop what the session does and say this instead, before whatever waits
    #[arg(long, env = env::STEER, hide_env_values = true, value_parser = env::flag(), requires = "session")]
    steer: bool,

    /// Read prompts from stdin, one a line, until it ends
    #[arg(short, long, env = env::INTERACTIVE, hide_env_values = true, value_parser = env::flag())]
    interactive: bool,

    /// What a line of stdin is, with `--interactive`
    #[arg(long, env = env::INPUT, hide_env_values = true, value_enum, default_value_t)]
    input: Input,

    #[command(flatten)]
    launch: Launch,

    #[command(flatten)]
    wishes: Wishes,

    /// Cancel a turn after so many seconds, with exit code 3
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
    format: Telling,

    /// Do not wait for the answer: print the session's id and leave
    #[arg(long, env = env::NO_WAIT, hide_env_values = true, value_parser = env::flag())]
    no_wait: bool,

    /// Leave the agent running when the turn is over, ready for `-s`
    #[arg(long, env = env::KEEP, hide_env_values = true, value_parser = env::flag())]
    keep: bool,

    /// Use no daemon: a hub in this process that forgets everything, for CI and containers
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag())]
    isolated: bool,
}

impl Run {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        self.check()?;
        let prompt = self.prompt()?;
        let images = self.wishes.images()?;
        let deadline = self.timeout.map(Deadline::after);
        let starting = self.launch.starting(desk, deadline)?;
        // Declared first, dropped last: the hub in this process ends when its client has left.
        let (_hosted, socket) = if self.isolated {
            let (hosted, socket) = Hosted::start(desk.dial.paths())?;
            (Some(hosted), socket)
        } else {
            (None, desk.dial.open()?)
        };
        let mut conn = Conn::new(socket, &desk.out)?;
        conn.heed_signals()?;
        if self.format == Telling::Json && !self.no_wait {
            conn.tap();
        }
        let mut goal = match &self.session {
            Some(named) => self.go_on(&mut conn, named, &starting)?,
            None => self.begin(&mut conn, &starting)?,
        };
        if self.format == Telling::Text && !self.no_wait {
            desk.out.note(&paint(DIM, format!("session {}", goal.session)));
        }
        self.describe(&goal, desk);
        if let Err(failure) = self.set(&mut conn, &mut goal, &starting) {
            if goal.ours {
                goal.close(&mut conn);
            }
            return Err(failure);
        }
        let first = prompt.map(|it| self.params(&goal, &it, images));
        if self.no_wait {
            return self.leave(&mut conn, &goal, &first.unwrap_or_default(), desk);
        }
        let mut driver = Driver::new(&mut conn, &desk.out, &goal, self.manner(desk));
        let done = match first {
            Some(params) if !self.interactive => driver.turn(&params, deadline),
            first => driver.converse(first),
        };
        if goal.ours && !self.keep && done.over {
            goal.close(&mut conn);
        }
        done.outcome
    }

    /// Who it is and what can be chosen, for those who want to know everything.
    fn describe(&self, goal: &Goal, desk: &Desk) {
        if self.format != Telling::Text || self.no_wait || !desk.out.is_verbose() {
            return;
        }
        let info = &goal.told["agentInfo"];
        let told = |name: &str| info[name].as_str().unwrap_or_default();
        let agent = format!("{} {}", told("name"), told("version"));
        let agent = [("agent".to_owned(), agent)].into_iter().filter(|it| it.1 != " ");
        for (name, text) in agent.chain(described(&goal.setup)) {
            let line = one_line(&format!("{name:<5} {text}"), LINE_CHARS_MAX);
            desk.out.note(&paint(DIM, line));
        }
    }

    /// What cannot be meant together.
    fn check(&self) -> Result<(), Failure> {
        if self.isolated && (self.session.is_some() || self.no_wait) {
            let message = "a hub in this process knows no earlier sessions and outlives no command";
            let hint = "leave out `--isolated`, or `--session` and `--no-wait`";
            return Err(Failure::usage(message, hint));
        }
        if self.session.is_some() && self.wishes.wants_directories() {
            let message = "the directories of a session are chosen when it is opened";
            return Err(Failure::usage(message, "leave out `--add-dir` or `--session`"));
        }
        if self.interactive && self.no_wait {
            let message = "nobody can wait for prompts and leave at once";
            return Err(Failure::usage(message, "leave out `--interactive` or `--no-wait`"));
        }
        if self.prompt.is_none() && self.wishes.wants_images() {
            let message = "`--image` goes with the prompt of the command line, and there is none";
            let hint = "give a prompt, or image blocks with `--input json`";
            return Err(Failure::usage(message, hint));
        }
        if self.interactive && self.prompt.as_deref() == Some("-") {
            let message = "with `--interactive` every line of stdin is a prompt of its own";
            return Err(Failure::usage(message, "leave out `-`, or `--interactive`"));
        }
        Ok(())
    }

    fn prompt(&self) -> Result<Option<String>, Failure> {
        let hint = "give it as an argument, or `-` to read it from stdin, or `--interactive` to \
                    read one after the other; the agent's command goes after `--`";
        match self.prompt.as_deref() {
            None if self.interactive => Ok(None),
            None => Err(Failure::usage("there is no prompt", hint)),
            Some("-") => {
                let mut prompt = String::new();
                std::io::stdin().read_to_string(&mut prompt).map_err(|source| {
                    Failure::local("cannot read the prompt from stdin", source)
                })?;
                if prompt.trim().is_empty() {
                    return Err(Failure::usage("the prompt on stdin is empty", ""));
                }
                Ok(Some(prompt))
            }
            Some(prompt) if prompt.trim().is_empty() => {
                Err(Failure::usage("the prompt is empty", hint))
            }
            Some(prompt) => Ok(Some(prompt.to_owned())),
        }
    }

    /// The first prompt as the hub gets it.
    fn params(&self, goal: &Goal, prompt: &str, images: Vec<Value>) -> Value {
        let mut blocks = vec![input::text(prompt)];
        blocks.extend(images);
        let mut params = json!({ "sessionId": goal.session, "prompt": blocks });
        if self.steer {
            params["_meta"] = json!({ "jackfield": { "steer": true } });
        }
        params
    }

    fn manner(&self, desk: &Desk) -> Manner {
        // Lines of a program are no answers of a person.
        let person = desk.out.can_ask() && !(self.interactive && self.input == Input::Json);
        let otherwise = if person { None } else { Some(OnAsk::Deny) };
        Manner {
            format: self.format,
            rules: Rules { approve: self.approve, otherwise: self.on_ask.or(otherwise) },
            timeout: self.timeout,
            input: self.input,
        }
    }

    /// Clients that print raw ACP get nothing else; the others like to know more.
    fn aware(&self) -> bool {
        self.format != Telling::Json || self.no_wait
    }
}
