//! What an agent needs inside its sandbox: folders, programs, variables and hosts.

use super::agent_links::{AgentLink, WritableDirectories};
use crate::paths::Paths;
use jackfield_catalog::{EnvRules, SandboxNeeds};
use jackfield_network_proxy::{HeaderInjection, HostPattern, HostRule, HostRules, PatternError};
use jackfield_sandbox::{
    plan::EnforcementLayer,
    profile::{HostHeader, HostLists},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// One launch, as far as its sandbox depends on it.
#[derive(Debug)]
pub(crate) struct LaunchNeeds<'a> {
    /// The working directory of the session; empty if the process is started before there is a session.
    pub(crate) cwd: &'a Path,
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a [(String, String)],
    /// The environment was sent by a client as a whole. Otherwise the agent's file and settings grant each variable.
    pub(crate) has_client_env: bool,
    /// The variables that the agent's file names.
    pub(crate) env_rules: &'a EnvRules,
    /// The layer that has to enforce the sandbox, if it is configured.
    pub(crate) layer: Option<EnforcementLayer>,
    /// From the agent's file; empty for an agent without one.
    pub(crate) of_agent: &'a SandboxNeeds,
}

impl LaunchNeeds<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn home(&self) -> PathBuf {
        let home = self.variable("HOME").map(PathBuf::from);
        home.or_else(env::home_dir).unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Where the agent puts temporary files.
    pub(super) fn temporary_directory(&self) -> PathBuf {
        self.variable("TMPDIR").map_or_else(env::temp_dir, PathBuf::from)
    }

    pub(super) fn search_path(&self) -> Vec<PathBuf> {
        self.variable("PATH").map(|it| env::split_paths(it).collect()).unwrap_or_default()
    }

    /// The directories of the session, without symbolic links. A link inside another directory of the session, or
    /// inside one that agents could write to, is refused: an agent could have put it there to get access to its target.
    pub(super) fn resolve_directories(
        &self,
        others: &[PathBuf],
        writable: &WritableDirectories,
    ) -> Result<Vec<PathBuf>, String> {
        let given: Vec<&Path> = std::iter::once(self.cwd)
            .filter(|it| !it.as_os_str().is_empty())
            .chain(others.iter().map(PathBuf::as_path))
            .collect();
        let resolve = |path: &&Path| {
            let real = fs::canonicalize(path).map_err(|it| {
                format!("the session's directory `{}` cannot be used: {it}", path.display())
            })?;
            let found = writable.find_link(path).map_err(|it| {
                format!("the session's directory `{}` cannot be checked: {it}", path.display())
            })?;
            if let Some(AgentLink { link, directory }) = found {
                return Err(format!(
                    "the session's directory `{}` leads to `{}` through the link `{}`, which an agent may have created \
                     in `{}`; open a session in the target itself if the agent may use it",
                    path.display(),
                    real.display(),
                    link.display(),
                    directory.display()
                ));
            }
            let is_inside = |other: &&Path| other != path && path.starts_with(other);
            if real != **path && given.iter().any(is_inside) {
                return Err(format!(
                    "the session's directory `{}` leads to `{}` through a link inside another directory of the \
                     session; name the target itself if the agent may use it",
                    path.display(),
                    real.display()
                ));
            }
            Ok(real)
        };
        given.iter().map(resolve).collect()
    }

    /// Where the agent keeps its login, settings and conversations.
    pub(super) fn agent_folders(&self, paths: &Paths) -> Vec<PathBuf> {
        let folders = self.of_agent.folders.iter().map(|it| self.expand_home(it));
        // Our own agent stores its conversations in a folder of its own.
        folders.chain([paths.chat_agent()]).collect()
    }

    /// The program, the adapters that run beside it, and what those read.
    pub(super) fn program_folders(&self, paths: &Paths, adapter: &Path) -> Vec<PathBuf> {
        let program = self.argv.first().map(Path::new).filter(|it| it.is_absolute());
        let program = program.and_then(Path::parent).map(Path::to_owned);
        let own = [adapter.to_owned(), paths.agent_files(), paths.installed_agents_folder()];
        own.into_iter().chain(program).collect()
    }

    /// Names of variables that the agent may have, or patterns of such names.
    pub(super) fn env_names(&self) -> Vec<String> {
        if self.has_client_env {
            let EnvRules { pass, require, set, .. } = self.env_rules;
            let own = self.of_agent.env.keys();
            return pass.iter().chain(require).chain(set.keys()).chain(own).cloned().collect();
        }
        self.env.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The hosts of the agent's model provider, and of the addresses in its variables.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.of_agent.hosts.iter().cloned().chain(self.hosts_of_variables()).collect()
    }

    fn hosts_of_variables(&self) -> impl Iterator<Item = String> {
        let addresses = self.env.iter().filter(|(name, _)| !is_proxy_variable(name));
        addresses.filter_map(|(_, value)| host_of_url(value))
    }

    /// The hosts of the profile, of the agent's model provider, and of the addresses in its variables: a user who
    /// sets a base URL means that server.
    pub(super) fn host_rules(&self, of_profile: &HostLists) -> Result<HostRules, String> {
        let mut rules = parse_host_rules(of_profile, &self.of_agent.hosts)?;
        for pattern in self.hosts_of_variables().filter_map(|it| it.parse().ok()) {
            rules.allowed.push(HostRule { pattern, private: true });
        }
        Ok(rules)
    }

