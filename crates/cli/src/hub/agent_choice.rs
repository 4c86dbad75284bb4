//! Which agent serves a connection, and the directory and environment in which it starts.

use super::CommandConnection;
use crate::{env, report::CommandError};
use jackfield_protocol::acp::Method;
use serde_json::{Map, Value, json};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The agent for the sessions that a connection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    /// The default agent of the daemon's configuration. Its specification selects the variables that it sees.
    Configured,
    /// An agent of the configuration or the catalog. Its specification selects the variables that it sees.
    Named {
        name: String,
        /// The launch variant of the catalog to use, without trying others.
        variant: Option<String>,
    },
    /// A command from the command line. It sees the caller's environment.
    Command { name: String, argv: Vec<String> },
}

impl AgentChoice {
    /// A command takes precedence over a name, because the name may come from the environment.
    pub(crate) fn new(
        named: Option<String>,
        command: &[OsString],
    ) -> Result<AgentChoice, CommandError> {
        let Some(program) = command.first() else {
            return Ok(named.map_or(AgentChoice::Configured, AgentChoice::by_name));
        };
        let invalid_utf8 = || CommandError::usage("the agent's command is not valid UTF-8", "");
        let argv: Option<Vec<String>> =
            command.iter().map(|it| it.to_str().map(str::to_owned)).collect();
        let mut argv = argv.ok_or_else(invalid_utf8)?;
        let name = Path::new(program).file_name().and_then(|it| it.to_str());
        let name = name.unwrap_or(&argv[0]).to_owned();
        if argv[0].contains('/') {
            // The agent starts in the session's directory, which may be a different one.
            let program = std::path::absolute(&argv[0]).unwrap_or_else(|_| program.into());
            argv[0] = program.into_os_string().into_string().map_err(|_| invalid_utf8())?;
        }
        Ok(AgentChoice::Command { name, argv })
    }

    /// An agent of the configuration or the catalog, as it is started by default.
    pub(crate) fn by_name(name: String) -> AgentChoice {
        AgentChoice::Named { name, variant: None }
    }

    /// The same agent with this launch variant.
    pub(crate) fn with_variant(self, wanted: Option<String>) -> Result<AgentChoice, CommandError> {
        match (self, wanted) {
            (choice, None) => Ok(choice),
            (AgentChoice::Named { name, .. }, variant) => Ok(AgentChoice::Named { name, variant }),
            (AgentChoice::Configured | AgentChoice::Command { .. }, Some(_)) => {
                let message = "`--variant` requires an agent of the catalog";
                Err(CommandError::usage(message, "name the agent with `--agent`"))
            }
        }
    }

    /// The name for messages to the user.
    pub(crate) fn display_name(&self) -> &str {
        self.name().unwrap_or("the agent")
    }

    /// The name, if the caller chose an agent.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            AgentChoice::Configured => None,
            AgentChoice::Named { name, .. } | AgentChoice::Command { name, .. } => Some(name),
        }
    }

    /// Fails if the program of the command does not exist, before a daemon is started for it.
    pub(crate) fn check_program(&self) -> Result<(), CommandError> {
        let AgentChoice::Command { argv, .. } = self else { return Ok(()) };
        let program = &argv[0];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let exists = if program.contains('/') {
            Path::new(program).exists()
        } else {
            std::env::split_paths(&path).any(|it| it.join(program).is_file())
        };
        if exists {
            Ok(())
        } else {
            Err(CommandError::ProgramNotFound { program: program.clone() })
        }
    }

    /// Sends the choice and the environment to the hub: before `initialize`, which then starts a chosen agent, or after
    /// it, which starts nothing. Returns false if the daemon knows the name but no command for it.
    pub(crate) fn send_to_hub(
        &self,
        conn: &mut CommandConnection,
        cwd: &Path,
    ) -> Result<bool, CommandError> {
        let result = send_connect(conn, &self.connect_params(cwd))?;
        Ok(result["command"] != false)
    }

    /// The parameters of `_jackfield/connect`. Without `agent` the hub chooses the agent.
    pub(crate) fn connect_params(&self, cwd: &Path) -> Value {
        // Includes API keys that were exported after the daemon had started.
        let env = Value::Object(caller_environment());
        let mut params = json!({ "cwd": cwd, "env": env });
        match self {
            AgentChoice::Configured => {}
            AgentChoice::Named { name, variant } => {
                params["agent"] = json!(name);
                if let Some(variant) = variant {
                    params["variant"] = json!(variant);
                }
            }
            AgentChoice::Command { name, argv } => {
                params["agent"] = json!({ "name": name, "argv": argv });
            }
        }
        params
    }
}

