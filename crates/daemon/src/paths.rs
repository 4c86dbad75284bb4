//! Where things are kept: configuration, state (journal, ledger, log) and the running daemon's socket.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The three directories of one Jackfield.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub config: PathBuf,
    pub state: PathBuf,
    pub runtime: PathBuf,
}

impl Paths {
    /// XDG directories, each of which a `JACKFIELD_…_DIR` variable overrides.
    pub fn from_env() -> Paths {
        let uid = rustix::process::getuid().as_raw();
        Paths::from_vars(&|name| env::var_os(name).map(PathBuf::from), uid)
    }

    fn from_vars(var: &dyn Fn(&str) -> Option<PathBuf>, uid: u32) -> Paths {
        let set = |name: &str| var(name).filter(|it| it.is_absolute());
        let home = set("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let under = |xdg: &str, fallback: &str| {
            set(xdg).unwrap_or_else(|| home.join(fallback)).join("jackfield")
        };
        let runtime = || match set("XDG_RUNTIME_DIR") {
            Some(dir) => dir.join("jackfield"),
            None => env::temp_dir().join(format!("jackfield-{uid}")),
        };
        Paths {
            config: set("JACKFIELD_CONFIG_DIR")
                .unwrap_or_else(|| under("XDG_CONFIG_HOME", ".config")),
            state: set("JACKFIELD_STATE_DIR")
                .unwrap_or_else(|| under("XDG_STATE_HOME", ".local/state")),
            runtime: set("JACKFIELD_RUNTIME_DIR").unwrap_or_else(runtime),
        }
    }

    /// Everything below one directory: for tests and throw-away hubs.
    pub fn below(dir: &Path) -> Paths {
        Paths { config: dir.join("config"), state: dir.join("state"), runtime: dir.join("run") }
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// What agents may do, as the user says.
    pub fn policy_file(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// The projects whose rules count.
    pub fn trusted(&self) -> PathBuf {
        self.state.join("trusted.json")
    }

    /// What programs told about themselves.
    pub fn probes(&self) -> PathBuf {
        self.state.join("probe.json")
    }

    pub fn socket(&self) -> PathBuf {
        self.runtime.join("hub.sock")
    }

    pub fn token(&self) -> PathBuf {
        self.runtime.join("token")
    }

    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.db")
    }

    pub fn ledger(&self) -> PathBuf {
        self.state.join("ledger")
    }

    pub fn log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    pub fn lock(&self) -> PathBuf {
        self.state.join("lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &'static [(&'static str, &'static str)]) -> Paths {
        let var = |name: &str| {
            vars.iter().find(|(it, _)| *it == name).map(|(_, value)| PathBuf::from(value))
        };
        Paths::from_vars(&var, 7)
    }

    #[test]
    fn xdg_directories_are_used_and_our_own_variables_win() {
        let paths =
            with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("JACKFIELD_RUNTIME_DIR", "/r")]);
        assert_eq!(paths.config, Path::new("/h/.config/jackfield"));
        assert_eq!(paths.state, Path::new("/s/jackfield"));
        assert_eq!(paths.socket(), Path::new("/r/hub.sock"));
    }

    #[test]
    fn a_relative_directory_is_ignored_as_xdg_demands() {
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]).config,
            Path::new("/h/.config/jackfield")
        );
    }

    #[test]
    fn without_a_runtime_directory_each_user_has_one_of_their_own() {
        assert!(with(&[("HOME", "/h")]).runtime.ends_with("jackfield-7"));
    }
}
