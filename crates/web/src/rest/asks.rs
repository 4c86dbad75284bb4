//! `/api/asks`: what agents ask and nobody has answered, in every session.

use crate::rest::{
    Api,
    body::{Body, Named},
    error::{ApiError, ErrorBody},
    sessions::Done,
};
use axum::{Json, extract::State};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// Open asks, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AskList {
    asks: Vec<Ask>,
}

/// What an agent asks.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "sessionId": "s-7f3abcdefghi", "ask": 1, "agent": "codex", "since": "2026-11-15T08:30:00.123Z",
    "method": "session/request_permission", "what": "run `cargo test`", "kind": "execute",
    "toolCallId": "call-1",
    "options": [
        { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ],
}))]
pub(crate) struct Ask {
    pub(crate) session_id: String,
    /// Its number in the session.
    #[serde(rename = "ask")]
    pub(crate) number: u64,
    #[serde(default)]
    #[schema(required)]
    pub(crate) agent: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) since: String,
    /// `session/request_permission`, or `elicitation/create` for a form.
    #[serde(default)]
    #[schema(required)]
    pub(crate) method: String,
    /// What it wants to do or to know; empty where only the tool call is named.
    pub(crate) what: Option<String>,
    /// What a permission request is about, as the policy reads it: `commands`, `cwd`, `folders`, `paths`, `mcp`,
    /// `tool`, `unknown` texts, `why` no rule answered, and what `always` would mean. `what` is the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) call: Option<Value>,
    /// The kind of tool: `read`, `edit`, `execute`, …
    pub(crate) kind: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    /// What can be answered; a form has none.
    #[serde(default)]
    #[schema(required)]
    pub(crate) options: Vec<AskOption>,
    /// The form, as a JSON schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) requested_schema: Option<Value>,
    /// Where a form is filled in elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// One of the answers that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskOption {
    #[serde(default)]
    #[schema(required)]
    pub(crate) option_id: String,
    #[serde(default)]
    #[schema(required)]
    pub(crate) name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    #[serde(default)]
    #[schema(required)]
    pub(crate) kind: String,
}

/// What agents ask and nobody has answered
#[utoipa::path(
    get, path = "/api/asks", tag = "asks",
    responses(
        (status = 200, description = "open asks, the oldest first", body = AskList),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn list_asks(State(api): State<Arc<Api>>) -> Result<Json<AskList>, ApiError> {
    Ok(Json(AskList { asks: open(&api).await? }))
}

async fn open(api: &Api) -> Result<Vec<Ask>, ApiError> {
    let mut answer = api.hub.call(Method::ControlAsks.name(), &json!({})).await?;
    let rows = answer.get_mut("asks").map_or(Value::Null, Value::take);
    let rows = if let Value::Array(rows) = rows { rows } else { Vec::new() };
    Ok(rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect())
}

/// An answer: one of the options, or what a form wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "option": "allow" }))]
pub(crate) struct AnswerBody {
    /// The id of an option; or `allow` or `deny`, which never grant or refuse more than this once.
    option: Option<String>,
    /// The whole answer to a form: `{"action": "accept", "content": {…}}`, `decline` or `cancel`.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
}

/// Answer an ask; the first answer counts
#[utoipa::path(
    post, path = "/api/asks/{sessionId}/{ask}", tag = "asks",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("ask" = u64, Path, example = 1),
    ),
    request_body = AnswerBody,
    responses(
        (status = 200, description = "it is written down", body = Done),
        (status = 400, description = "it offers no such option", body = ErrorBody),
        (status = 404, description = "there is no such ask", body = ErrorBody),
        (status = 409, description = "it is settled", body = ErrorBody),
        (status = 413, description = "the body is too long", body = ErrorBody),
        (status = 415, description = "the body is no JSON", body = ErrorBody),
        (status = 503, description = "the hub does not answer", body = ErrorBody),
    ),
)]
pub(crate) async fn answer_ask(
    State(api): State<Arc<Api>>,
    Named((session, ask)): Named<(String, u64)>,
    Body(body): Body<AnswerBody>,
) -> Result<Json<Done>, ApiError> {
    let result = match (body.option, body.result) {
        (Some(option), None) => {
            let open = open(&api).await?;
            let open = open.iter().find(|it| it.session_id == session && it.number == ask);
            // One that is not open is the hub's to explain: it knows how it ended.
            open.map_or_else(|| Ok(selected(&option)), |it| it.answer(&option))?
        }
        (None, Some(result)) => result,
        _ => return Err(ApiError::invalid("give either `option` or `result`")),
    };
    let params = json!({ "sessionId": session, "ask": ask, "result": result });
    api.hub.call(Method::ControlAnswer.name(), &params).await?;
    Ok(Json(Done { ok: true }))
}

impl Ask {
    /// What the agent is told when this option is chosen.
    fn answer(&self, option: &str) -> Result<Value, ApiError> {
        if self.method == Method::ElicitationCreate.name() {
            let way = r#"answer it with `{"result": {"action": "accept", "content": {…}}}`"#;
            return Err(ApiError::invalid(format!("ask {} is a form: {way}", self.number)));
        }
        let by_id = self.options.iter().any(|it| it.option_id == option);
        match option {
            "deny" => Ok(refuse(&self.options)),
            "allow" if !by_id => allow(&self.options).ok_or_else(|| {
                let way = "name one of its options by id";
                ApiError::invalid(format!(
                    "ask {} cannot be allowed for this once: {way}",
                    self.number
                ))
            }),
            _ => Ok(selected(option)),
        }
    }
}

/// Allows it, this once; never for good.
pub(crate) fn allow(options: &[AskOption]) -> Option<Value> {
    options.iter().find(|it| it.kind == "allow_once").map(|it| selected(&it.option_id))
}

/// Refuses it, this once; without such an option the ask is only ended.
pub(crate) fn refuse(options: &[AskOption]) -> Value {
    let refusal = options.iter().find(|it| it.kind == "reject_once");
    let ended = || json!({ "outcome": { "outcome": "cancelled" } });
    refusal.map_or_else(ended, |it| selected(&it.option_id))
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(options: &[(&str, &str)]) -> Ask {
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
            .collect();
        let ask = json!({ "sessionId": "s-1", "ask": 1, "options": options });
        serde_json::from_value(ask).unwrap()
    }

    #[test]
    fn two_words_stand_for_this_once_and_everything_else_is_an_id() {
        let ask = ask(&[("ever", "allow_always"), ("once", "allow_once"), ("no", "reject_once")]);
        let chosen = |it: &str| ask.answer(it).unwrap()["outcome"]["optionId"].clone();
        assert_eq!(chosen("allow"), "once");
        assert_eq!(chosen("deny"), "no");
        assert_eq!(chosen("ever"), "ever");
    }

    #[test]
    fn what_is_only_offered_for_ever_is_not_taken_for_this_once() {
        let ask = ask(&[("ever", "allow_always"), ("never", "reject_always")]);
        assert!(ask.answer("allow").unwrap_err().message.contains("name one of its options"));
        assert_eq!(ask.answer("deny").unwrap()["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn a_form_is_not_answered_with_an_option() {
        let form = Ask { method: "elicitation/create".into(), ..ask(&[]) };
        assert!(form.answer("allow").unwrap_err().message.contains("is a form"));
    }
}
