//! File locations: configuration, state (journal, ledger, log) and the socket of the running
//! daemon.

use jackfield_agents::installed::InstalledAgents;
use jackfield_private_files as private_files;
use std::{
    env, io,
    path::{Path, PathBuf},
};

/// The directories of one Jackfield installation.
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
        let in_temp = env::temp_dir().join(format!("jackfield-{uid}"));
        Paths::from_vars(&|name| env::var_os(name).map(PathBuf::from), in_temp)
    }

    fn from_vars(var: &dyn Fn(&str) -> Option<PathBuf>, in_temp: PathBuf) -> Paths {
        let set = |name: &str| var(name).filter(|it| it.is_absolute());
        let home = set("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let under = |xdg: &str, fallback: &str| {
            set(xdg).unwrap_or_else(|| home.join(fallback)).join("jackfield")
        };
        let config =
            set("JACKFIELD_CONFIG_DIR").unwrap_or_else(|| under("XDG_CONFIG_HOME", ".config"));
        let state =
            set("JACKFIELD_STATE_DIR").unwrap_or_else(|| under("XDG_STATE_HOME", ".local/state"));
        let runtime = set("JACKFIELD_RUNTIME_DIR")
            .or_else(|| set("XDG_RUNTIME_DIR").map(|it| it.join("jackfield")))
            .unwrap_or_else(|| choose_runtime(state.join("run"), in_temp));
        Paths { config, state, runtime }
    }

    /// Everything below one directory, for tests and temporary hubs.
    pub fn below(dir: &Path) -> Paths {
        Paths { config: dir.join("config"), state: dir.join("state"), runtime: dir.join("run") }
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The user's policy file.
    pub fn policy_file(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// The trusted project policies.
    pub fn trusted(&self) -> PathBuf {
        self.state.join("trusted.json")
    }

    /// The cached results of agent probes.
    pub fn probes(&self) -> PathBuf {
        self.state.join("probe.json")
    }

    /// The agents that `jackfield agents install` has installed.
    pub fn installed_agents(&self) -> InstalledAgents {
        InstalledAgents::new(self.installed_agents_folder())
    }

    pub(crate) fn installed_agents_folder(&self) -> PathBuf {
        self.state.join("agents")
    }

    /// The user's descriptions of agents.
    pub(crate) fn agent_files(&self) -> PathBuf {
        self.config.join("agents")
    }

    /// What our own agent stores.
    pub fn chat_agent(&self) -> PathBuf {
        self.state.join("agent")
    }

    /// The list of directories that sandboxed agents could write to.
    pub(crate) fn writable_directories(&self) -> PathBuf {
        self.state.join("sandbox-directories")
    }

    /// The answers about hosts that apply to all sandboxes of a profile.
    pub fn host_answers(&self) -> PathBuf {
        self.state.join("sandbox-hosts.json")
    }

    pub fn socket(&self) -> PathBuf {
        self.runtime.join("hub.sock")
    }

    /// The token for TCP and HTTP clients. Unlike the runtime directory, it survives a logout.
    pub fn token(&self) -> PathBuf {
        self.state.join("token")
    }

    /// The login links and devices of browsers.
    pub fn devices(&self) -> PathBuf {
        self.state.join("devices.json")
    }

    /// Where earlier versions stored the token.
    pub(crate) fn former_token(&self) -> PathBuf {
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

/// The runtime directory if no variable names one. Other users can create names in the temporary
/// directory; if they did, the state directory is used instead, permanently, because daemon and
/// commands must agree.
fn choose_runtime(in_state: PathBuf, in_temp: PathBuf) -> PathBuf {
    let is_usable = match private_files::is_own_dir(&in_temp) {
        Ok(is_own) => is_own,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_usable && in_state.symlink_metadata().is_err() { in_temp } else { in_state }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn with(vars: &'static [(&'static str, &'static str)]) -> Paths {
        let var = |name: &str| {
            vars.iter().find(|(it, _)| *it == name).map(|(_, value)| PathBuf::from(value))
        };
        Paths::from_vars(&var, "/t/jackfield-7".into())
    }

    #[test]
    fn jackfield_variables_override_xdg_directories() {
        let paths =
            with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("JACKFIELD_RUNTIME_DIR", "/r")]);
        assert_eq!(paths.config, Path::new("/h/.config/jackfield"));
        assert_eq!(paths.state, Path::new("/s/jackfield"));
        assert_eq!(paths.socket(), Path::new("/r/hub.sock"));
    }

    #[test]
    fn relative_directory_is_ignored_as_xdg_requires() {
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]).config,
            Path::new("/h/.config/jackfield")
        );
    }

    #[test]
    fn default_runtime_directory_is_per_user() {
        assert_eq!(with(&[("HOME", "/h")]).runtime, Path::new("/t/jackfield-7"));
        let xdg = with(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/x")]);
        assert_eq!(xdg.runtime, Path::new("/x/jackfield"));
    }

    #[test]
    fn foreign_name_in_the_temporary_directory_is_avoided_permanently() {
        let dir = tempfile::tempdir().unwrap();
        let (in_state, in_temp) = (dir.path().join("run"), dir.path().join("jackfield-7"));
        let choose = || choose_runtime(in_state.clone(), in_temp.clone());
        assert_eq!(choose(), in_temp, "it is absent");
        symlink(dir.path(), &in_temp).unwrap();
        assert_eq!(choose(), in_state, "it is a link");
        fs::remove_file(&in_temp).unwrap();
        fs::write(&in_temp, "").unwrap();
        assert_eq!(choose(), in_state, "it is a file");
        fs::remove_file(&in_temp).unwrap();
        fs::create_dir(&in_temp).unwrap();
        assert_eq!(choose(), in_temp, "it is our own directory");
        fs::create_dir(&in_state).unwrap();
        assert_eq!(choose(), in_state, "a daemon may listen there");
    }
}
