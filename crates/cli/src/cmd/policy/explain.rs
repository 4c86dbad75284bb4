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
use jackfield_events::{EventBody, ReceivedEvent, RuleLearned, UserAnswered, UserAsked};
use jackfield_protocol::acp::Method;
use jackfield_protocol::redact;
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

/// The events of one request to the user.
#[derive(Debug)]
struct ExplainedRequest {
    asked: UserAsked<Value>,
    answered: Option<UserAnswered<Value>>,
    learned: Option<RuleLearned<Value>>,
}

impl Explain {
    pub(super) fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("policy")?;
        let (row, named) = meant(&sessions(&mut conn)?, &self.session)?;
        let wanted = self.ask.or(named);
        let Some(request) = read(&mut conn, &row.session_id, wanted)? else {
            return Err(match wanted {
                Some(ask) => Failure::usage(
                    format!("session `{}` has no ask {ask}", row.session_id),
                    "`jackfield log` shows what was asked; leave the number out for the latest",
                ),
                None => Failure::NoAsk { session: row.session_id },
            });
        };
        match self.format {
            Format::Json => document(&desk.out, &request.to_json(&row.session_id)),
            Format::Quiet => desk.out.line(&request.why()),
            Format::Text => request.print(desk),
        }
    }
}

/// Reads the log up to its end. An observer is not asked anything meanwhile.
fn read(
    conn: &mut Conn,
    session: &str,
    wanted: Option<u64>,
) -> Result<Option<ExplainedRequest>, Failure> {
    let params = json!({ "sessionId": session, "after": 0, "observe": true });
    let id = conn.ask(Method::ControlAttach.name(), &params)?;
    let mut request = None;
    loop {
        match conn.next(None)? {
            Heard::Frame(frame) if is_answer(&frame, id) => {
                result_of(&frame)?;
                return Ok(request);
            }
            Heard::Frame(frame) if frame.is_method(Method::ControlAsk) => {
                let params = frame.params().and_then(|it| serde_json::from_str(it).ok());
                let mut params: Value = params.unwrap_or_default();
                redact::json(&mut params);
                if let Ok(event) = ReceivedEvent::from_value(params) {
                    add_event(&mut request, event.body, wanted);
                }
            }
            Heard::HubGone => {
                return Err(Failure::HubGone { waited_for: "the log".into() });
            }
            _ => {}
        }
    }
}

/// Adds an event that belongs to the wanted request; without a number the latest one is wanted.
fn add_event(request: &mut Option<ExplainedRequest>, body: EventBody<Value>, wanted: Option<u64>) {
    match (body, request) {
        (EventBody::Asked(asked), request) if wanted.is_none_or(|it| asked.ask == it) => {
            *request = Some(ExplainedRequest { asked, answered: None, learned: None });
        }
        (EventBody::Answered(answered), Some(it)) if answered.ask == it.asked.ask => {
            it.answered = Some(answered);
        }
        (EventBody::Learned(learned), Some(it)) if learned.ask == it.asked.ask => {
            it.learned = Some(learned);
        }
        _ => {}
    }
}

impl ExplainedRequest {
    fn decision(&self, name: &str) -> Option<&str> {
        self.asked.decision.as_ref()?.get(name)?.as_str()
    }

    fn why(&self) -> String {
        let none = "there was no rule about anything, so a person was asked";
        self.decision("why").unwrap_or(none).to_owned()
    }

    /// Who answered it, and with which option.
    fn ended(&self) -> String {
        let Some(UserAnswered { by, answer, .. }) = &self.answered else {
            return "open; `jackfield answer` answers it".to_owned();
        };
        if let Some(why) = answer["void"].as_str() {
            return format!("ended without an answer: {why}");
        }
        let chosen = answer["result"]["outcome"]["optionId"].as_str();
        let options = self.asked.frame["params"]["options"].as_array();
        let option = options.into_iter().flatten().find(|it| it["optionId"].as_str() == chosen);
        let name = option.and_then(|it| it["name"].as_str()).or(chosen).unwrap_or("no option");
        format!("{} by {by}", one_line(name, 80))
    }

    fn print(&self, desk: &Desk) -> Result<(), Failure> {
        let call = &self.asked.frame["params"]["toolCall"];
        let rule = self.learned.as_ref().map(|it| it.rule.to_string());
        let fields = [
            ("ask", self.asked.ask.to_string()),
            ("what", one_line(call["title"].as_str().unwrap_or_default(), usize::MAX)),
            ("why", self.why()),
            ("rule at", self.decision("place").unwrap_or_default().to_owned()),
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
            "ask": self.asked.ask,
            "toolCall": self.asked.frame["params"]["toolCall"],
            "decision": self.asked.decision,
            "by": self.answered.as_ref().map(|it| &*it.by),
            "answer": self.answered.as_ref().map(|it| &it.answer),
            "learned": self.learned.as_ref().map(|it| &it.rule),
        })
    }
}
