//! What all child processes have in common: the environment, the process marker, the ledger.

use jackfield_agents::ProcessLedger;
use std::{ffi::OsString, path::Path};

/// Filters the environment for child processes: variables that are only for the agent, and those
/// that are not UTF-8, are left out.
pub(crate) fn child_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(String, String)> {
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            name != "OPENAI_API_KEY"
                && name != "OPENAI_WEB_SEARCH_HEADER"
                && !name.starts_with("JACKFIELD_")
        })
        .collect()
}

/// Returns a unique marker for one process tree.
pub(crate) fn new_process_marker(kind: &str) -> Result<String, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("failed to get random bytes: {error}"))?;
    Ok(format!("{kind}-{:016x}", u64::from_le_bytes(bytes)))
}

/// Opens the ledger of running processes. An empty path disables it.
pub(crate) fn open_ledger(dir: &Path) -> Result<ProcessLedger, String> {
    if dir.as_os_str().is_empty() {
        return Ok(ProcessLedger::without_files());
    }
    ProcessLedger::open(dir)
        .map_err(|error| format!("failed to open the process ledger `{}`: {error}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_environment_has_no_keys_of_the_agent() {
        let names = ["PATH", "OPENAI_API_KEY", "JACKFIELD_TOKEN", "OPENAI_MODEL"];
        let env = child_environment(names.into_iter().map(|it| (it.into(), "x".into())));
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["PATH", "OPENAI_MODEL"]);
    }

    #[test]
    fn process_markers_are_unique() {
        assert_ne!(new_process_marker("a"), new_process_marker("a"));
    }
}
