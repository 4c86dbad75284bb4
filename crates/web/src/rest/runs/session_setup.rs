//! Prepares a session for a prompt: opens or resumes it, and changes its settings.

use super::{
    driver::{RunPlan, RunTarget},
    idempotency::KeyedRequest,
};
use crate::rest::{RestState, error::ApiError, hub_client::initialize};
use jackfield_hub_client::{HubClientError, HubConnection};
use jackfield_protocol::acp::Method;
use jackfield_views::options::{SessionSetting, SettingError, plan_change};
use serde_json::{Value, json};

/// Settings to change before the prompt. A missing setting is left to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SettingChoices {
    pub(crate) model: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) mode: Option<String>,
}

impl SettingChoices {
    fn iter(&self) -> impl Iterator<Item = (SessionSetting, &'static str, &str)> {
        let settings = [
            (SessionSetting::Model, "model", &self.model),
            (SessionSetting::Reasoning, "reasoning", &self.reasoning),
            (SessionSetting::Mode, "mode", &self.mode),
        ];
        settings.into_iter().filter_map(|(setting, name, it)| Some((setting, name, it.as_deref()?)))
    }
}

/// A session that is ready for a prompt.
#[derive(Debug)]
pub(super) struct ReadySession {
    pub(super) connection: HubConnection,
    pub(super) session: String,
    /// The agent accepts images.
    pub(super) accepts_images: bool,
}

/// Opens or resumes the session of a run. If a new session cannot be used, it is deleted.
pub(super) async fn prepare_session(
    state: &RestState,
    plan: &RunPlan,
) -> Result<ReadySession, ApiError> {
    let RunPlan { target, choices, .. } = plan;
    let mut connection = state.hub.dial().await?;
    let (session, setup, accepts_images) = match target {
        RunTarget::NewSession { agent, cwd, unenforced } => {
            let launch = json!({ "agent": agent, "cwd": cwd, "unenforced": unenforced });
            connection.call_method(Method::ControlConnect, &launch).await?;
            let initialized = initialize(&mut connection).await?;
            let accepts_images = initialized.pointer("/agentCapabilities/promptCapabilities/image");
            let accepts_images = accepts_images == Some(&Value::Bool(true));
            state.image_support().insert(agent.clone(), accepts_images);
            let mut params = json!({ "cwd": cwd, "mcpServers": [] });
            let add_key = |it: &KeyedRequest| it.add_to(&mut params["_meta"]["jackfield"]);
            plan.request.iter().for_each(add_key);
            let setup = connection.call_method(Method::SessionNew, &params).await?;
            (setup["sessionId"].as_str().unwrap_or_default().to_owned(), setup, accepts_images)
        }
        RunTarget::ExistingSession { session, agent, cwd } => {
            initialize(&mut connection).await?;
            let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
            let has_choices = choices.iter().next().is_some();
            let setup = if has_choices {
                connection.call_method(Method::SessionResume, &params).await?
            } else {
                Value::Null
            };
            let accepts_images = state.image_support().get(agent).copied().unwrap_or(false);
            (session.clone(), setup, accepts_images)
        }
    };
    let result = apply_choices(&mut connection, &session, &setup, choices).await;
    if let (Err(_), RunTarget::NewSession { .. }) = (&result, target) {
        // The session is empty; if it cannot be deleted, it only stays in the list.
        let _deleted =
            connection.call_method(Method::SessionDelete, &json!({ "sessionId": session })).await;
    }
    result?;
    Ok(ReadySession { connection, session, accepts_images })
}

async fn apply_choices(
    connection: &mut HubConnection,
    session: &str,
    setup: &Value,
    choices: &SettingChoices,
) -> Result<(), ApiError> {
    for (setting, name, wanted) in choices.iter() {
        let change = plan_change(setup, setting, session, wanted);
        let Some(change) = change.map_err(|it| setting_error(name, wanted, it))? else { continue };
        match connection.call_method(change.method, &change.params).await {
            Ok(_) => {}
            Err(HubClientError::Refused(error)) => {
                let why = error.message().unwrap_or("no reason given");
                let message = format!("the agent rejected {name} `{wanted}`: {why}");
                return Err(ApiError::invalid(message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn setting_error(name: &str, wanted: &str, error: SettingError) -> ApiError {
    ApiError::invalid(match error {
        SettingError::NotConfigurable => {
            format!("the agent does not offer a choice of {name}: omit it")
        }
        SettingError::NotOffered { offered } => {
            let offered: Vec<String> = offered.iter().map(|it| format!("`{it}`")).collect();
            format!("the agent has no {name} `{wanted}`: it offers {}", offered.join(", "))
        }
        SettingError::InvalidModelId => format!("`{wanted}` is not a valid model id"),
    })
}
