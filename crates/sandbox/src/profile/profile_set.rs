//! All profiles of a user: the built-in ones, with the user's overrides and additions.

use super::parse::{self, ProfileError, ProfileTable};
use super::{BUILT_IN_PROFILES, NetworkAccess, SandboxProfile};
use crate::plan::ResourceLimits;
use std::collections::BTreeMap;

/// Profiles by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSet {
    profiles: BTreeMap<String, SandboxProfile>,
}

impl ProfileSet {
    pub fn built_in() -> ProfileSet {
        let tables = parse::read_tables(include_str!("built_in.toml"));
        let mut set = ProfileSet { profiles: BTreeMap::new() };
        for name in BUILT_IN_PROFILES {
            let tables = tables.as_deref().expect("a test parses the built-in profiles");
            let table = tables.iter().find(|it| it.name == name).expect("a built-in profile");
            let base = table.extends.as_ref().and_then(|it| set.profiles.get(it));
            let base = base.cloned().unwrap_or_else(|| empty_profile(name));
            set.profiles.insert(name.to_owned(), extend_profile(base, table));
        }
        set
    }

    /// Reads the `[sandbox.NAME]` tables of a `policy.toml`. A table with the name of a built-in
    /// profile adds to it; any other extends the profile that it names.
    pub fn parse(text: &str) -> Result<ProfileSet, Vec<ProfileError>> {
        let mut set = ProfileSet::built_in();
        let (overrides, mut added): (Vec<_>, Vec<_>) = parse::read_tables(text)?
            .into_iter()
            .partition(|it| BUILT_IN_PROFILES.contains(&it.name.as_str()));
        let mut errors = Vec::new();
        for table in &overrides {
            if table.extends.is_some() {
                let reason =
                    format!("`extends` is fixed for the built-in profile `{}`", table.name);
                errors.push(ProfileError { line: table.line, reason });
            }
            set.apply_override(table);
        }
        // A profile follows the one that it extends. What is left at the end extends itself or a
        // profile that does not exist.
        loop {
            let count = added.len();
            added.retain(|table| !set.add_profile(table));
            if added.len() == count {
                break;
            }
        }
        errors.extend(added.iter().map(|it| set.base_error(it)));
        errors.sort_by_key(|it| it.line);
        if errors.is_empty() { Ok(set) } else { Err(errors) }
    }

