//! The settings of a session: the modes, models and options that its agent offers, its commands, and what it accepts
//! in a prompt. They are read from the log, so the agent need not run; changing one restores the agent.

use super::offered::{OptionChange, SessionSettings};
use crate::rest::{
    RestState,
    error::{ApiError, ErrorBody},
    extract::{JsonBody, PathParams},
    hub_client::HubClient,
    runs::{SettingChoices, apply_choices},
};
use axum::{Json, extract::State};
use jackfield_events::PromptCapabilities;
use jackfield_hub_client::HubClientError;
use jackfield_protocol::acp::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// Get the settings of a session
#[utoipa::path(
    get, path = "/api/sessions/{sessionId}/settings", tag = "settings",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    responses(
        (status = 200, description = "the settings", body = SessionSettings),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn show_settings(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<SessionSettings>, ApiError> {
    Ok(Json(StoredSettings::read(&state.hub, &id).await?.to_settings(&state.hub, &id).await?))
}

/// A change of one setting: `mode`, `model` or `option`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "mode": "plan" }))]
pub(crate) struct SettingsChange {
    /// One of the modes, by id or name.
    mode: Option<String>,
    /// One of the models, by id or name; or another one that the agent may know.
    model: Option<String>,
    option: Option<OptionChange>,
}

/// Change a setting of a session; its agent is restored if it does not run
#[utoipa::path(
    patch, path = "/api/sessions/{sessionId}/settings", tag = "settings",
    params(("sessionId" = String, Path, example = "s-7f3abcdefghi")),
    request_body = SettingsChange,
    responses(
        (status = 200, description = "the settings after the change", body = SessionSettings),
        (status = 400, description = "the agent does not offer this, or rejected it", body = ErrorBody),
        (status = 404, description = "the session does not exist", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 415, description = "the body is not JSON", body = ErrorBody),
        (status = 424, description = "the agent failed to start", body = ErrorBody),
        (status = 502, description = "the agent failed", body = ErrorBody),
        (status = 503, description = "the hub does not reply", body = ErrorBody),
    ),
)]
pub(crate) async fn change_settings(
    State(state): State<Arc<RestState>>,
    PathParams(id): PathParams<String>,
    JsonBody(change): JsonBody<SettingsChange>,
) -> Result<Json<SessionSettings>, ApiError> {
    let SettingsChange { mode, model, option } = change;
    let count = [mode.is_some(), model.is_some(), option.is_some()];
    if count.iter().filter(|it| **it).count() != 1 {
        return Err(ApiError::invalid("set one of `mode`, `model` and `option`"));
    }
    let stored = StoredSettings::read(&state.hub, &id).await?;
    let setup = stored.current_setup(&state.hub, &id).await?;
    // The agent may have to start first, so the shared connection and its time limit cannot be used.
    let mut connection = state.hub.connect().await?;
    if let Some(option) = option {
        option.apply(&mut connection, &id, &setup).await?;
    } else {
        let choices = SettingChoices { mode, model, reasoning: None };
        apply_choices(&mut connection, &id, &setup, &choices, false).await?;
    }
    Ok(Json(StoredSettings::read(&state.hub, &id).await?.to_settings(&state.hub, &id).await?))
}

/// Whether the agent of a session accepts images. Logs of earlier versions do not say it, but other sessions of the
/// agent may have shown it.
pub(crate) async fn accepts_images(
    state: &RestState,
    session: &str,
    agent: &str,
) -> Result<bool, HubClientError> {
    let stored = StoredSettings::read(&state.hub, session).await?;
    let is_known = || state.learned().get(agent).is_some_and(|it| it.images);
    Ok(stored.prompt_capabilities.image || is_known())
}

/// The answer to `_jackfield/settings`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSettings {
    /// The result of `session/new`, or of the request that restored the session.
    #[serde(default)]
    setup: Value,
    /// The last mode and model that were set.
    mode: Option<String>,
    model: Option<String>,
    /// The values of options that clients have set.
    #[serde(default)]
    config: Map<String, Value>,
    /// The events with the latest commands and options.
    commands_seq: Option<u64>,
    options_seq: Option<u64>,
    #[serde(default)]
    prompt_capabilities: PromptCapabilities,
}

impl StoredSettings {
    async fn read(hub: &HubClient, session: &str) -> Result<StoredSettings, HubClientError> {
        let params = json!({ "sessionId": session });
        let response = hub.call_method(Method::ControlSettings, &params).await?;
        serde_json::from_value(response).map_err(|_| HubClientError::NoReply)
    }

    /// The setup with the values that were set since.
    async fn current_setup(&self, hub: &HubClient, session: &str) -> Result<Value, HubClientError> {
        let mut setup = if self.setup.is_object() { self.setup.clone() } else { json!({}) };
        let latest = match self.options_seq {
            Some(seq) => hub.read_event(session, seq).await?.and_then(take_options),
            None => None,
        };
        match latest {
            Some(options) => setup["configOptions"] = options,
            // The setup is older than these values.
            None => set_values(&mut setup["configOptions"], &self.config),
        }
        if let (Some(mode), true) = (&self.mode, setup["modes"].is_object()) {
            setup["modes"]["currentModeId"] = json!(mode);
        }
        if let (Some(model), true) = (&self.model, setup["models"].is_object()) {
            setup["models"]["currentModelId"] = json!(model);
        }
        Ok(setup)
    }

    async fn to_settings(
        &self,
        hub: &HubClient,
        session: &str,
    ) -> Result<SessionSettings, HubClientError> {
        let setup = self.current_setup(hub, session).await?;
        let commands = match self.commands_seq {
            Some(seq) => hub.read_event(session, seq).await?,
            None => None,
        };
        let commands = commands.and_then(|mut it| {
            Some(it.pointer_mut("/frame/params/update/availableCommands")?.take())
        });
        let commands = commands.unwrap_or_default();
        Ok(SessionSettings::new(&setup, &commands, self.prompt_capabilities))
    }
}

/// The config options in an update of the agent or in its answer to a change.
fn take_options(mut event: Value) -> Option<Value> {
    let pointers = ["/frame/params/update/configOptions", "/answer/configOptions"];
    let pointer = pointers.into_iter().find(|it| event.pointer(it).is_some_and(Value::is_array))?;
    event.pointer_mut(pointer).map(Value::take)
}

/// Sets the current values of config options.
fn set_values(options: &mut Value, values: &Map<String, Value>) {
    for option in options.as_array_mut().into_iter().flatten() {
        let value = option["id"].as_str().and_then(|id| values.get(id));
        if let Some(value) = value.cloned() {
            option["currentValue"] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_from_an_update_or_from_an_answer() {
        let update = json!({ "frame": { "params": { "update": { "configOptions": [1] } } } });
        assert_eq!(take_options(update), Some(json!([1])));
        let answer = json!({ "frame": { "params": { "configId": "x" } }, "answer": { "configOptions": [2] } });
        assert_eq!(take_options(answer), Some(json!([2])));
        assert_eq!(take_options(json!({ "answer": {} })), None);
    }
}
