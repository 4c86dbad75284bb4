//! What every process of ours is started with, be it a command or a server.

use jackfield_agents::Ledger;
use std::{ffi::OsString, path::Path};

/// Our environment, without what is for the agent alone. What is no UTF-8 is of no use to a program.
pub(crate) fn environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(String, String)> {
    ours.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != "OPENAI_API_KEY" && !name.starts_with("JACKFIELD_"))
        .collect()
}

/// A name for one start that no other start has.
pub(crate) fn new_mark(kind: &str) -> Result<String, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("there are no random bytes: {error}"))?;
    Ok(format!("{kind}-{:016x}", u64::from_le_bytes(bytes)))
}

/// Where what runs is noted; nowhere if there is no such directory.
pub(crate) fn ledger(dir: &Path) -> Result<Ledger, String> {
    if dir.as_os_str().is_empty() {
        return Ok(Ledger::nowhere());
    }
    Ledger::open(dir).map_err(|error| {
        format!("`{}`, where running processes are noted, fails: {error}", dir.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_agent_stay_with_the_agent() {
        let names = ["PATH", "OPENAI_API_KEY", "JACKFIELD_TOKEN", "OPENAI_MODEL"];
        let env = environment(names.into_iter().map(|it| (it.into(), "x".into())));
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PATH", "OPENAI_MODEL"]);
    }

    #[test]
    fn no_two_marks_are_the_same() {
        assert_ne!(new_mark("a"), new_mark("a"));
    }
}
