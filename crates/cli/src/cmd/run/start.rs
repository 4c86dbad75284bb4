//! Which agent, where it works, and how long it may take to be there.

use crate::{
    app::Desk,
    env,
    hub::{
        AgentChoice, Conn, Deadline, EndpointAddress, Until, Wait, initialize, working_directory,
    },
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::{ffi::OsString, path::PathBuf};

#[derive(Debug, Args)]
pub(in crate::cmd) struct Launch {
    /// An agent by its name; `jackfield agents` lists them
    #[arg(short, long, env = env::AGENT, hide_env_values = true)]
    agent: Option<String>,

    /// The directory the agent works in [default: this one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Give up an agent that has not started, or not opened a session, after so many seconds
    #[arg(long, env = env::START_TIMEOUT, hide_env_values = true, value_name = "SECS", default_value_t = 60)]
    start_timeout: u64,

    /// Open the session although its agent never asks and there are rules that deny something
    #[arg(long, env = env::UNENFORCED, hide_env_values = true, value_parser = env::flag())]
    unenforced: bool,

    /// The command of an agent; it sees your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Launch {
    pub(in crate::cmd) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// The agent, whose program is there as far as we can see.
    pub(in crate::cmd) fn choice(&self, desk: &Desk) -> Result<AgentChoice, Failure> {
        let choice = AgentChoice::new(self.agent.clone(), &self.command)?;
        if !matches!(desk.dial.address(), EndpointAddress::Tcp(_)) {
            choice.check()?;
        }
        Ok(choice)
    }

    /// Everything that is needed to begin; `deadline` is the caller's for all of it.
    pub(in crate::cmd) fn starting(
        &self,
        desk: &Desk,
        deadline: Option<Deadline>,
    ) -> Result<Starting, Failure> {
        let cwd = working_directory(self.cwd.as_deref())?;
        let (choice, seconds) = (self.choice(desk)?, self.start_timeout);
        Ok(Starting { choice, cwd, seconds, deadline, unenforced: self.unenforced })
    }
}

/// An agent that is about to start.
pub(in crate::cmd) struct Starting {
    pub(in crate::cmd) choice: AgentChoice,
    pub(in crate::cmd) cwd: PathBuf,
    seconds: u64,
    deadline: Option<Deadline>,
    unenforced: bool,
}

impl Starting {
    /// Starts the agent, and says who we are: what it says of itself. Nothing if the hub has
    /// answered in its place, because it chooses the agent later.
    pub(in crate::cmd) fn hello(
        &self,
        conn: &mut Conn,
        client: &str,
        aware: bool,
    ) -> Result<Value, Failure> {
        self.choice.connect(conn, &self.cwd)?;
        if self.unenforced {
            let wait = Wait { what: "the daemon to take `--unenforced`", until: Until::Hub };
            conn.call(Method::ControlConnect.name(), &json!({ "unenforced": true }), wait)?;
        }
        let what = format!("{} to start", self.choice.shown());
        let told = initialize(conn, client, aware, Wait { what: &what, until: self.until() })?;
        Ok(if self.choice == AgentChoice::Configured { Value::Null } else { told })
    }

    /// Opens a session: its id, and what it lets its user choose.
    pub(in crate::cmd) fn open(&self, conn: &mut Conn, more: &[PathBuf]) -> Result<Value, Failure> {
        let what = format!("{} to open a session", self.choice.shown());
        let mut params = json!({ "cwd": self.cwd, "mcpServers": [] });
        if !more.is_empty() {
            params["additionalDirectories"] = json!(more);
        }
        let opened = conn.call(
            Method::SessionNew.name(),
            &params,
            Wait { what: &what, until: self.until() },
        )?;
        if let Some(why) = opened["_meta"]["jackfield"]["unheard"].as_str() {
            let nothing = "`--approve`, `--on-ask` and rules do nothing here";
            conn.warn(&format!("{why}; {nothing}"));
        }
        Ok(opened)
    }

    /// A step of the start may take so long, and no longer than everything may.
    pub(in crate::cmd) fn until(&self) -> Until {
        let start = Deadline::after(self.seconds);
        match self.deadline {
            Some(deadline) if deadline.at < start.at => Until::Deadline(Some(deadline)),
            _ => Until::Started(start),
        }
    }
}
