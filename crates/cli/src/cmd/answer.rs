//! `jackfield answer`: one answer to one ask, without attaching.

use crate::{
    app::Desk,
    ask::{OpenAsk, open_asks},
    env,
    hub::{Conn, Row, Until, Wait, find, sessions},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Answer what an agent asks, attached or not
///
/// The first answer counts: whoever else was asked need not answer any more.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield answer s-7f3 y
  $ jackfield answer s-7f3:2 deny
  $ jackfield answer s-7f3 --json '{\"action\":\"accept\",\"content\":{\"branch\":\"main\"}}'")]
pub(crate) struct Answer {
    /// An id, a unique prefix of one, or a title; `:N` names one of its asks [default: the oldest]
    #[arg(value_name = "SESSION[:N]")]
    session: String,

    /// A key as `jackfield asks` shows it, an option's id, or `allow` or `deny` for this once
    option: Option<String>,

    /// The whole answer, as a form wants it
    #[arg(long, env = env::JSON, hide_env_values = true, value_name = "RESULT")]
    json: Option<String>,
}

impl Answer {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let Some(mut conn) = desk.dial.talk_if_running("answer")? else {
            let hint = "without one no agent runs, so there is nothing to answer";
            return Err(Failure::NoDaemon { hint });
        };
        let (row, number) = meant(&sessions(&mut conn)?, &self.session)?;
        let id = row.session_id;
        let mut asks = open_asks(&mut conn)?;
        asks.retain(|it| it.session_id == id);
        let ask = asks.into_iter().find(|it| number.is_none_or(|number| it.number == number));
        let Some(mut ask) = ask else { return Err(missing(&mut conn, id, number)) };
        let (result, shown) = self.result(&ask)?;
        send(&mut conn, &id, ask.number, &result)?;
        if ask.needs_title() {
            ask.find_title(desk.dial.talk("answer")?)?;
        }
        let about = ask.ask.summary();
        desk.out.note(&format!("answered {id}:{} ({about}): {shown}", ask.number));
        Ok(())
    }

    /// What the agent shall hear, and the same in words. An option comes before what may be left
    /// over in the environment.
    fn result(&self, ask: &OpenAsk) -> Result<(Value, String), Failure> {
        match (&self.option, &self.json) {
            (Some(_), None) if ask.form => Err(Failure::usage(
                format!("ask {} is a form and has no options", ask.number),
                r#"answer it with `--json '{"action":"accept","content":{…}}'`, or `decline`"#,
            )),
            (Some(option), _) if !ask.form => chosen(ask, option),
            (_, Some(json)) => match serde_json::from_str(json) {
                Ok(result) => Ok((result, json.clone())),
                Err(error) => Err(Failure::usage(
                    format!("`--json` is not JSON: {error}"),
                    "check the quotes",
                )),
            },
            _ => Err(Failure::NoOption { typed: None, offers: ask.offers() }),
        }
    }
}

fn chosen(ask: &OpenAsk, option: &str) -> Result<(Value, String), Failure> {
    // These words never grant or refuse more than this once, whatever an option is called.
    let once = match option {
        "allow" => ask.ask.allow(),
        "deny" => Some(ask.ask.deny()),
        _ => None,
    };
    let Some(result) = once.or_else(|| ask.ask.typed(option)) else {
        return Err(Failure::NoOption { typed: Some(option.to_owned()), offers: ask.offers() });
    };
    let shown = ask.ask.name_of(&result);
    Ok((result, shown))
}

/// The session, and the ask if one is named. A title may end like a number.
pub(super) fn meant(rows: &[Row], named: &str) -> Result<(Row, Option<u64>), Failure> {
    let split = named.rsplit_once(':');
    match split.and_then(|(session, number)| Some((session, number.parse().ok()?))) {
        Some((session, number)) if find(rows, named).is_err() => {
            Ok((find(rows, session)?, Some(number)))
        }
        _ => Ok((find(rows, named)?, None)),
    }
}

/// Why there is nothing to answer. How an ask that is not open has ended, the hub says.
fn missing(conn: &mut Conn, session: String, number: Option<u64>) -> Failure {
    let refused = number.map(|it| send(conn, &session, it, &Value::Null));
    refused.and_then(Result::err).unwrap_or(Failure::NoAsk { session })
}

fn send(conn: &mut Conn, session: &str, ask: u64, result: &Value) -> Result<(), Failure> {
    let wait = Wait { what: "the answer to be written down", until: Until::Hub };
    let params = json!({ "sessionId": session, "ask": ask, "result": result });
    conn.call(Method::ControlAnswer.name(), &params, wait).map(drop)
}
