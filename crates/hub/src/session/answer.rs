//! Lists and answers requests to the user without attaching. Answers are checked, because they come from a command line
//! and not from a dialog that offered the options.

use super::{Session, ask::UserRequest};
use crate::{ConnId, SessionId, Time, context::HubContext, parts::HubParts};
use jackfield_events::RawJson;
use jackfield_protocol::{Fault, Frame, is_planted, redact, rfc3339};
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::BTreeMap, sync::Arc};

const SELECTED: &str = r#"`result` must be `{"outcome":{"outcome":"selected","optionId":…}}`, or `cancelled` without an option"#;
const ACTION: &str = "`result` must say its `action`: `accept`, `decline` or `cancel`";

impl Session {
    /// Remembers how a request was closed, for as many as may be open.
    pub(super) fn remember_closed_request(&mut self, cx: &HubContext, number: u64, how: Arc<str>) {
        let max = cx.config.limits.asks_max;
        self.settled.insert(number, how);
        if max < self.settled.len() {
            self.settled.pop_first();
        }
    }

    /// The open requests to the user that are durable, with the time of each.
    pub(crate) fn user_request_rows(&self) -> Vec<(Time, Value)> {
        let durable = self.asks.iter().filter(|(_, it)| is_written(self, it));
        durable.map(|(&number, ask)| (ask.at, row(&self.id, self, number, ask))).collect()
    }

    pub(crate) fn on_answer_request(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params: BTreeMap<String, &RawValue> =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let number = params.get("ask").and_then(|it| it.get().parse::<u64>().ok());
        let (Some(number), Some(result)) = (number, params.get("result")) else {
            let why = "`ask` must be a number and `result` the answer".to_owned();
            return Err(Fault::InvalidParams { why });
        };
        let Some(ask) = self.asks.get(&number).filter(|it| is_written(self, it)) else {
            return Err(not_open(self, number));
        };
        let result = checked(number, ask, result.get());
        let result = result.map_err(|why| Fault::InvalidParams { why })?;
        self.answer_user_request(parts, number, conn, &Frame::result_for("0", &result));
        self.answer_after_log(parts, conn, &Frame::result_for(id, "{}"));
        Ok(())
    }
}

/// Requests that are not durable are not shown.
fn is_written(session: &Session, ask: &UserRequest) -> bool {
    ask.seq <= session.log.durable()
}

fn not_open(session: &Session, number: u64) -> Fault {
    let (id, ask) = (session.id.to_string(), number.to_string());
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
