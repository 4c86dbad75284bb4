//! Composes an agent's environment: base variables, plus those that its file names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Variables that every program may need. None of them holds a provider's key.
const BASE_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NVM_*",
    "FNM_*",
    "VOLTA_HOME",
];

/// The prefix of Jackfield's own variables: tokens and paths that no agent needs.
const OWN_PREFIX: &str = "JACKFIELD_";

/// `[env]`: which variables of the user are passed to this agent, and which are set for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvRules {
    /// Variables that are passed besides the base; a trailing `*` matches a prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Variables that are never passed, even if another pattern matches them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Variables without which the agent is not started. They are passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    /// Variables that are set unless the user has set them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

impl EnvRules {
    /// Composes the agent's environment from the current one, ordered by name.
    pub fn compose_environment(
        &self,
        current: impl Iterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let mut env: BTreeMap<String, String> =
            current.filter(|(name, _)| self.should_pass(name)).collect();
        for (name, value) in &self.set {
            if !name.starts_with(OWN_PREFIX) {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        env.into_iter().collect()
    }

    fn should_pass(&self, name: &str) -> bool {
        let is_listed = |list: &[String]| list.iter().any(|it| matches_pattern(it, name));
        let is_base = BASE_VARIABLES.iter().any(|it| matches_pattern(it, name));
        // The user's value takes precedence over one in `set`, so it is passed.
        let is_named = is_listed(&self.pass) || is_listed(&self.require);
        let is_granted = is_base || is_named || self.set.contains_key(name);
        is_granted && !is_listed(&self.remove) && !name.starts_with(OWN_PREFIX)
    }

    /// The first required variable that an environment lacks. An empty value counts as missing.
    pub fn find_missing(&self, env: &[(String, String)]) -> Option<&str> {
        let is_set = |name: &str| env.iter().any(|(it, value)| it == name && !value.is_empty());
        self.require.iter().map(String::as_str).find(|it| !is_set(it))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pass.is_empty()
            && self.remove.is_empty()
            && self.require.is_empty()
            && self.set.is_empty()
    }
}

/// Returns the reason why a name or pattern in `[env]` is invalid, or `None`.
pub(crate) fn find_pattern_error(pattern: &str) -> Option<String> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let is_plain = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if pattern.is_empty() || !is_plain || name.starts_with(|it: char| it.is_ascii_digit()) {
        return Some(format!(
            "`{pattern}` is not a variable name: use letters, digits and `_`, with `*` only at \
             the end"
        ));
    }
    name.starts_with(OWN_PREFIX)
        .then(|| format!("`{pattern}`: variables with the prefix `{OWN_PREFIX}` are never passed"))
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current_environment() -> impl Iterator<Item = (String, String)> {
        [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "k"),
            ("ANTHROPIC_API_KEY", "a"),
            ("OPENCODE_PID", "7"),
            ("TRUST", "false"),
            ("JACKFIELD_TOKEN", "t"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    fn rules(pass: &[&str], remove: &[&str], set: &[(&str, &str)]) -> EnvRules {
        let own = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        EnvRules { pass: own(pass), remove: own(remove), set: set.collect(), ..EnvRules::default() }
    }

    #[test]
    fn without_rules_only_base_variables_are_passed() {
        assert_eq!(
            EnvRules::default().compose_environment(current_environment()),
            [("PATH".into(), "/bin".into())]
        );
    }

    #[test]
    fn provider_keys_are_passed_only_where_a_pattern_matches() {
        let env = rules(&["OPENAI_*", "OPENCODE_*"], &["OPENCODE_PID"], &[])
            .compose_environment(current_environment());
        let names: Vec<&str> = env.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["OPENAI_API_KEY", "PATH"]);
    }

    #[test]
    fn value_of_the_user_overrides_a_set_variable() {
        let env = rules(&[], &[], &[("TRUST", "true"), ("OTHER", "1")])
            .compose_environment(current_environment());
        assert!(env.contains(&("TRUST".into(), "false".into())));
        assert!(env.contains(&("OTHER".into(), "1".into())));
    }

    #[test]
    fn own_variables_are_never_passed() {
        let env =
            rules(&["*"], &[], &[("JACKFIELD_X", "1")]).compose_environment(current_environment());
        assert!(env.iter().all(|(name, _)| !name.starts_with("JACKFIELD_")), "{env:?}");
        assert_eq!(env.len(), 5);
    }

    #[test]
    fn pattern_is_a_name_or_a_prefix() {
        assert_eq!(find_pattern_error("OPENAI_*"), None);
        assert_eq!(find_pattern_error("*"), None);
        for bad in ["", "A*B", "A-B", "1A", "JACKFIELD_X", "A="] {
            assert!(find_pattern_error(bad).is_some(), "{bad}");
        }
    }
}
