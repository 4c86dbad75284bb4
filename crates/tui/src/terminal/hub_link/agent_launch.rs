//! Requests for which an agent is started: new sessions, copies of sessions and changes of settings.

use super::{
    DaemonStart, UpdateSender,
    access::{HubAccess, LinkError, call_hub, within},
    short_requests::{read_settings, read_setup},
};
use crate::hub::{SessionRow, SettingValue};
use jackfield_hub_client::{ClientProtocol, HubConnection};
use jackfield_protocol::acp::Method;
use jackfield_views::options::{SessionSetting, SettingError, plan_change};
use serde_json::{Value, json};
use std::time::Duration;

/// How long an agent may take to start, and then to open a session.
const START_MAX: Duration = Duration::from_secs(90);
/// How long the copy of a long log may take.
const FORK_MAX: Duration = Duration::from_mins(5);

/// Opens a session and returns the result of `session/new`.
pub(super) async fn open_session(
    hub: HubAccess,
    agent: Option<String>,
    cwd: String,
) -> Result<Value, LinkError> {
    let mut connection = hub.dial(DaemonStart::Always).await?;
    let mut launch = json!({ "cwd": cwd, "env": *hub.environment });
    if let Some(agent) = agent {
        launch["agent"] = json!(agent);
    }
    call_hub(&mut connection, Method::ControlConnect, &launch).await?;
    within(START_MAX, connection.initialize("tui", ClientProtocol::AcpWithForms)).await?;
    let params = json!({ "cwd": cwd, "mcpServers": [] });
    within(START_MAX, connection.call_method(Method::SessionNew, &params)).await
}

/// Copies a session up to an event, or all of it.
pub(super) async fn fork_session(
    hub: HubAccess,
    session: String,
    cwd: String,
    at: Option<u64>,
) -> Result<Value, LinkError> {
    let mut connection = hub.connect(DaemonStart::Always).await?;
    let mut params = json!({ "sessionId": session, "cwd": cwd });
    if let Some(at) = at {
        params["_meta"] = json!({ "jackfield": { "seq": at } });
    }
    within(FORK_MAX, connection.call_method(Method::SessionFork, &params)).await
}

/// Changes a setting and reports the settings after the change.
pub(super) async fn change_setting(
    hub: HubAccess,
    session: String,
    value: SettingValue,
    updates: UpdateSender,
) -> Result<Value, LinkError> {
    let mut connection = hub.connect(DaemonStart::Always).await?;
    let (_, setup) = read_setup(&mut connection, &session).await?;
    let (setting, wanted) = match value {
        SettingValue::Mode(it) => (SessionSetting::Mode, it),
        SettingValue::Model(it) => (SessionSetting::Model, it),
        SettingValue::Reasoning(it) => (SessionSetting::Reasoning, it),
    };
    let change = plan_change(&setup, setting, &session, &wanted);
    if let Some(change) = change.map_err(|it| LinkError::Unavailable(describe(&it, &wanted)))? {
        within(START_MAX, connection.call_method(change.method, &change.params)).await?;
    }
    report_settings(&mut connection, &session, &updates).await
}

async fn report_settings(
    connection: &mut HubConnection,
    session: &str,
    updates: &UpdateSender,
) -> Result<Value, LinkError> {
    let settings = read_settings(connection, session).await?;
    // If the interface has ended, there is no one to report to.
    let _sent = updates.send(settings).await;
    Ok(Value::Null)
}

fn describe(error: &SettingError, wanted: &str) -> String {
    match error {
        SettingError::NotConfigurable => "the agent does not offer this setting".to_owned(),
        SettingError::NotOffered { offered } => {
            format!("the agent has no `{wanted}`: it offers {}", offered.join(", "))
        }
        SettingError::InvalidModelId => format!("`{wanted}` is not a valid model id"),
    }
}

/// Says how to restart the agent of a session if necessary: as configured, or else with the command of the session.
/// The agent gets the environment of the user. A client that may not choose that leaves it to the hub.
pub(super) async fn prepare_agent_restart(
    hub: &HubAccess,
    connection: &mut HubConnection,
    row: &SessionRow,
) {
    let launch = |agent: Value| json!({ "cwd": row.cwd, "env": *hub.environment, "agent": agent });
    let named = call_hub(connection, Method::ControlConnect, &launch(json!(row.agent))).await;
    let is_configured = match named {
        Ok(result) => result["command"] != false,
        Err(LinkError::Client(error)) => error.error_name() != "no_agent",
        Err(_) => true,
    };
    if !is_configured && !row.argv.is_empty() {
        let agent = json!({ "name": row.agent, "argv": row.argv });
        // If it is refused, the hub restarts the agent as it was started.
        let _accepted = call_hub(connection, Method::ControlConnect, &launch(agent)).await;
    }
}
