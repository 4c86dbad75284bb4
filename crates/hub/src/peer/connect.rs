//! `_jackfield/connect` and other requests of the control protocol that only concern the connection.

use super::Clients;
use crate::{
    ConnId, Environment, Launch, ListenerChange, Output, SandboxRequest, VariantChoice,
    config::StartLimits, context::HubContext,
};
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

impl Clients {
    pub(crate) fn on_connect_request(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        self.set_connect_options(cx, conn, frame)?;
        let launch = self.connections.get(&conn).and_then(|it| it.launch.as_ref());
        // A client that knows a command for the agent may prefer to send that.
        let by_name = launch.is_some_and(|it| it.argv.is_empty());
        let result = if by_name { r#"{"command":false}"# } else { "{}" };
        self.answer_request(cx, conn, id, Ok(result));
        Ok(())
    }

    pub(crate) fn on_stop_request(&mut self, cx: &mut HubContext, conn: ConnId, id: &str) {
        self.answer_request(cx, conn, id, Ok("{}"));
        cx.outputs.push_back(Output::StopAsked);
    }

    /// The limits for the agents of a client: its own, or those of the configuration.
    pub(crate) fn start_limits(&self, cx: &HubContext, conn: Option<ConnId>) -> StartLimits {
        let chosen = conn.and_then(|it| self.connections.get(&it)?.start_timeout_ms);
        cx.config.liveness.start_limits(chosen)
    }

    /// Before `initialize`: this is the connection of a gateway for one client. It gets sequence numbers, whether the client
    /// wants them or not.
    pub(crate) fn mark_as_relay(&mut self, conn: ConnId) {
        if let Some(it) =
            self.connections.get_mut(&conn).filter(|it| it.initialize_params.is_none())
        {
            it.relay = true;
        }
    }

    /// Before `initialize`: sets the agent of the sessions of this connection, and the environment. Without an agent, the
    /// environment is for the default agent, and for agents that requests name.
    pub(crate) fn set_connect_options(
        &mut self,
        cx: &HubContext,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let invalid = |why: &str| Fault::InvalidParams { why: why.to_owned() };
        let params = frame.params_value();
        if params["unenforced"] == true
            && self.find_tenant(conn).is_none()
            && let Some(it) = self.connections.get_mut(&conn)
        {
            it.unenforced = true;
        }
        if let Some(limit) = params["startTimeoutMs"].as_u64()
            && let Some(it) = self.connections.get_mut(&conn)
        {
            it.start_timeout_ms = Some(limit);
        }
        self.check_sandbox_choice(conn, &params["sandbox"])?;
        if let Some(profile) = params["sandbox"].as_str()
            && let Some(it) = self.connections.get_mut(&conn)
        {
            it.sandbox = Some(profile.into());
        }
        // The environment of an agent decides what it runs.
        let may_set = self.is_operator(conn) && self.find_tenant(conn).is_none_or(|it| it.commands);
        let env = params.get("env").filter(|_| may_set).and_then(parse_environment);
        if let (Some(env), Some(it)) = (&env, self.connections.get_mut(&conn)) {
            it.env = Some(env.clone());
        }
        let launch = match params.get("agent") {
            None => return Ok(()),
            Some(Value::String(name)) => cx.config.find_agent_launch(name)?,
            Some(agent) => {
                let name = agent.get("name").and_then(Value::as_str);
                let argv = agent.get("argv").and_then(strings).filter(|it| !it.is_empty());
                let (Some(name), Some(argv)) = (name, argv) else {
                    return Err(invalid("`agent` needs a `name` and a non-empty `argv`"));
                };
                let (variant, sandbox) = (VariantChoice::Any, SandboxRequest::default());
                Launch { name: name.into(), argv, cwd: PathBuf::new(), env: None, variant, sandbox }
            }
        };
        let variant = match params.get("variant").and_then(Value::as_str) {
            Some(_) if !launch.argv.is_empty() => {
                return Err(invalid(
                    "`variant` names a launch variant of the catalog, but the agent is a command",
                ));
            }
            Some(name) => VariantChoice::Only(name.into()),
            None => launch.variant,
        };
        let cwd = params.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        let Some(it) = self.connections.get_mut(&conn) else { return Ok(()) };
        let (cwd, env) = (cwd.unwrap_or(launch.cwd), env.or(launch.env));
        let sandbox = SandboxRequest {
            profile: it
                .sandbox
                .clone()
                .or_else(|| cx.config.sandbox_profile(&launch.name, &cwd.to_string_lossy())),
            directories: Vec::new(),
        };
        it.launch = Some(Launch { cwd, env, variant, sandbox, ..launch });
        Ok(())
    }

    /// The operator chooses the sandboxes of tenants: a tenant could choose one without limits.
    pub(crate) fn check_sandbox_choice(&self, conn: ConnId, choice: &Value) -> Result<(), Fault> {
        match self.find_tenant(conn) {
            Some(tenant) if !choice.is_null() => {
                let why = format!(
                    "tenant `{}` cannot choose a sandbox profile: the operator does",
                    tenant.name
                );
                Err(Fault::NotAllowed { why })
            }
            _ => Ok(()),
        }
    }
}

/// Lists the addresses of the daemon, or opens or closes one. [`crate::Input::ListenersChanged`]
/// has the answer.
pub(crate) fn on_listen_request(
    cx: &mut HubContext,
    conn: ConnId,
    id: &str,
    frame: &Frame,
) -> Result<(), Fault> {
    let params = frame.params_value();
    let address = |name: &str| params[name].as_str().map(str::to_owned);
    let change = match (address("add"), address("remove")) {
        (None, None) => ListenerChange::None,
        (Some(address), None) => {
            ListenerChange::Add { address, insecure: params["insecure"] == true }
        }
        (None, Some(address)) => ListenerChange::Remove { address },
        (Some(_), Some(_)) => {
            let why = "`add` and `remove` cannot be combined".to_owned();
            return Err(Fault::InvalidParams { why });
        }
    };
    cx.outputs.push_back(Output::ChangeListeners { conn, request: id.into(), change });
    Ok(())
}

fn parse_environment(env: &Value) -> Option<Arc<Environment>> {
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Some(Arc::new(Environment(env.as_object()?.iter().filter_map(pair).collect())))
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}