    /// The headers that the proxy adds to requests, with the values from their files.
    pub(super) fn injected_headers(
        &self,
        of_profile: &HostLists,
    ) -> Result<Vec<HeaderInjection>, String> {
        let read = |it: &HostHeader| {
            let path = self.expand_home(&it.value_file);
            let value = fs::read_to_string(&path).map_err(|error| {
                format!(
                    "the header `{}` for `{}` cannot be read from `{}`: {error}",
                    it.name,
                    it.host,
                    path.display()
                )
            })?;
            HeaderInjection::new(&it.host, &it.name, value.trim())
                .map_err(|it| jackfield_protocol::chain(&it))
        };
        of_profile.headers.iter().map(read).collect()
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home().join(rest),
            None => PathBuf::from(path),
        }
    }
}

fn parse_pattern(text: &str) -> Result<HostPattern, String> {
    text.parse().map_err(|it: PatternError| jackfield_protocol::chain(&it))
}

/// The rules of a profile, and those that allow the hosts of an agent.
pub(super) fn parse_host_rules(
    of_profile: &HostLists,
    of_agent: &[String],
) -> Result<HostRules, String> {
    let mut allowed = Vec::new();
    for text in of_profile.allowed.iter().chain(of_agent) {
        allowed.push(HostRule { pattern: parse_pattern(text)?, private: false });
    }
    for text in &of_profile.private {
        allowed.push(HostRule { pattern: parse_pattern(text)?, private: true });
    }
    let refused = of_profile.refused.iter().map(|it| parse_pattern(it));
    Ok(HostRules { allowed, refused: refused.collect::<Result<_, _>>()? })
}

/// A sandboxed process uses the proxy of its sandbox, not that of the user.
fn is_proxy_variable(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("_proxy")
}

/// The host of an `http` or `https` address, with its port.
fn host_of_url(value: &str) -> Option<String> {
    let (rest, port) = value
        .strip_prefix("https://")
        .map(|it| (it, 443))
        .or_else(|| Some((value.strip_prefix("http://")?, 80)))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, it)| it.parse::<u16>().is_ok());
    Some(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `with` with the needs of an agent without a catalog file.
    fn with_needs<T>(
        cwd: &Path,
        env: &[(String, String)],
        with: impl FnOnce(&LaunchNeeds<'_>) -> T,
    ) -> T {
        with(&LaunchNeeds {
            cwd,
            argv: &[],
            env,
            has_client_env: false,
            env_rules: &EnvRules::default(),
            layer: None,
            of_agent: &SandboxNeeds::default(),
        })
    }

    #[test]
    fn header_is_read_from_a_file_in_the_home_directory() {
        let home = tempfile::tempdir().unwrap();
        let env = [("HOME".to_owned(), home.path().display().to_string())];
        let header = HostHeader {
            host: "api.example".to_owned(),
            name: "Authorization".to_owned(),
            value_file: "~/token".to_owned(),
        };
        let lists = HostLists { headers: vec![header], ..HostLists::default() };
        let read = || {
            with_needs(Path::new("/"), &env, |it| it.injected_headers(&lists).map(|it| it.len()))
        };
        let missing = read().unwrap_err();
        assert!(missing.contains("`Authorization` for `api.example`"), "{missing}");
        fs::write(home.path().join("token"), "Bearer 1\n").unwrap();
        assert_eq!(read(), Ok(1));
    }

    #[test]
    fn lists_of_a_profile_become_rules() {
        let lists = HostLists {
            allowed: vec!["a.example".to_owned()],
            private: vec!["git.corp.example".to_owned()],
            refused: vec!["*.b.example".to_owned()],
            headers: Vec::new(),
        };
        let rules = with_needs(Path::new("/"), &[], |it| it.host_rules(&lists)).unwrap();
        let allowed: Vec<(String, bool)> =
            rules.allowed.iter().map(|it| (it.pattern.to_string(), it.private)).collect();
        let expected = [("a.example".to_owned(), false), ("git.corp.example".to_owned(), true)];
        assert_eq!(allowed, expected);
        assert_eq!(rules.refused.len(), 1);
    }

    #[test]
    fn base_urls_name_hosts_with_their_ports() {
        for (value, expected) in [
            ("http://127.0.0.1:8080/v1", Some("127.0.0.1:8080")),
            ("https://api.example.com", Some("api.example.com:443")),
            ("https://me:secret@example.com/x?y", Some("example.com:443")),
            ("http://[::1]:1234", Some("[::1]:1234")),
            ("/usr/bin", None),
            ("true", None),
        ] {
            assert_eq!(host_of_url(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn link_inside_another_directory_of_the_session_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("project")).unwrap();
        fs::create_dir_all(root.join("secrets")).unwrap();
        std::os::unix::fs::symlink(root.join("secrets"), root.join("project/more")).unwrap();
        std::os::unix::fs::symlink(root.join("project"), root.join("shortcut")).unwrap();
        let resolve = |cwd: &str, others: &[&str]| {
            let cwd = root.join(cwd);
            let others: Vec<PathBuf> = others.iter().map(|it| root.join(it)).collect();
            let writable = WritableDirectories::new(root.join("writable"));
            with_needs(&cwd, &[], |needs| needs.resolve_directories(&others, &writable))
        };
        assert_eq!(resolve("shortcut", &[]), Ok(vec![root.join("project")]));
        let refused = resolve("project", &["project/more"]).unwrap_err();
        assert!(refused.contains("through a link inside another directory"), "{refused}");
    }
}
