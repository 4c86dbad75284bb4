//! Prepares a session for a prompt: opens or resumes it, and changes its settings.

use super::{
    driver::{RunPlan, RunTarget},
    idempotency::KeyedRequest,
    opening::OpenedSession,
};
use crate::rest::{
    RestState,
    agents::LearnedAbilities,
    error::{ApiError, ErrorCode},
    hub_client::initialize,
};
use jackfield_hub_client::{ClientProtocol, HubClientError, HubConnection};
use jackfield_policy::ApprovalMode;
use jackfield_protocol::{acp::Method, mcp_servers::find_unsupported_server};
use jackfield_views::options::{SessionSetting, SettingError, find_offer, plan_change};
use serde_json::{Value, json};

/// Settings to change before the prompt. A missing setting is left to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SettingChoices {
    pub(crate) model: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) mode: Option<String>,
}

impl SettingChoices {
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

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
    /// The agent accepts images.
    pub(super) accepts_images: bool,
    /// Set if the session was opened for this run.
    pub(super) opened: Option<OpenedSession>,
}

/// Opens or resumes a session. `on_opened` is called when the agent has opened it, before its settings are changed. If
/// a new session cannot be used, it is deleted.
pub(super) async fn prepare_session(
    state: &RestState,
    plan: &RunPlan,
    session: &str,
    on_opened: impl FnOnce(&OpenedSession),
) -> Result<ReadySession, ApiError> {
    let RunPlan { target, choices, .. } = plan;
    // A person answers forms in `/api/asks`. Without one, the agent is refused at once instead of waiting.
    let has_person = plan.approve == ApprovalMode::Ask;
    let protocol = if has_person { ClientProtocol::AcpWithForms } else { ClientProtocol::AcpOnly };
    let mut connection = state.hub.dial().await?;
    let (setup, accepts_images, mut opened) = match target {
        RunTarget::NewSession { agent, cwd, more_dirs, variant, sandbox, unenforced, mcp } => {
            let mut launch = json!({ "agent": agent, "cwd": cwd, "unenforced": unenforced });
            if let Some(variant) = variant {
                launch["variant"] = json!(variant);
            }
            if let Some(profile) = sandbox {
                launch["sandbox"] = json!(profile);
            }
            connection.call_method(Method::ControlConnect, &launch).await?;
            let initialized = initialize(&mut connection, protocol).await?;
            let mut learned = LearnedAbilities::from_initialize(&initialized);
            let accepts_images = learned.images;
            if let Some(why) = find_unsupported_server(&initialized, &mcp.servers) {
                return Err(ApiError::invalid(why));
            }
            let mut params = json!({ "cwd": cwd, "mcpServers": mcp.servers });
            if !more_dirs.is_empty() {
                check_more_dirs(agent, &learned)?;
                params["additionalDirectories"] = json!(more_dirs);
            }
            params["_meta"] = json!({ "jackfield": { "session": session } });
            if !mcp.names.is_empty() {
                params["_meta"]["jackfield"]["mcp"] = json!(mcp.names);
            }
            let add_key = |it: &KeyedRequest| it.add_to(&mut params["_meta"]["jackfield"]);
            plan.request.iter().for_each(add_key);
            if plan.approve == ApprovalMode::All {
                // An adapter may start its program with the option that approves everything.
                params["_meta"]["jackfield"]["approve"] = json!(plan.approve);
            }
            let setup = connection.call_method(Method::SessionNew, &params).await?;
            if setup["sessionId"] != session {
                return Err(key_in_use_error());
            }
            learned.add_setup(&setup);
            state.learned().insert(agent.clone(), learned);
            let model = find_offer(&setup, SessionSetting::Model).and_then(|it| it.current);
            let opened = OpenedSession { model, chosen: None };
            on_opened(&opened);
            (setup, accepts_images, Some(opened))
        }
        RunTarget::ExistingSession { session, cwd, accepts_images } => {
            initialize(&mut connection, protocol).await?;
            let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
            let setup = if choices.is_empty() {
                Value::Null
            } else {
                connection.call_method(Method::SessionResume, &params).await?
            };
            (setup, *accepts_images, None)
        }
    };
    let tolerant = state.profile.drops_invalid_values();
    let result = apply_choices(&mut connection, session, &setup, choices, tolerant).await;
    if let (Err(_), RunTarget::NewSession { .. }) = (&result, target) {
        // The session is empty; if it cannot be deleted, it only stays in the list.
        let _deleted =
            connection.call_method(Method::SessionDelete, &json!({ "sessionId": session })).await;
    }
    let has_model = result?;
    if let Some(opened) = opened.as_mut().filter(|_| has_model) {
        opened.chosen.clone_from(&choices.model);
    }
    Ok(ReadySession { connection, accepts_images, opened })
}

/// Fails if the agent would ignore further directories.
fn check_more_dirs(agent: &str, learned: &LearnedAbilities) -> Result<(), ApiError> {
    if learned.additional_directories {
        return Ok(());
    }
    let why = format!("agent `{agent}` does not accept `additionalDirectories`: omit them");
    Err(ApiError::invalid(why))
}

/// The hub answered with the session that another request with the same key has just opened.
fn key_in_use_error() -> ApiError {
    let why = "another request with this `Idempotency-Key` has just opened its session: try again";
    ApiError::new(ErrorCode::IdempotencyKeyInUse, why)
}

/// Changes the settings, and returns whether the model was changed. If it is `tolerant`, a setting that the agent does
/// not accept has no effect.
pub(crate) async fn apply_choices(
    connection: &mut HubConnection,
    session: &str,
    setup: &Value,
    choices: &SettingChoices,
    tolerant: bool,
) -> Result<bool, ApiError> {
    let mut has_model = false;
    for (setting, name, wanted) in choices.iter() {
        let change = match plan_change(setup, setting, session, wanted) {
            Ok(Some(change)) => change,
            Ok(None) => continue,
            Err(_) if tolerant => continue,
            Err(error) => return Err(setting_error(name, wanted, error)),
        };
        match connection.call_method(change.method, &change.params).await {
            Ok(_) => has_model |= setting == SessionSetting::Model,
            Err(HubClientError::Refused(_)) if tolerant => {}
            // Other errors are those of the hub, for example if the agent does not start.
            Err(HubClientError::Refused(error)) if error.error_name().is_empty() => {
                let why = error.message().unwrap_or("no reason given");
                let message = format!("the agent rejected {name} `{wanted}`: {why}");
                return Err(ApiError::invalid(message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(has_model)
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
