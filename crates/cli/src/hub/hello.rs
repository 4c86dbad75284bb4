//! The first words on a connection: which agent, in which environment, and who we are.

use super::{Conn, Until, Wait};
use crate::{env, report::Failure};
use jackfield_protocol::acp::Method;
use serde_json::{Map, Value, json};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Which agent serves what is opened on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    /// The one the daemon is configured with.
    Configured,
    /// One that the daemon knows by name; its spec says what of our environment it may see.
    Named(String),
    /// A command the caller gave: it sees what it would see if the caller started it.
    Command { name: String, argv: Vec<String> },
}

impl AgentChoice {
    /// A command comes before a name: a name may be left over in the environment.
    pub(crate) fn new(named: Option<String>, command: &[OsString]) -> Result<AgentChoice, Failure> {
        let Some(program) = command.first() else {
            return Ok(named.map_or(AgentChoice::Configured, AgentChoice::Named));
        };
        let unreadable = || Failure::usage("the agent's command is not valid UTF-8", "");
        let argv: Option<Vec<String>> =
            command.iter().map(|it| it.to_str().map(str::to_owned)).collect();
        let mut argv = argv.ok_or_else(unreadable)?;
        let name = Path::new(program).file_name().and_then(|it| it.to_str());
        let name = name.unwrap_or(&argv[0]).to_owned();
        if argv[0].contains('/') {
            // The agent starts in the session's directory, which may be another one.
            let program = std::path::absolute(&argv[0]).unwrap_or_else(|_| program.into());
            argv[0] = program.into_os_string().into_string().map_err(|_| unreadable())?;
        }
        Ok(AgentChoice::Command { name, argv })
    }

    /// For people.
    pub(crate) fn shown(&self) -> &str {
        self.name().unwrap_or("the agent")
    }

    /// Its name, if the caller has said which.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            AgentChoice::Configured => None,
            AgentChoice::Named(name) | AgentChoice::Command { name, .. } => Some(name),
        }
    }

    /// A program that is not there is found out here, before anything is started for it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let AgentChoice::Command { argv, .. } = self else { return Ok(()) };
        let program = &argv[0];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = if program.contains('/') {
            Path::new(program).exists()
        } else {
            std::env::split_paths(&path).any(|it| it.join(program).is_file())
        };
        if found { Ok(()) } else { Err(Failure::NoProgram { program: program.clone() }) }
    }

    /// Tells the hub, before `initialize` starts the agent, or after it so that nothing is started.
    /// False if the daemon has no command for it, only the name.
    pub(crate) fn connect(&self, conn: &mut Conn, cwd: &Path) -> Result<bool, Failure> {
        let Some(params) = self.params(cwd) else { return Ok(false) };
        let wait = Wait { what: "the daemon to look up the agent", until: Until::Hub };
        let told = conn.call(Method::ControlConnect.name(), &params, wait)?;
        Ok(told["command"] != false)
    }

    /// What the hub is told; nothing if it shall choose.
    pub(crate) fn params(&self, cwd: &Path) -> Option<Value> {
        let mut params = json!({ "cwd": cwd });
        match self {
            AgentChoice::Configured => return None,
            AgentChoice::Named(name) => params["agent"] = json!(name),
            AgentChoice::Command { name, argv } => {
                params["agent"] = json!({ "name": name, "argv": argv });
            }
        }
        // A key that was exported after the daemon started counts, too.
        params["env"] = Value::Object(environment(std::env::vars_os()));
        Some(params)
    }
}

/// What an agent of the caller's may see: everything but what is ours. JSON cannot carry names and
/// values that are no UTF-8; agents have none of those.
fn environment(vars: impl Iterator<Item = (OsString, OsString)>) -> Map<String, Value> {
    vars.filter_map(|(name, value)| {
        Some((name.into_string().ok()?, Value::from(value.into_string().ok()?)))
    })
    .filter(|(name, _)| !name.starts_with(env::PREFIX))
    .collect()
}

/// Says who we are. `aware` clients also hear what ACP has no words for.
pub(crate) fn initialize(
    conn: &mut Conn,
    command: &str,
    aware: bool,
    wait: Wait<'_>,
) -> Result<Value, Failure> {
    let mut capabilities = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
    });
    if aware {
        capabilities["_meta"] = json!({ "jackfield": {} });
    }
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": capabilities,
        "clientInfo": {
            "name": format!("jackfield-{command}"),
            "title": format!("jackfield {command}"),
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    let told = conn.call(Method::Initialize.name(), &params, wait)?;
    conn.is_operator = told["_meta"]["jackfield"]["operator"] != false;
    Ok(told)
}

/// The directory a session works in: the one that was named, or this one.
pub(crate) fn working_directory(named: Option<&Path>) -> Result<PathBuf, Failure> {
    directory(named.unwrap_or(Path::new(".")), "--cwd")
}

/// A directory that exists, under a name that does not depend on where we are.
pub(crate) fn directory(dir: &Path, flag: &str) -> Result<PathBuf, Failure> {
    let (shown, hint) = (dir.display(), format!("check `{flag}`"));
    let found = std::fs::canonicalize(dir).map_err(|error| {
        Failure::usage(format!("cannot use directory `{shown}`: {error}"), hint.clone())
    })?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(Failure::usage(format!("`{shown}` is no directory"), hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_after_its_program_and_comes_before_a_name() {
        let command = ["/opt/x/goose".into(), "acp".into()];
        let choice = AgentChoice::new(Some("other".into()), &command).unwrap();
        let argv = vec!["/opt/x/goose".to_owned(), "acp".to_owned()];
        assert_eq!(choice, AgentChoice::Command { name: "goose".into(), argv });
        let named = AgentChoice::new(Some("other".into()), &[]).unwrap();
        assert_eq!(named, AgentChoice::Named("other".into()));
    }

    #[test]
    fn a_program_beside_the_caller_is_found_from_anywhere() {
        let choice = AgentChoice::new(None, &["./agent".into()]).unwrap();
        let AgentChoice::Command { argv, .. } = choice else { panic!("{choice:?}") };
        assert!(Path::new(&argv[0]).is_absolute());
    }

    #[test]
    fn an_agent_sees_the_callers_environment_but_nothing_of_ours() {
        let vars = [("PATH", "/bin"), ("JACKFIELD_SOCKET", "/s"), ("KEY", "k")];
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into()));
        let names: Vec<String> = environment(vars).into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["PATH", "KEY"]);
    }
}
