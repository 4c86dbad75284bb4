//! `jackfield policy explain`: what the rules said to an ask, and how it ended.

use crate::{
    app::Desk,
    cmd::answer::meant,
    env,
    hub::{Conn, Heard, is_answer, result_of, sessions},
    out::{DIM, Format, document, one_line, paint},
    report::Failure,
};
use clap::Args;
use jackfield_wire::redact;
use serde_json::{Value, json};

/// Tell which rule decided about an ask, why, and who answered it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy explain s-7f3 2
  $ jackfield policy explain s-7f3:2
  $ jackfield policy explain s-7f3 2 --format json | jq -r .decision.why")]
pub(super) struct Explain {
    /// An id, a unique prefix of one, or a title; `:N` may name the ask
    session: String,

    /// The number of the ask; the latest if it is left out
    ask: Option<u64>,

    /// How to print it; `quiet` prints only why
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

/// What the log says about one ask.
#[derive(Debug, Default)]
struct Story {
    asked: Value,
    answered: Value,
    learned: Value,
}

impl Explain {
    pub(super) fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("policy")?;
        let (row, named) = meant(&sessions(&mut conn)?, &self.session)?;
        let wanted = self.ask.or(named);
        let story = read(&mut conn, &row.session_id, wanted)?;
        if story.asked.is_null() {
            return Err(match wanted {
                Some(ask) => Failure::usage(
                    format!("session `{}` has no ask {ask}", row.session_id),
                    "`jackfield log` shows what was asked; leave the number out for the latest",
                ),
                None => Failure::NoAsk { session: row.session_id },
            });
        }
        match self.format {
            Format::Json => document(&desk.out, &story.to_json(&row.session_id)),
            Format::Quiet => desk.out.line(&story.why()),
            Format::Text => story.print(desk),
        }
    }
}

/// Reads the log up to its end. Nothing is asked of us meanwhile: we only look.
fn read(conn: &mut Conn, session: &str, wanted: Option<u64>) -> Result<Story, Failure> {
    let params = json!({ "sessionId": session, "after": 0, "observe": true });
    let id = conn.ask("_jackfield/attach", &params)?;
    let mut story = Story::default();
    loop {
        match conn.next(None)? {
            Heard::Frame(frame) if is_answer(&frame, id) => {
                result_of(&frame)?;
                return Ok(story);
            }
            Heard::Frame(frame) if frame.method().as_deref() == Some("_jackfield/ask") => {
                let fact = frame.params().and_then(|it| serde_json::from_str(it).ok());
                let mut fact: Value = fact.unwrap_or_default();
                redact::json(&mut fact);
                story.take(fact, wanted);
            }
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: "the log".into() });
            }
            _ => {}
        }
    }
}

impl Story {
    fn take(&mut self, fact: Value, wanted: Option<u64>) {
        let is_it = |it: &Value| it["ask"] == fact["ask"];
        match fact["is"].as_str() {
            Some("asked") if wanted.is_none_or(|it| fact["ask"] == it) => {
                *self = Story { asked: fact, ..Story::default() };
            }
            Some("answered") if is_it(&self.asked) => self.answered = fact,
            Some("learned") if is_it(&self.asked) => self.learned = fact,
            _ => {}
        }
    }

    fn why(&self) -> String {
        let why = self.asked["decision"]["why"].as_str();
        why.unwrap_or("there was no rule about anything, so a person was asked").to_owned()
    }

    /// Who settled it, and with which option.
    fn ended(&self) -> String {
        let Some(by) = self.answered["by"].as_str() else {
            return "open; `jackfield answer` answers it".to_owned();
        };
        let answer = &self.answered["answer"];
        if let Some(why) = answer["void"].as_str() {
            return format!("ended without an answer: {why}");
        }
        let chosen = answer["result"]["outcome"]["optionId"].as_str();
        let options = self.asked["frame"]["params"]["options"].as_array();
        let option = options.into_iter().flatten().find(|it| it["optionId"].as_str() == chosen);
        let name = option.and_then(|it| it["name"].as_str()).or(chosen).unwrap_or("no option");
        format!("{} by {by}", one_line(name, 80))
    }

    fn print(&self, desk: &Desk) -> Result<(), Failure> {
        let call = &self.asked["frame"]["params"]["toolCall"];
        let rule = self.learned["rule"].as_object().map(|_| self.learned["rule"].to_string());
        let fields = [
            ("ask", self.asked["ask"].to_string()),
            ("what", one_line(call["title"].as_str().unwrap_or_default(), usize::MAX)),
            ("why", self.why()),
            ("rule at", self.asked["decision"]["place"].as_str().unwrap_or_default().to_owned()),
            ("answer", self.ended()),
            ("learned", rule.unwrap_or_default()),
        ];
        for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
            desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<8}"))))?;
        }
        Ok(())
    }

    fn to_json(&self, session: &str) -> Value {
        json!({
            "sessionId": session,
            "ask": self.asked["ask"],
            "toolCall": self.asked["frame"]["params"]["toolCall"],
            "decision": self.asked["decision"],
            "by": self.answered["by"],
            "answer": self.answered["answer"],
            "learned": self.learned["rule"],
        })
    }
}
