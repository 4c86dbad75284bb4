//! The environment of an agent on its way through the guard.
//!
//! The guard must not act on it: `LD_PRELOAD` would load the agent's libraries into the guard. The daemon
//! therefore gives the guard every variable under a longer name, which means nothing to a program, and the
//! guard gives it to the agent under its own name.

use crate::os::MARK_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

const PREFIX: &str = "JACKFIELD_AGENT_ENV_";

/// The name under which the guard carries a variable.
pub(crate) fn hide(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// What the agent gets, from the environment of the guard: its own variables, and the mark of the guard.
pub(crate) fn restore(
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
    // Last, so that no variable of the agent replaces it.
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
            pair(&hide("PATH"), "/bin"),
            pair("PATH", "/guard"),
            pair(&hide(MARK_VARIABLE), "m-2"),
        ];
        let restored = restore(environment.into_iter());
        let expected =
            [pair("PATH", "/bin"), pair(MARK_VARIABLE, "m-2"), pair(MARK_VARIABLE, "m-1")];
        assert_eq!(restored, expected);
    }
}
