//! The session that prompts go to: a new one, or one that exists.

use super::{Run, start::Starting};
use crate::{
    hub::{AgentChoice, Conn, Row, Until, Wait, find, greet, sessions},
    report::Failure,
};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The session prompts go to.
pub(super) struct Goal {
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) cwd: PathBuf,
    /// We opened or woke it, so we close it if nobody else uses it.
    pub(super) ours: bool,
    /// What the agent said of itself; nothing if we have not met it.
    pub(super) told: Value,
    /// What the session lets its user choose; nothing until somebody wants to know.
    pub(super) setup: Value,
}

impl Goal {
    /// Ends the agent of the session we opened, unless somebody else uses it by now; the journal keeps what was
    /// said. The hub decides: between a look of ours and a request of ours others may come.
    pub(super) fn close(&self, conn: &mut Conn) {
        conn.untap();
        let wait = Wait { what: "the session to close", until: Until::Hub };
        let unused = json!({ "jackfield": { "ifUnused": true } });
        let params = json!({ "sessionId": self.session, "_meta": unused });
        // The outcome of the turn is what counts; a session that stays open is in `ps`.
        let _closed = conn.call(Method::SessionClose.name(), &params, wait);
    }
}

impl Run {
    /// Starts the agent and opens a session.
    pub(super) fn begin(&self, conn: &mut Conn, starting: &Starting) -> Result<Goal, Failure> {
        let agent = starting.choice.shown().to_owned();
        let told = starting.hello(conn, "run", self.aware())?;
        if !told.is_null() {
            self.wishes.check(&agent, &told)?;
        }
        let setup = starting.open(conn, &self.wishes.directories()?)?;
        let session = setup["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(Goal { session, agent, cwd: starting.cwd.clone(), ours: true, told, setup })
    }

    /// Finds a session that exists. If its agent must be started again, it is as the caller would.
    pub(super) fn go_on(
        &self,
        conn: &mut Conn,
        named: &str,
        starting: &Starting,
    ) -> Result<Goal, Failure> {
        greet(conn, "run", self.aware())?;
        let row = find(&sessions(conn)?, named)?;
        match &starting.choice {
            AgentChoice::Configured => prepare_to_wake(conn, &row)?,
            given => {
                given.connect(conn, &starting.cwd)?;
            }
        }
        let ours = !row.is_live();
        let (told, setup) = (Value::Null, Value::Null);
        let Row { session_id: session, agent, cwd, .. } = row;
        let mut goal = Goal { session, agent, cwd: cwd.into(), ours, told, setup };
        self.look_up_setup(conn, &mut goal)?;
        Ok(goal)
    }
}

/// Should the session's agent have to be started again: as configured, or else as the caller would.
pub(in crate::cmd) fn prepare_to_wake(conn: &mut Conn, row: &Row) -> Result<(), Failure> {
    if !conn.is_operator() {
        // Then it is woken as it was opened, or not at all.
        return Ok(());
    }
    let cwd = Path::new(&row.cwd);
    let configured = match AgentChoice::Named(row.agent.clone()).connect(conn, cwd) {
        Err(Failure::Answer(answer)) if answer.name() == "no_agent" => false,
        connected => connected?,
    };
    // One of the catalogue's was opened by its name, or with a command of somebody's.
    if !configured && !row.argv.is_empty() {
        let (name, argv) = (row.agent.clone(), row.argv.clone());
        AgentChoice::Command { name, argv }.connect(conn, cwd)?;
    }
    Ok(())
}
