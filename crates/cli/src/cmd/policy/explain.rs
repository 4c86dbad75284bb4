//! `jackfield policy explain`: shows which rule decided a request, and how the request ended.

use crate::{
    cmd::answer::find_session_and_request,
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, list_sessions, read_notifications},
    out::{DIM, OutputFormat, paint, print_json_document},
    plain_text::to_one_line,
    report::CommandError,
};
use clap::Args;
use jackfield_events::{EventBody, ReceivedEvent, RuleLearned, UserAnswered, UserAsked};
use jackfield_protocol::{acp::Method, redact};
use serde_json::{Value, json};

/// Show which rule decided an ask, why, and who answered it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy explain s-7f3 2
  $ jackfield policy explain s-7f3:2
  $ jackfield policy explain s-7f3 2 --format json | jq -r .decision.why")]
pub(super) struct ExplainRequestCommand {
    /// A name, an id, a unique prefix of an id, or a title; `:N` selects the ask
    #[arg(add = complete::sessions())]
    session: String,

    /// The number of the ask [default: the latest]
    ask: Option<u64>,

    /// How to print it; `quiet` prints only the reason
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The events of one request to the user.
#[derive(Debug)]
struct ExplainedRequest {
    asked: UserAsked<Value>,
    answered: Option<UserAnswered<Value>>,
    learned: Option<RuleLearned<Value>>,
}

impl ExplainRequestCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("policy")?;
        let (row, number) = find_session_and_request(&list_sessions(&mut conn)?, &self.session)?;
        let wanted = self.ask.or(number);
        let Some(request) = read_request(&mut conn, &row.session_id, wanted)? else {
            return Err(match wanted {
                Some(ask) => CommandError::usage(
                    format!("session `{}` has no ask {ask}", row.session_id),
                    "`jackfield log` shows all asks; leave out the number for the latest",
                ),
                None => CommandError::NoOpenRequest { session: row.session_id },
            });
        };
        match self.format {
            OutputFormat::Json => {
                print_json_document(&context.output, &request.to_json(&row.session_id))
            }
            OutputFormat::Quiet => context.output.print_line(&request.reason()),
            OutputFormat::Text => request.print_fields(context),
        }
    }
}

/// Reads the log up to its end.
fn read_request(
    conn: &mut CommandConnection,
    session: &str,
    wanted: Option<u64>,
) -> Result<Option<ExplainedRequest>, CommandError> {
    let mut request = None;
    read_notifications(conn, session, 0, "the session's log", &mut |frame| {
        if !frame.is_method(Method::ControlAsk) {
            return;
        }
        let params = frame.params().and_then(|it| serde_json::from_str(it).ok());
        let mut params: Value = params.unwrap_or_default();
        redact::json(&mut params);
        if let Ok(event) = ReceivedEvent::from_value(params) {
            add_event(&mut request, event.body, wanted);
        }
    })?;
    Ok(request)
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

    fn reason(&self) -> String {
        let no_rules = "no policy rules exist, so you were asked";
        self.decision("why").unwrap_or(no_rules).to_owned()
    }

    /// Who answered the request, and with which option.
    fn outcome(&self) -> String {
        let Some(UserAnswered { by, answer, .. }) = &self.answered else {
            return "none yet; answer it with `jackfield answer`".to_owned();
        };
        if let Some(why) = answer["void"].as_str() {
            return format!("ended without an answer: {why}");
        }
        let chosen = answer["result"]["outcome"]["optionId"].as_str();
        let options = self.asked.frame["params"]["options"].as_array();
        let option = options.into_iter().flatten().find(|it| it["optionId"].as_str() == chosen);
        let name = option.and_then(|it| it["name"].as_str()).or(chosen).unwrap_or("no option");
        format!("{} by {by}", to_one_line(name, 80))
    }

    fn print_fields(&self, context: &CommandContext) -> Result<(), CommandError> {
        let call = &self.asked.frame["params"]["toolCall"];
        let rule = self.learned.as_ref().map(|it| it.rule.to_string());
        let fields = [
            ("ask", self.asked.ask.to_string()),
            ("what", to_one_line(call["title"].as_str().unwrap_or_default(), usize::MAX)),
            ("why", self.reason()),
            ("rule at", self.decision("place").unwrap_or_default().to_owned()),
            ("answer", self.outcome()),
            ("learned", rule.unwrap_or_default()),
        ];
        for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
            context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<8}"))))?;
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
