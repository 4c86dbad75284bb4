//! `jackfield log`: what was said in a session, from the journal.

use crate::{
    app::Desk,
    env,
    hub::{Heard, find, is_answer, result_of, sessions},
    out::{Format, Side, Transcript},
    report::Failure,
};
use clap::{Args, ValueEnum};
use jackfield_views::Veil;
use jackfield_wire::{Frame, Kind};
use serde_json::{Value, json};

/// Show what was said in a session, and with `-f` what is being said
///
/// What looks like a secret is hidden, but not in the acp view: that is the conversation itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield log s-7f3
  $ jackfield log s-7f3 -f
  $ jackfield log s-7f3 --view acp --after 120 | jq -c .params.update")]
pub(crate) struct Log {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// Go on with what is said from now on
    #[arg(short, long, env = env::FOLLOW, hide_env_values = true, value_parser = env::flag())]
    follow: bool,

    /// Begin behind this event; the acp view shows their numbers
    #[arg(long, env = env::AFTER, hide_env_values = true, value_name = "SEQ", default_value_t)]
    after: u64,

    /// What to show
    #[arg(long, env = env::VIEW, hide_env_values = true, value_enum, default_value_t)]
    view: View,

    /// How to print it; `json` is the acp view, `quiet` only the agent's words
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum View {
    /// The conversation
    #[default]
    Text,
    /// ACP messages as the hub sends them, one a line, each with its number
    Acp,
}

impl Log {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("log")?;
        let row = find(&sessions(&mut conn)?, &self.session)?;
        let params = json!({ "sessionId": row.session_id, "after": self.after, "observe": true });
        let id = conn.ask("_jackfield/attach", &params)?;
        let raw = self.view == View::Acp || self.format == Format::Json;
        let mut transcript = Transcript::new(&desk.out, Side::Stdout);
        let mut veil = Veil::default();
        loop {
            match conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, id) => {
                    result_of(&frame)?;
                    if !self.follow {
                        self.tell_all(&mut transcript, veil.finish())?;
                        return transcript.finish();
                    }
                }
                Heard::Frame(frame) if frame.kind() != Kind::Notification => {}
                Heard::Frame(frame) if raw => desk.out.data(&format!("{}\n", frame.text()))?,
                Heard::Frame(frame) => {
                    self.tell_all(&mut transcript, veil.push(value_of(&frame)))?;
                }
                Heard::HubGone => {
                    self.tell_all(&mut transcript, veil.finish())?;
                    transcript.finish()?;
                    return Err(Failure::HubGone { waited_for: "what is said next".into() });
                }
                Heard::Typed(_) | Heard::TypedEnd | Heard::Interrupt | Heard::TimedOut => {}
            }
        }
    }
}

impl Log {
    /// Messages without their secrets, in words.
    fn tell_all(&self, transcript: &mut Transcript, shown: Vec<Value>) -> Result<(), Failure> {
        for message in shown {
            let kind = &message["params"]["update"]["sessionUpdate"];
            if self.format == Format::Quiet && kind != "agent_message_chunk" {
                transcript.finish()?;
            } else {
                transcript.message(&message)?;
            }
        }
        Ok(())
    }
}

/// One message of the hub, in words.
pub(super) fn tell(transcript: &mut Transcript, frame: &Frame) -> Result<(), Failure> {
    transcript.message(&value_of(frame))
}

fn value_of(frame: &Frame) -> Value {
    let params: Value = serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
    json!({ "method": frame.method(), "params": params })
}
