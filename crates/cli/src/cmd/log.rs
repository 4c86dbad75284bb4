//! `jackfield log`: what was said in a session, from the journal.

use crate::{
    app::Desk,
    env,
    hub::{Conn, Heard, Part, facts_of, find, is_answer, result_of, sessions, warn_if_incomplete},
    out::{Format, Out, Retold, Side, Telling, Transcript},
    report::Failure,
};
use clap::{Args, ValueEnum};
use jackfield_events::ReceivedEvent;
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, Kind};
use jackfield_views::Veil;
use serde_json::{Value, json};

/// Show what was said in a session, and with `-f` what is being said
///
/// What looks like a secret is hidden, but not in the acp view: that is the conversation itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield log s-7f3
  $ jackfield log s-7f3 -f
  $ jackfield log s-7f3 --view acp --after 120 | jq -c .params.update
  $ jackfield log s-7f3 --view events -f | jq -rj 'select(.type == \"text_delta\").delta'")]
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
    /// Agent events, one a line: the same few for every agent
    Events,
    /// Session envelopes, one a line, under the same ids whenever they are read
    Envelopes,
}

impl Log {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("log")?;
        let session = find(&sessions(&mut conn)?, &self.session)?.session_id;
        let telling = match self.view {
            View::Text | View::Acp => None,
            View::Events => Some(Telling::Events),
            View::Envelopes => Some(Telling::Envelopes),
        };
        match telling.and_then(|it| Retold::new(&desk.out, it, &session)) {
            Some(mut retold) => self.retell(&mut conn, &session, &mut retold),
            None => self.tell(&mut conn, &session, &desk.out),
        }
    }

    /// In another vocabulary, made of the events as they stand in the log.
    fn retell(&self, conn: &mut Conn, session: &str, retold: &mut Retold) -> Result<(), Failure> {
        let mut veil = Veil::default();
        let part = Part { after: self.after, follow: self.follow, skip_damaged: false };
        let read = facts_of(conn, session, part, &mut |event| {
            // What is nested too deep to be read as a value has no words there.
            let Ok(fact) = serde_json::from_str(event) else { return Ok(()) };
            retell_all(retold, veil.push(fact))
        });
        retell_all(retold, veil.finish())?;
        read
    }

    /// As the hub tells it.
    fn tell(&self, conn: &mut Conn, session: &str, out: &Out) -> Result<(), Failure> {
        let params = json!({ "sessionId": session, "after": self.after, "observe": true });
        let id = conn.ask(Method::ControlAttach.name(), &params)?;
        let raw = self.view == View::Acp || self.format == Format::Json;
        let mut transcript = Transcript::new(out, Side::Stdout);
        let mut veil = Veil::default();
        loop {
            match conn.next(None)? {
                Heard::Frame(frame) if is_answer(&frame, id) => {
                    warn_if_incomplete(conn, session, &result_of(&frame)?);
                    if !self.follow {
                        self.tell_all(&mut transcript, veil.finish())?;
                        return transcript.finish();
                    }
                }
                Heard::Frame(frame) if frame.kind() != Kind::Notification => {}
                Heard::Frame(frame) if raw => out.exact(&format!("{}\n", frame.text()))?,
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

/// Events without their secrets, in another vocabulary. Those of a newer daemon are left out.
fn retell_all(retold: &mut Retold, events: Vec<Value>) -> Result<(), Failure> {
    let known = events.into_iter().filter_map(|it| ReceivedEvent::from_value(it).ok());
    known.into_iter().try_for_each(|it| retold.event(&it))
}

/// One message of the hub, in words.
pub(super) fn tell(transcript: &mut Transcript, frame: &Frame) -> Result<(), Failure> {
    transcript.message(&value_of(frame))
}

fn value_of(frame: &Frame) -> Value {
    let params: Value = serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
    json!({ "method": frame.method(), "params": params })
}