    pub fn find(&self, name: &str) -> Option<&SandboxProfile> {
        self.profiles.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    fn apply_override(&mut self, table: &ProfileTable) {
        if let Some(base) = self.profiles.remove(&table.name) {
            self.profiles.insert(table.name.clone(), extend_profile(base, table));
        }
    }

    /// Adds a profile if the one that it extends is known.
    fn add_profile(&mut self, table: &ProfileTable) -> bool {
        let base = table.extends.as_ref().and_then(|it| self.profiles.get(it));
        let Some(base) = base.cloned() else { return false };
        self.profiles.insert(table.name.clone(), extend_profile(base, table));
        true
    }

    fn base_error(&self, table: &ProfileTable) -> ProfileError {
        let name = &table.name;
        let known = self.names().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        let reason = match &table.extends {
            None => {
                format!("profile `{name}` needs `extends`, for example `extends = \"workspace\"`")
            }
            Some(base) if base == name => format!("profile `{name}` extends itself"),
            Some(base) => format!(
                "profile `{name}` extends `{base}`, which does not exist or extends `{name}`; \
                 profiles are {known}"
            ),
        };
        ProfileError { line: table.line, reason }
    }
}

fn empty_profile(name: &str) -> SandboxProfile {
    SandboxProfile {
        name: name.to_owned(),
        paths: Vec::new(),
        env: Vec::new(),
        network: NetworkAccess::None,
        limits: ResourceLimits::default(),
        protect_files: true,
    }
}

fn extend_profile(base: SandboxProfile, table: &ProfileTable) -> SandboxProfile {
    let network = match (base.network, table.network.clone()) {
        (NetworkAccess::Hosts(mut hosts), Some(NetworkAccess::Hosts(more))) => {
            hosts.extend(more);
            NetworkAccess::Hosts(hosts)
        }
        (base, network) => network.unwrap_or(base),
    };
    SandboxProfile {
        name: table.name.clone(),
        paths: base.paths.into_iter().chain(table.paths.iter().cloned()).collect(),
        env: base.env.into_iter().chain(table.env.iter().cloned()).collect(),
        network,
        limits: ResourceLimits {
            processes: table.limits.processes.or(base.limits.processes),
            memory_bytes: table.limits.memory_bytes.or(base.limits.memory_bytes),
            file_bytes: table.limits.file_bytes.or(base.limits.file_bytes),
            cpu_seconds: table.limits.cpu_seconds.or(base.limits.cpu_seconds),
        },
        protect_files: table.protect_files.unwrap_or(base.protect_files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::PathAccess,
        profile::{HostHeader, HostLists},
    };

    fn errors(text: &str) -> Vec<String> {
        let errors = ProfileSet::parse(text).unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn override_adds_to_a_built_in_profile_and_to_those_that_extend_it() {
        let text = "[[rule]]\ndo = \"allow\"\n\
            [sandbox.tests]\nextends = \"ci\"\nenv = [\"CI\"]\n\
            [sandbox.ci]\nextends = \"workspace\"\nlimits = { processes = 50, memory = \"2GiB\" }\n\
            network = { hosts = [\"*.crates.io\"] }\nprotect_files = false\n\
            [sandbox.workspace]\nread = [\"~/shared\"]\nnetwork = { hosts = [\"example.com:8080\"] }\n";
        let set = ProfileSet::parse(text).unwrap();
        assert_eq!(
            set.names().collect::<Vec<_>>(),
            ["ci", "open", "read-only", "tests", "workspace"]
        );
        let tests = set.find("tests").unwrap();
        let shared = tests.paths.iter().find(|it| it.path == "~/shared").unwrap();
        assert_eq!(shared.access, PathAccess::ReadOnly);
        assert_eq!(tests.env.last().unwrap(), "CI");
        let allowed = vec!["example.com:8080".to_owned(), "*.crates.io".to_owned()];
        let hosts = HostLists { allowed, ..HostLists::default() };
        assert_eq!(tests.network, NetworkAccess::Hosts(hosts));
        assert_eq!((tests.limits.processes, tests.limits.memory_bytes), (Some(50), Some(2 << 30)));
        assert!(!tests.protect_files);
        assert!(set.find("workspace").unwrap().protect_files);
        assert_eq!(set.find("read-only"), ProfileSet::built_in().find("read-only"));
    }

    #[test]
    fn host_lists_and_headers_are_read_and_added_to_those_of_the_base() {
        let text = "[sandbox.workspace.network]\nhosts = [\"a.example\"]\nrefuse = [\"*.b.example\"]\n\
            [sandbox.ci]\nextends = \"workspace\"\n\
            [sandbox.ci.network]\nprivate = [\"git.corp.example\"]\n\
            headers = [{ host = \"a.example\", name = \"Authorization\", value_file = \"~/token\" }]\n";
        let set = ProfileSet::parse(text).unwrap();
        let header = HostHeader {
            host: "a.example".to_owned(),
            name: "Authorization".to_owned(),
            value_file: "~/token".to_owned(),
        };
        let expected = HostLists {
            allowed: vec!["a.example".to_owned()],
            private: vec!["git.corp.example".to_owned()],
            refused: vec!["*.b.example".to_owned()],
            headers: vec![header],
        };
        assert_eq!(set.find("ci").unwrap().network, NetworkAccess::Hosts(expected));
    }

    #[test]
    fn errors_in_host_lists_name_the_key_and_the_way_out() {
        let text = "[sandbox.workspace.network]\nhost = []\nrefuse = [\"https://x\"]\n\
            headers = [{ host = \"*.a.example\", name = \"a b\", value_file = \"token\" }, 1, { host = \"a\" }]\n";
        insta::assert_snapshot!(errors(text).join("\n"), @r#"
        line 2: unknown key `host`; valid keys are `hosts`, `private`, `refuse` and `headers`
        line 3: `https://x` in `refuse`: write a host as `example.com`, `*.example.com` or `example.com:8080`
        line 4: `*.a.example` in `headers`: name one host, such as `example.com`
        line 4: `token` in `headers`: begin with `/` or `~/`
        line 4: an entry of `headers` is { host = "example.com", name = "Authorization", value_file = "~/token" }
        line 4: an entry of `headers` is { host = "example.com", name = "Authorization", value_file = "~/token" }
        "#);
    }

    #[test]
    fn network_of_another_kind_replaces_that_of_the_base() {
        let set = ProfileSet::parse("[sandbox.workspace]\nnetwork = \"none\"\n").unwrap();
        assert_eq!(set.find("workspace").unwrap().network, NetworkAccess::None);
    }

    #[test]
    fn every_error_is_reported_with_its_line_and_a_way_out() {
        let text = "[sandbox.a]\nextends = \"workspace\"\nwrite = [\"src\", \"~/x/*\", \"/a/../b\"]\n\
            hide = [\"~/y\"]\nread = [\"~/y\"]\ncolor = 1\nenv = [\"A-B\"]\nnetwork = \"some\"\n\
            [sandbox.a.limits]\nmemory = 5\nprocesses = 0\nfiles = 1\n\
            [sandbox.b]\nextends = \"workspace\"\nnetwork = { hosts = [\"https://example.com\"] }\n\
            protect_files = 1\n[sandbox]\nc = 1\n";
        insta::assert_snapshot!(errors(text).join("\n"), @r#"
        line 3: `src` in `write`: begin with `/`, `~/` or `./`; `.` is each directory of the session
        line 3: `~/x/*` in `write`: patterns are not supported; name the directory
        line 3: `/a/../b` in `write`: `..` is not supported
        line 5: `~/y` occurs twice in this profile
        line 6: unknown key `color`; valid keys are `extends`, `write`, `read`, `hide`, `temporary`, `env`, `network`, `limits` and `protect_files`
        line 7: `A-B` is not a variable name: use letters, digits, `_`, and `*` for any text
        line 8: `network` must be "none", "all" or { hosts = ["example.com"] }
        line 10: `memory` must be a size such as "512MiB" or "4GB"
        line 11: `processes` must be a positive number
        line 12: unknown limit `files`; valid limits are `processes`, `memory`, `cpu` and `disk`
        line 15: `https://example.com` in `hosts`: write a host as `example.com`, `*.example.com` or `example.com:8080`
        line 16: `protect_files` must be `true` or `false`
        line 18: `c` is not a profile; write `[sandbox.c]`
        "#);
    }

    #[test]
    fn base_must_exist_and_must_not_be_a_cycle() {
        let text = "[sandbox.a]\nread = [\"/a\"]\n[sandbox.b]\nextends = \"nothing\"\n\
            [sandbox.c]\nextends = \"c\"\n[sandbox.d]\nextends = \"e\"\n[sandbox.e]\nextends = \"d\"\n\
            [sandbox.workspace]\nextends = \"open\"\n";
        insta::assert_snapshot!(errors(text).join("\n"), @r#"
        line 1: profile `a` needs `extends`, for example `extends = "workspace"`
        line 3: profile `b` extends `nothing`, which does not exist or extends `b`; profiles are `open`, `read-only`, `workspace`
        line 5: profile `c` extends itself
        line 7: profile `d` extends `e`, which does not exist or extends `d`; profiles are `open`, `read-only`, `workspace`
        line 9: profile `e` extends `d`, which does not exist or extends `e`; profiles are `open`, `read-only`, `workspace`
        line 11: `extends` is fixed for the built-in profile `workspace`
        "#);
    }
}