/// Sends the parameters of `_jackfield/connect`.
pub(crate) fn send_connect(
    conn: &mut CommandConnection,
    params: &Value,
) -> Result<Value, CommandError> {
    conn.call_hub(Method::ControlConnect, params, "the daemon to look up the agent")
}

/// The environment that agents get from this command.
pub(crate) fn caller_environment() -> Map<String, Value> {
    collect_environment(std::env::vars_os())
}

/// The caller's environment without the `JACKFIELD_` variables. Names and values that are not UTF-8 are left out,
/// because JSON cannot carry them.
fn collect_environment(vars: impl Iterator<Item = (OsString, OsString)>) -> Map<String, Value> {
    vars.filter_map(|(name, value)| {
        Some((name.into_string().ok()?, Value::from(value.into_string().ok()?)))
    })
    .filter(|(name, _)| !name.starts_with(env::PREFIX))
    .collect()
}

/// The directory of a session: the given one, or the current one.
pub(crate) fn working_directory(given: Option<&Path>) -> Result<PathBuf, CommandError> {
    let Some(dir) = given else {
        return std::env::current_dir().map_err(|error| {
            // The shell knows the path of a directory that was removed.
            let path = std::env::var("PWD").map(|it| format!(" `{it}`")).unwrap_or_default();
            let message = format!("cannot use the current directory{path}: {error}");
            CommandError::usage(message, "change to another directory, or pass `--cwd`")
        });
    };
    resolve_directory(dir, "--cwd")
}

/// The absolute path of a directory; an error that names the flag if it does not exist.
pub(crate) fn resolve_directory(dir: &Path, flag: &str) -> Result<PathBuf, CommandError> {
    let (shown, hint) = (dir.display(), format!("check `{flag}`"));
    let resolved = std::fs::canonicalize(dir).map_err(|error| {
        CommandError::usage(format!("cannot use directory `{shown}`: {error}"), hint.clone())
    })?;
    if resolved.is_dir() {
        Ok(resolved)
    } else {
        Err(CommandError::usage(format!("`{shown}` is not a directory"), hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_named_after_its_program_and_takes_precedence_over_a_name() {
        let command = ["/opt/x/goose".into(), "acp".into()];
        let choice = AgentChoice::new(Some("other".into()), &command).unwrap();
        let argv = vec!["/opt/x/goose".to_owned(), "acp".to_owned()];
        assert_eq!(choice, AgentChoice::Command { name: "goose".into(), argv });
        let named = AgentChoice::new(Some("other".into()), &[]).unwrap();
        assert_eq!(named, AgentChoice::by_name("other".into()));
    }

    #[test]
    fn relative_program_path_is_made_absolute() {
        let choice = AgentChoice::new(None, &["./agent".into()]).unwrap();
        let AgentChoice::Command { argv, .. } = choice else { panic!("{choice:?}") };
        assert!(Path::new(&argv[0]).is_absolute());
    }

    #[test]
    fn environment_has_no_jackfield_variables() {
        let vars = [("PATH", "/bin"), ("JACKFIELD_SOCKET", "/s"), ("KEY", "k")];
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into()));
        let names: Vec<String> = collect_environment(vars).into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["PATH", "KEY"]);
    }
}
