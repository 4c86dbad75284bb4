//! The session that receives the prompts: a new one, or an existing one.

use super::{
    RunCommand,
    launch::{AgentLaunch, NewSessionOptions},
};
use crate::{
    hub::{
        AgentChoice, CommandConnection, SessionRow, find_latest_session, find_session,
        initialize_client, list_sessions, rename_session,
    },
    report::CommandError,
    requests::ApprovalLevel,
};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The session that receives the prompts.
pub(super) struct TargetSession {
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) cwd: PathBuf,
    /// This command opened the session.
    pub(super) is_new: bool,
    /// This command started the session's agent, and closes the session afterwards if no other client uses it.
    pub(super) close_after_use: bool,
    /// The agent's response to `initialize`; null if the hub answered it.
    pub(super) initialize_result: Value,
    /// The result of `session/new` or `session/resume` with the settings of the session; null if not needed.
    pub(super) setup: Value,
}

impl TargetSession {
    /// Closes the session unless another client uses it; the journal keeps its events. The hub checks that, because
    /// clients can attach between a check of this command and its request.
    pub(super) fn close(&self, conn: &mut CommandConnection) {
        // The outcome of the turn is more important; `ps` shows a session that stays open.
        let _closed = self.request_close(conn);
    }

    /// Undoes the start of this command: closes the session, and removes it if this command opened it.
    pub(super) fn abandon(&self, conn: &mut CommandConnection) {
        if !self.close_after_use {
            return;
        }
        let is_closed = self
            .request_close(conn)
            .is_ok_and(|result| result["_meta"]["jackfield"]["closed"] == true);
        if self.is_new && is_closed {
            let params = json!({ "sessionId": self.session });
            // The error that ends the command is more important; `sessions list` shows a session that stays.
            let _removed =
                conn.call_hub(Method::SessionDelete, &params, "the session to be removed");
        }
    }

    fn request_close(&self, conn: &mut CommandConnection) -> Result<Value, CommandError> {
        conn.stop_printing_frames();
        let meta = json!({ "jackfield": { "ifUnused": true } });
        let params = json!({ "sessionId": self.session, "_meta": meta });
        conn.call_hub(Method::SessionClose, &params, "the session to close")
    }
}

impl RunCommand {
    /// Starts the agent and opens a session.
    pub(super) fn open_session(
        &self,
        conn: &mut CommandConnection,
        launch: &AgentLaunch,
    ) -> Result<TargetSession, CommandError> {
        let agent = launch.choice.display_name().to_owned();
        let initialize_result = launch.start_agent(conn, "run", self.client_protocol())?;
        if !initialize_result.is_null() {
            self.settings.check_capabilities(&agent, &initialize_result)?;
        }
        let options = NewSessionOptions {
            directories: self.settings.directories()?,
            approves_all: self.approve == ApprovalLevel::All,
        };
        let setup = launch.open_session(conn, &options)?;
        let session = setup["sessionId"].as_str().unwrap_or_default().to_owned();
        let target = TargetSession {
            session,
            agent,
            cwd: launch.cwd.clone(),
            is_new: true,
            close_after_use: true,
            initialize_result,
            setup,
        };
        if let Some(name) = &self.name
            && let Err(error) = rename_session(conn, &target.session, Some(name))
        {
            target.abandon(conn);
            return Err(error);
        }
        Ok(target)
    }

    /// Finds an existing session. If its agent has to be restarted, it gets the caller's environment.
    pub(super) fn continue_session(
        &self,
        conn: &mut CommandConnection,
        launch: &AgentLaunch,
    ) -> Result<TargetSession, CommandError> {
        initialize_client(conn, "run", self.client_protocol())?;
        let rows = list_sessions(conn)?;
        let row = match &self.session {
            Some(named) => find_session(&rows, named)?,
            None => find_latest_session(&rows, &launch.cwd)?,
        };
        match &launch.choice {
            AgentChoice::Configured => prepare_agent_restart(conn, &row)?,
            choice => {
                choice.send_to_hub(conn, &launch.cwd)?;
            }
        }
        let close_after_use = !row.is_live();
        let (initialize_result, setup) = (Value::Null, Value::Null);
        let SessionRow { session_id: session, agent, cwd, .. } = row;
        let mut target = TargetSession {
            session,
            agent,
            cwd: cwd.into(),
            is_new: false,
            close_after_use,
            initialize_result,
            setup,
        };
        self.load_setup(conn, &mut target)?;
        Ok(target)
    }
}

/// Tells the hub how to restart the session's agent if necessary: as configured, or else with the command of the session
/// and the caller's environment.
pub(in crate::cmd) fn prepare_agent_restart(
    conn: &mut CommandConnection,
    row: &SessionRow,
) -> Result<(), CommandError> {
    if !conn.is_operator() {
        // Only the operator may choose the command: the hub restarts the agent as it was started.
        return Ok(());
    }
    let cwd = Path::new(&row.cwd);
    let configured = match AgentChoice::by_name(row.agent.clone()).send_to_hub(conn, cwd) {
        Err(CommandError::Response(response)) if response.error_name() == "no_agent" => false,
        sent => sent?,
    };
    // An agent of the catalog was opened by its name, or by a command.
    if !configured && !row.argv.is_empty() {
        let (name, argv) = (row.agent.clone(), row.argv.clone());
        AgentChoice::Command { name, argv }.send_to_hub(conn, cwd)?;
    }
    Ok(())
}
