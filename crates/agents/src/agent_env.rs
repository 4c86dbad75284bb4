//! Passes the environment of an agent through its guard.
//!
//! The guard itself must not be affected by it: `LD_PRELOAD` would load the agent's libraries into
//! the guard. The daemon therefore passes each variable with a prefix, and the guard removes the
//! prefix when it starts the agent.

use crate::os::MARK_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

const PREFIX: &str = "JACKFIELD_AGENT_ENV_";

/// The name of a variable in the environment of the guard.
pub(crate) fn add_prefix(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The environment of the agent from that of the guard: its own variables, and the guard's mark.
pub(crate) fn restore_environment(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let (mut restored, mut mark) = (Vec::new(), None);
    for (name, value) in environment {
        if name == MARK_VARIABLE {
            mark = Some((name, value));
        } else if let Some(own) = name.as_bytes().strip_prefix(PREFIX.as_bytes()) {
            restored.push((OsStr::from_bytes(own).to_owned(), value));
        }
    }
    // Last, so that no variable of the agent overrides it.
    restored.extend(mark);
    restored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_gets_its_own_variables_and_the_mark_of_the_guard() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let environment = [
            pair(MARK_VARIABLE, "m-1"),
            pair(&add_prefix("PATH"), "/bin"),
            pair("PATH", "/guard"),
            pair(&add_prefix(MARK_VARIABLE), "m-2"),
        ];
        let restored = restore_environment(environment.into_iter());
        let expected =
            [pair("PATH", "/bin"), pair(MARK_VARIABLE, "m-2"), pair(MARK_VARIABLE, "m-1")];
        assert_eq!(restored, expected);
    }
}
