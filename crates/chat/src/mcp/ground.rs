//! Where servers of a session run, and with what.

use crate::{process, tool::Site};
use jackfield_agents::GuardCommand;
use std::path::PathBuf;

/// What a server on stdio needs of its session.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) dir: PathBuf,
    pub(crate) guard: GuardCommand,
    /// Where servers are entered while they run.
    pub(crate) ledger: PathBuf,
    /// What every server sees; what the client gave one of them is added to it.
    pub(crate) env: Vec<(String, String)>,
}

impl Ground {
    pub(crate) fn of(site: &Site) -> Ground {
        let Site { dirs, guard, ledger, .. } = site.clone();
        let dir = dirs.into_iter().next().unwrap_or_else(|| PathBuf::from("/"));
        let env = process::environment(std::env::vars_os());
        Ground { dir, guard, ledger, env }
    }

    /// The whole environment of one server.
    pub(super) fn env_with(&self, given: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut env = self.env.clone();
        env.retain(|(name, _)| !given.iter().any(|(it, _)| it == name));
        env.extend(given);
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_gives_a_server_wins() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let guard = GuardCommand { program: "guard".into(), args: Vec::new() };
        let env = vec![pair("A", "1"), pair("B", "2")];
        let ground = Ground { dir: "/".into(), guard, ledger: "/".into(), env };
        let all = ground.env_with(vec![pair("A", "3"), pair("OPENAI_API_KEY", "theirs")]);
        assert_eq!(all, [pair("B", "2"), pair("A", "3"), pair("OPENAI_API_KEY", "theirs")]);
    }
}
