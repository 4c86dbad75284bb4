//! `jackfield answer`: answers one request without attaching.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, SessionRow, find_session, list_sessions},
    report::CommandError,
    requests::{OpenRequest, list_open_requests},
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Answer a request of an agent without attaching
///
/// The first answer wins; the request is withdrawn from all other clients.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield answer s-7f3 y
  $ jackfield answer s-7f3:2 deny
  $ jackfield answer s-7f3 --json '{\"action\":\"accept\",\"content\":{\"branch\":\"main\"}}'")]
pub(crate) struct AnswerCommand {
    /// A name, an id, a unique prefix of an id, or a title; `:N` selects one of its asks [default: the oldest]
    #[arg(value_name = "SESSION[:N]", add = complete::sessions())]
    session: String,

    /// A key that `jackfield asks` shows, an option's id, or `allow` or `deny`, which apply once
    option: Option<String>,

    /// The whole answer as JSON, for a form
    #[arg(long, env = env::JSON, hide_env_values = true, value_name = "RESULT")]
    json: Option<String>,
}

impl AnswerCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let Some(mut conn) = context.daemon.connect_if_running("answer")? else {
            let hint = "no agent runs without a daemon, so there is nothing to answer";
            return Err(CommandError::NoDaemon { hint });
        };
        let (row, number) = find_session_and_request(&list_sessions(&mut conn)?, &self.session)?;
        let id = row.session_id;
        let mut requests = list_open_requests(&mut conn)?;
        requests.retain(|it| it.session_id == id);
        let request =
            requests.into_iter().find(|it| number.is_none_or(|number| it.number == number));
        let Some(mut request) = request else {
            return Err(no_request_error(&mut conn, id, number));
        };
        let (result, description) = self.build_result(&request)?;
        send_answer(&mut conn, &id, request.number, &result)?;
        if request.needs_title() {
            request.find_title(context.daemon.connect("answer")?)?;
        }
        let summary = request.permission.summary();
        context
            .output
            .print_note(&format!("answered {id}:{} ({summary}): {description}", request.number));
        Ok(())
    }

    /// The result for the agent, and its description. The option takes precedence over `--json`, which may come from the
    /// environment.
    fn build_result(&self, request: &OpenRequest) -> Result<(Value, String), CommandError> {
        match (&self.option, &self.json) {
            (Some(_), None) if request.is_form => Err(CommandError::usage(
                format!("ask {} is a form and has no options", request.number),
                r#"answer it with `--json '{"action":"accept","content":{…}}'`, or `decline`"#,
            )),
            (Some(option), _) if !request.is_form => choose_option(request, option),
            (_, Some(json)) => match serde_json::from_str(json) {
                Ok(result) => Ok((result, json.clone())),
                Err(error) => Err(CommandError::usage(
                    format!("`--json` is not JSON: {error}"),
                    "check the quotes",
                )),
            },
            _ => Err(CommandError::InvalidOption { typed: None, options: request.option_lines() }),
        }
    }
}

fn choose_option(request: &OpenRequest, option: &str) -> Result<(Value, String), CommandError> {
    // `allow` and `deny` always apply once, even if an option has this id.
    let once = match option {
        "allow" => request.permission.allow_once(),
        "deny" => Some(request.permission.reject_once()),
        _ => None,
    };
    let Some(result) = once.or_else(|| request.permission.answer_for_input(option)) else {
        return Err(CommandError::InvalidOption {
            typed: Some(option.to_owned()),
            options: request.option_lines(),
        });
    };
    let name = request.permission.name_chosen_option(&result);
    Ok((result, name))
}

/// The session, and the number of the request if one is given. A title may end with a colon and a number, too.
pub(super) fn find_session_and_request(
    rows: &[SessionRow],
    named: &str,
) -> Result<(SessionRow, Option<u64>), CommandError> {
    let split = named.rsplit_once(':');
    match split.and_then(|(session, number)| Some((session, number.parse().ok()?))) {
        Some((session, number)) if find_session(rows, named).is_err() => {
            Ok((find_session(rows, session)?, Some(number)))
        }
        _ => Ok((find_session(rows, named)?, None)),
    }
}

/// Why there is nothing to answer. The hub's error tells how a request that is no longer open ended.
fn no_request_error(
    conn: &mut CommandConnection,
    session: String,
    number: Option<u64>,
) -> CommandError {
    let refused = number.map(|it| send_answer(conn, &session, it, &Value::Null));
    refused.and_then(Result::err).unwrap_or(CommandError::NoOpenRequest { session })
}

fn send_answer(
    conn: &mut CommandConnection,
    session: &str,
    ask: u64,
    result: &Value,
) -> Result<(), CommandError> {
    let params = json!({ "sessionId": session, "ask": ask, "result": result });
    conn.call_hub(Method::ControlAnswer, &params, "the daemon to store the answer").map(drop)
}
