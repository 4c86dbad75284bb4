//! `jackfield asks`: what agents wait to be allowed, in every session.

use super::sessions::{short_id, shown_time};
use crate::{
    app::Desk,
    ask::{OpenAsk, open_asks},
    env,
    hub::{sessions, unique_chars},
    out::{BRIGHT, DIM, Format, document, paint},
    report::Failure,
};
use clap::Args;
use serde_json::{Value, json};

/// List what agents ask and nobody has answered
///
/// An agent asks before it does what it may not do alone. Every attached client is asked, the first
/// answer counts, and without any client the ask waits here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield asks
  $ jackfield asks --format json | jq -r '.asks[] | \"\\(.sessionId):\\(.ask) \\(.what)\"'
  $ jackfield answer s-7f3 y")]
pub(crate) struct Asks {
    /// How to print the list; `quiet` prints what `answer` is given: a session and a number
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

const NONE: &str = "nothing is asked; what an agent needs permission for is asked of everyone \
                    attached, and waits here for `jackfield answer`";

impl Asks {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        // Without a daemon no agent runs, so none is started to say so.
        let Some(mut conn) = desk.dial.talk_if_running("asks")? else {
            return self.print(desk, &[], usize::MAX);
        };
        let mut asks = open_asks(&mut conn)?;
        for ask in asks.iter_mut().filter(|it| it.needs_title()) {
            ask.find_title(desk.dial.talk("asks")?)?;
        }
        let chars = unique_chars(&sessions(&mut conn)?);
        self.print(desk, &asks, chars)
    }

    fn print(&self, desk: &Desk, asks: &[OpenAsk], chars: usize) -> Result<(), Failure> {
        match self.format {
            Format::Json => {
                let rows: Vec<Value> = asks.iter().map(OpenAsk::for_programs).collect();
                document(&desk.out, &json!({ "asks": rows }))
            }
            Format::Quiet => asks
                .iter()
                .try_for_each(|it| desk.out.line(&format!("{}:{}", it.session_id, it.number))),
            Format::Text if asks.is_empty() => {
                desk.out.note(NONE);
                Ok(())
            }
            Format::Text => asks.iter().try_for_each(|it| line(desk, it, chars)),
        }
    }
}

/// Which, since when, and the question as `attach` shows it; never cut, for options must be read.
fn line(desk: &Desk, it: &OpenAsk, chars: usize) -> Result<(), Failure> {
    let address = format!("{}:{}", short_id(desk, &it.session_id, chars), it.number);
    let since = shown_time(desk, &it.since);
    let form = if it.form { "  (a form: answer with --json)" } else { "" };
    desk.out.line(&format!(
        "{}  {}  {}{form}",
        paint(BRIGHT, address),
        paint(DIM, since),
        it.ask.question(&it.agent)
    ))
}
