//! Questions of the board that must be answered before anything else: a new session, a name, a confirmation.

use crate::page::{LineField, ViewOptions};

#[derive(Debug)]
pub(crate) enum BoardDialog {
    NewSession(NewSessionDialog),
    Rename {
        session: String,
        field: LineField,
    },
    /// Closing a session that works or waits for an answer.
    ConfirmClose {
        session: String,
        title: String,
    },
}

/// The agent and the directory of a new session.
#[derive(Debug)]
pub(crate) struct NewSessionDialog {
    /// `None` until the hub has listed them.
    pub(crate) agents: Option<Vec<String>>,
    /// 0 is the default agent, 1 the first of the list.
    pub(crate) selected: usize,
    pub(crate) directory: LineField,
}

impl NewSessionDialog {
    pub(crate) fn new(directory: &str) -> NewSessionDialog {
        NewSessionDialog { agents: None, selected: 0, directory: LineField::new(directory) }
    }

    /// Selects the next agent, or the one before if `steps` is negative.
    pub(crate) fn step(&mut self, steps: isize) {
        let last = self.agents.as_ref().map_or(0, Vec::len);
        self.selected = self.selected.saturating_add_signed(steps).min(last);
    }

    /// `None` is the default agent.
    pub(crate) fn agent(&self) -> Option<&str> {
        let index = self.selected.checked_sub(1)?;
        self.agents.as_ref()?.get(index).map(String::as_str)
    }
}

/// The absolute path of a typed directory: `~` is the home directory, other paths start at the working directory.
pub(crate) fn resolve_directory(typed: &str, options: &ViewOptions) -> String {
    let typed = typed.trim();
    let home = options.home.as_deref().unwrap_or("~").trim_end_matches('/');
    let is_absolute = typed.starts_with(['/', '\\']) || typed.get(1..2) == Some(":");
    match typed.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ if is_absolute => typed.to_owned(),
        _ if typed.is_empty() || typed == "." => options.cwd.clone(),
        _ => format!("{}/{typed}", options.cwd.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_directory_becomes_absolute() {
        let options = ViewOptions {
            cwd: "/projects".into(),
            home: Some("/user/me".into()),
            ..ViewOptions::default()
        };
        for (typed, expected) in [
            ("", "/projects"),
            (".", "/projects"),
            ("~", "/user/me"),
            ("~/src", "/user/me/src"),
            ("~other", "/projects/~other"),
            ("sub/dir ", "/projects/sub/dir"),
            ("/abs", "/abs"),
            ("C:\\src", "C:\\src"),
        ] {
            assert_eq!(resolve_directory(typed, &options), expected, "{typed}");
        }
    }
}
