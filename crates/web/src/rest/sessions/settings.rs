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
use jackfield_hub_client::HubClientError;
use jackfield_protocol::acp::Method;
use jackfield_views::options::{StoredSettings, take_commands};
use serde::Deserialize;
use serde_json::{Value, json};
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
    Ok(Json(describe_settings(&state.hub, &id).await?))
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
    let stored = read_settings(&state.hub, &id).await?;
    let setup = read_setup(&state.hub, &id, &stored).await?;
    // The agent may have to start first, so the shared connection and its time limit cannot be used.
    let mut connection = state.hub.connect().await?;
    if let Some(option) = option {
        option.apply(&mut connection, &id, &setup).await?;
    } else {
        let choices = SettingChoices { mode, model, reasoning: None };
        apply_choices(&mut connection, &id, &setup, &choices, false).await?;
    }
    Ok(Json(describe_settings(&state.hub, &id).await?))
}

/// Whether the agent of a session accepts images. Logs of earlier versions do not say it, but other sessions of the
/// agent may have shown it.
pub(crate) async fn accepts_images(
    state: &RestState,
    session: &str,
    agent: &str,
) -> Result<bool, HubClientError> {
    let stored = read_settings(&state.hub, session).await?;
    let is_known = || state.learned().get(agent).is_some_and(|it| it.images);
    Ok(stored.prompt_capabilities.image || is_known())
}

/// Reads the stored settings of a session.
async fn read_settings(hub: &HubClient, session: &str) -> Result<StoredSettings, HubClientError> {
    let params = json!({ "sessionId": session });
    let response = hub.call_method(Method::ControlSettings, &params).await?;
    serde_json::from_value(response).map_err(|_| HubClientError::NoReply)
}

/// The setup with the values that were set since.
async fn read_setup(
    hub: &HubClient,
    session: &str,
    stored: &StoredSettings,
) -> Result<Value, HubClientError> {
    Ok(stored.current_setup(read_event(hub, session, stored.options_seq).await?))
}

/// Reads the settings as clients get them.
async fn describe_settings(
    hub: &HubClient,
    session: &str,
) -> Result<SessionSettings, HubClientError> {
    let stored = read_settings(hub, session).await?;
    let setup = read_setup(hub, session, &stored).await?;
    let commands = read_event(hub, session, stored.commands_seq).await?.and_then(take_commands);
    Ok(SessionSettings::new(&setup, &commands.unwrap_or_default(), stored.prompt_capabilities))
}

async fn read_event(
    hub: &HubClient,
    session: &str,
    seq: Option<u64>,
) -> Result<Option<Value>, HubClientError> {
    match seq {
        Some(seq) => hub.read_event(session, seq).await,
        None => Ok(None),
    }
}
