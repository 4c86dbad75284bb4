//! Where servers of a session run, and with what.

use crate::tool::Site;
use jackfield_agents::GuardCommand;
use std::{fmt::Write as _, path::PathBuf};

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
        // What is no UTF-8 is of no use to a server.
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let env = ours.filter(|(name, _)| !is_private(name)).collect();
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

/// The key of the model is for the model, and what is ours is for us.
fn is_private(name: &str) -> bool {
    name == "OPENAI_API_KEY" || name.starts_with("JACKFIELD_")
}

/// A name for one start of one server that no other start has.
pub(super) fn new_mark() -> Result<String, String> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|error| format!("there is no randomness: {error}"))?;
    let mut mark = "mcp-".to_owned();
    for byte in random {
        let _infallible = write!(mark, "{byte:02x}");
    }
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_sees_neither_our_key_nor_what_is_ours() {
        assert!(is_private("OPENAI_API_KEY") && is_private("JACKFIELD_TOKEN"));
        assert!(!is_private("PATH") && !is_private("OPENAI_BASE_URL"));
    }

    #[test]
    fn what_the_client_gives_a_server_wins() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let guard = GuardCommand { program: "guard".into(), args: Vec::new() };
        let env = vec![pair("A", "1"), pair("B", "2")];
        let ground = Ground { dir: "/".into(), guard, ledger: "/".into(), env };
        let all = ground.env_with(vec![pair("A", "3"), pair("OPENAI_API_KEY", "theirs")]);
        assert_eq!(all, [pair("B", "2"), pair("A", "3"), pair("OPENAI_API_KEY", "theirs")]);
    }

    #[test]
    fn no_two_marks_are_the_same() {
        assert_ne!(new_mark().unwrap(), new_mark().unwrap());
    }
}
