//! The routes `/api/asks`: open requests of agents to the user, in all sessions.

use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{JsonBody, PathParams},
    sessions::DoneResponse,
};
use axum::{Json, extract::State};
use jackfield_protocol::acp::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// Open requests to the user, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AskList {
    asks: Vec<OpenAsk>,
}

/// An open request of an agent to the user.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Ask, example = json!({
    "sessionId": "s-7f3abcdefghi", "ask": 1, "agent": "codex", "since": "2026-11-15T08:30:00.123Z",
    "method": Method::SessionRequestPermission.name(), "what": "run `cargo test`", "kind": "execute",
    "toolCallId": "call-1",
    "options": [
        { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ],
}))]
pub(crate) struct OpenAsk {
    pub(crate) session_id: String,
    /// The number of the request in the session.
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
    /// What the agent wants to do or to know; empty if the request has only a tool call.
    pub(crate) what: Option<String>,
    /// The permission request as the policy parses it: `commands`, `cwd`, `folders`, `paths`, `mcp`, `tool`, `unknown`
    /// texts, `why` no rule answered, and what `always` would mean. `what` is the text of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) call: Option<Value>,
    /// The kind of tool: `read`, `edit`, `execute`, …
    pub(crate) kind: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    /// The options of a permission request; a form has none.
    #[serde(default)]
    #[schema(required)]
    pub(crate) options: Vec<AskOption>,
    /// How the user fills in a form: `form`: here, as `requestedSchema` says; `url`: at the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// The JSON schema of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) requested_schema: Option<Value>,
    /// The address of a form that is filled in elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// One option of a permission request.
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

/// List the open requests of agents to the user
#[utoipa::path(
    get, path = "/api/asks", tag = "asks",
    responses(
        (status = 200, description = "open requests, the oldest first", body = AskList),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn list_asks(
    State(state): State<Arc<RestState>>,
) -> Result<Json<AskList>, ApiError> {
    Ok(Json(AskList { asks: list_open(&state).await? }))
}

async fn list_open(state: &RestState) -> Result<Vec<OpenAsk>, ApiError> {
    let mut response = state.hub.call_method(Method::ControlAsks, &json!({})).await?;
    let rows = response.get_mut("asks").map_or(Value::Null, Value::take);
    let rows = if let Value::Array(rows) = rows { rows } else { Vec::new() };
    Ok(rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect())
}

/// An answer: one of the options, or the result of a form.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "option": "allow" }))]
pub(crate) struct AnswerBody {
    /// The id of an option; or `allow` or `deny`, which apply to this request only.
    option: Option<String>,
    /// The complete answer to a form: `{"action": "accept", "content": {…}}`, `decline` or `cancel`.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
}

/// Answer a request; the first answer counts
#[utoipa::path(
    post, path = "/api/asks/{sessionId}/{ask}", tag = "asks",
    params(
        ("sessionId" = String, Path, example = "s-7f3abcdefghi"),
        ("ask" = u64, Path, example = 1),
    ),
    request_body = AnswerBody,
    responses(
        (status = 200, description = "the answer is recorded", body = DoneResponse),
        (status = 400, description = "the request has no such option", body = ErrorBody),
        (status = 404, description = "the request does not exist", body = ErrorBody),
        (status = 409, description = "the request is already answered or expired", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn answer_ask(
    State(state): State<Arc<RestState>>,
    PathParams((session, ask)): PathParams<(String, u64)>,
    JsonBody(body): JsonBody<AnswerBody>,
) -> Result<Json<DoneResponse>, ApiError> {
    let result = match (body.option, body.result) {
        (Some(option), None) => {
            let open = list_open(&state).await?;
            let open = open.iter().find(|it| it.session_id == session && it.number == ask);
            // If the request is not open, the hub reports how it ended.
            open.map_or_else(|| Ok(select_option(&option)), |it| it.answer_with(&option))?
        }
        (None, Some(result)) => result,
        _ => return Err(ApiError::invalid("set either `option` or `result`")),
    };
    let params = json!({ "sessionId": session, "ask": ask, "result": result });
    state.hub.call_method(Method::ControlAnswer, &params).await?;
    Ok(Json(DoneResponse { ok: true }))
}

impl OpenAsk {
    /// The result for this option.
    fn answer_with(&self, option: &str) -> Result<Value, ApiError> {
        if self.method == Method::ElicitationCreate.name() {
            let hint = r#"answer it with `{"result": {"action": "accept", "content": {…}}}`"#;
            return Err(ApiError::invalid(format!("request {} is a form: {hint}", self.number)));
        }
        let is_id = self.options.iter().any(|it| it.option_id == option);
        match option {
            "deny" => Ok(jackfield_policy::deny_once(&self.to_params())),
            "allow" if !is_id => jackfield_policy::allow_once(&self.to_params()).ok_or_else(|| {
                let hint = "choose one of its options by id";
                ApiError::invalid(format!(
                    "request {} has no option that allows it once: {hint}",
                    self.number
                ))
            }),
            _ => Ok(select_option(option)),
        }
    }

    /// The options as in the parameters of the request.
    fn to_params(&self) -> Value {
        json!({ "options": self.options })
    }
}

fn select_option(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(options: &[(&str, &str)]) -> OpenAsk {
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
            .collect();
        let ask = json!({ "sessionId": "s-1", "ask": 1, "options": options });
        serde_json::from_value(ask).unwrap()
    }

    #[test]
    fn allow_and_deny_apply_once_and_other_values_are_ids() {
        let ask = ask(&[("ever", "allow_always"), ("once", "allow_once"), ("no", "reject_once")]);
        let chosen = |it: &str| ask.answer_with(it).unwrap()["outcome"]["optionId"].clone();
        assert_eq!(chosen("allow"), "once");
        assert_eq!(chosen("deny"), "no");
        assert_eq!(chosen("ever"), "ever");
    }

    #[test]
    fn permanent_option_is_not_used_for_allow_or_deny() {
        let ask = ask(&[("ever", "allow_always"), ("never", "reject_always")]);
        assert!(
            ask.answer_with("allow").unwrap_err().message.contains("choose one of its options")
        );
        assert_eq!(ask.answer_with("deny").unwrap()["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn form_is_not_answered_with_an_option() {
        let form = OpenAsk { method: "elicitation/create".into(), ..ask(&[]) };
        assert!(form.answer_with("allow").unwrap_err().message.contains("is a form"));
    }
}
