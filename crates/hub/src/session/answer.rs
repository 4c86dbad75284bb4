//! Lists and answers requests to the user without attaching. Answers are checked, because they come from a command line
//! and not from a dialog that offered the options.

use super::{Session, ask::UserRequest, list::rfc3339};
use crate::{ConnId, Hub, SessionId, context::HubContext, session::Sessions};
use jackfield_events::RawJson;
use jackfield_protocol::{Fault, Frame, is_planted, redact};
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::BTreeMap, sync::Arc};

const SELECTED: &str = r#"`result` must be `{"outcome":{"outcome":"selected","optionId":…}}`, or `cancelled` without an option"#;
const ACTION: &str = "`result` must say its `action`: `accept`, `decline` or `cancel`";

impl Sessions {
    /// Remembers how a request was closed, for as many as may be open.
    pub(super) fn remember_closed_request(
        &mut self,
        cx: &HubContext,
        id: &SessionId,
        number: u64,
        how: Arc<str>,
    ) {
        let max = cx.config.limits.asks_max;
        let Some(session) = self.by_id.get_mut(id) else { return };
        session.settled.insert(number, how);
        if max < session.settled.len() {
            session.settled.pop_first();
        }
    }
}

impl Hub {
    /// All open requests that a client may see, the oldest first.
    pub(crate) fn open_asks(&self, conn: ConnId) -> Vec<Value> {
        let of = |(id, session): (&SessionId, &Session)| {
            let written = session.asks.iter().filter(|(_, it)| is_written(session, it));
            let row =
                |(&number, ask): (&u64, &UserRequest)| (ask.at, row(id, session, number, ask));
            written.map(row).collect::<Vec<_>>()
        };
        let mut rows: Vec<_> = self.sessions_of(conn).flat_map(of).collect();
        rows.sort_by_key(|(at, _)| *at);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    pub(crate) fn on_control_answer(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session_id = self.sessions.find_session(frame)?;
        let params: BTreeMap<String, &RawValue> =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let number = params.get("ask").and_then(|it| it.get().parse::<u64>().ok());
        let (Some(number), Some(result)) = (number, params.get("result")) else {
            let why = "`ask` must be a number and `result` the answer".to_owned();
            return Err(Fault::InvalidParams { why });
        };
        let session = &self.sessions.by_id[&session_id];
        let Some(ask) = session.asks.get(&number).filter(|it| is_written(session, it)) else {
            return Err(not_open(&session_id, session, number));
        };
        let result = checked(number, ask, result.get());
        let result = result.map_err(|why| Fault::InvalidParams { why })?;
        self.settle_ask(&session_id, number, conn, &Frame::result_for("0", &result));
        self.answer_in(&session_id, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }
}

/// Requests that are not durable are not shown.
fn is_written(session: &Session, ask: &UserRequest) -> bool {
    ask.seq <= session.log.durable()
}

fn not_open(id: &SessionId, session: &Session, number: u64) -> Fault {
    let (id, ask) = (id.to_string(), number.to_string());
    if number == 0 || session.summary().asks < number || session.asks.contains_key(&number) {
        return Fault::AskNotFound { session: id, ask };
    }
    let how = session.settled.get(&number).map_or("earlier; the log says how", |it| &**it);
    Fault::AskSettled { session: id, ask, how: how.to_owned() }
}

/// One request: `what` is the title of the agent, `call` has the facts that the policy reads.
fn row(id: &SessionId, session: &Session, number: u64, ask: &UserRequest) -> Value {
    let mut params = params_of(ask);
    let mut row = json!({
        "sessionId": &**id,
        "ask": number,
        "agent": &*session.summary().agent,
        "since": rfc3339(ask.at.0),
        "method": ask.frame.method(),
    });
    if ask.is_permission() {
        let mut call = params.remove("toolCall").unwrap_or_default();
        let mut member = |name: &str| call.get_mut(name).map_or(Value::Null, Value::take);
        row["what"] = member("title");
        row["kind"] = member("kind");
        row["toolCallId"] = member("toolCallId");
        row["call"] = ask.facts.as_ref().and_then(RawJson::parse).unwrap_or_default();
        row["options"] = params.remove("options").unwrap_or_else(|| json!([]));
    } else {
        row["what"] = params.remove("message").unwrap_or_default();
        let names = ["mode", "requestedSchema", "url"];
        for (name, value) in names.iter().filter_map(|it| Some((it, params.remove(*it)?))) {
            row[*name] = value;
        }
    }
    // The list is short; the whole request goes to clients that can answer it.
    redact::json(&mut row["what"]);
    let options = row.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten();
    options.filter_map(|it| it.get_mut("name")).for_each(redact::json);
    row
}

fn params_of(ask: &UserRequest) -> Map<String, Value> {
    serde_json::from_str(ask.frame.params().unwrap_or("{}")).unwrap_or_default()
}

/// The answer for the agent, or why it is not valid.
fn checked(number: u64, ask: &UserRequest, result: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    if !ask.is_permission() {
        let known = matches!(value["action"].as_str(), Some("accept" | "decline" | "cancel"));
        return if known { Ok(result.to_owned()) } else { Err(ACTION.to_owned()) };
    }
    let outcome = &value["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("cancelled"), None) => {}
        (Some("selected"), Some(chosen)) => {
            let options = params_of(ask).remove("options").unwrap_or_default();
            let options = options.as_array().into_iter().flatten();
            let offered: Vec<&str> = options.filter_map(|it| it["optionId"].as_str()).collect();
            if !offered.contains(&chosen) && !is_planted("accept-unknown-option") {
                let offered: Vec<String> = offered.iter().map(|it| format!("`{it}`")).collect();
                let offered = offered.join(", ");
                return Err(format!(
                    "ask {number} offers no option `{chosen}`: it offers {offered}"
                ));
            }
        }
        _ => return Err(SELECTED.to_owned()),
    }
    // Written again: if a member is there twice, the agent gets the one that was checked.
    Ok(value.to_string())
}
