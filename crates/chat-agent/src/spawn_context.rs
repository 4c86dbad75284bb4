//! What the MCP and language servers of a session are started with.

use crate::process::child_environment;
use jackfield_agents::GuardCommand;
use std::path::PathBuf;

/// What a server on stdio needs from its session.
#[derive(Clone)]
pub(crate) struct ServerSpawnContext {
    pub(crate) dir: PathBuf,
    pub(crate) guard: GuardCommand,
    /// Where servers are recorded while they run.
    pub(crate) ledger_dir: PathBuf,
    /// The environment of every server. The variables that the client sets for one server are
    /// added.
    pub(crate) env: Vec<(String, String)>,
}

impl ServerSpawnContext {
    /// Servers start in `dir`, with the environment of this process.
    pub(crate) fn new(
        dir: PathBuf,
        guard: GuardCommand,
        ledger_dir: PathBuf,
    ) -> ServerSpawnContext {
        let env = child_environment(std::env::vars_os());
        ServerSpawnContext { dir, guard, ledger_dir, env }
    }

    /// Returns the whole environment of one server. The variables of the client take precedence.
    pub(crate) fn merge_env(&self, client_env: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut env = self.env.clone();
        env.retain(|(name, _)| !client_env.iter().any(|(it, _)| it == name));
        env.extend(client_env);
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_client_take_precedence() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let guard = GuardCommand { program: "guard".into(), args: Vec::new() };
        let env = vec![pair("A", "1"), pair("B", "2")];
        let context = ServerSpawnContext { dir: "/".into(), guard, ledger_dir: "/".into(), env };
        let all = context.merge_env(vec![pair("A", "3"), pair("OPENAI_API_KEY", "from-client")]);
        assert_eq!(all, [pair("B", "2"), pair("A", "3"), pair("OPENAI_API_KEY", "from-client")]);
    }
}
