//! What an agent may see of our environment: a short list, plus what its file names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names every program expects. No provider key is among them.
const BASE: &[&str] = &[
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

/// Ours: tokens and paths of the daemon that no agent has a use for.
const OURS: &str = "JACKFIELD_";

/// `[env]`: what of the user's environment is meant for this agent, and what is set for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvRules {
    /// Variables handed on besides the base; `*` at the end matches a prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Variables never handed on, whatever else matches them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Variables set unless the user has set them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

impl EnvRules {
    /// Composes the agent's environment from ours, in the order of names.
    pub fn compose(&self, ours: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
        let mut env: BTreeMap<String, String> =
            ours.filter(|(name, _)| self.passes(name)).collect();
        for (name, value) in &self.set {
            if !name.starts_with(OURS) {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        env.into_iter().collect()
    }

    fn passes(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|it| matches(it, name));
        let base = BASE.iter().any(|it| matches(it, name));
        // A variable we would set is the user's to decide: theirs is handed on.
        let granted = base || listed(&self.pass) || self.set.contains_key(name);
        granted && !listed(&self.remove) && !name.starts_with(OURS)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pass.is_empty() && self.remove.is_empty() && self.set.is_empty()
    }
}

/// What is wrong with a name or pattern in `[env]`, if anything.
pub(crate) fn fault(pattern: &str) -> Option<String> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let plain = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if pattern.is_empty() || !plain || name.starts_with(|it: char| it.is_ascii_digit()) {
        return Some(format!(
            "`{pattern}` is no variable's name: letters, digits and `_`, and `*` only at the end"
        ));
    }
    name.starts_with(OURS).then(|| format!("`{pattern}`: variables of ours are never handed on"))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> impl Iterator<Item = (String, String)> {
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
        EnvRules { pass: own(pass), remove: own(remove), set: set.collect() }
    }

    #[test]
    fn without_rules_only_the_base_is_seen() {
        assert_eq!(EnvRules::default().compose(ours()), [("PATH".into(), "/bin".into())]);
    }

    #[test]
    fn keys_reach_only_the_agent_that_is_meant_to_have_them() {
        let env = rules(&["OPENAI_*", "OPENCODE_*"], &["OPENCODE_PID"], &[]).compose(ours());
        let names: Vec<&str> = env.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["OPENAI_API_KEY", "PATH"]);
    }

    #[test]
    fn what_is_set_gives_way_to_the_user() {
        let env = rules(&[], &[], &[("TRUST", "true"), ("OTHER", "1")]).compose(ours());
        assert!(env.contains(&("TRUST".into(), "false".into())));
        assert!(env.contains(&("OTHER".into(), "1".into())));
    }

    #[test]
    fn our_own_variables_are_never_handed_on() {
        let env = rules(&["*"], &[], &[("JACKFIELD_X", "1")]).compose(ours());
        assert!(env.iter().all(|(name, _)| !name.starts_with("JACKFIELD_")), "{env:?}");
        assert_eq!(env.len(), 5);
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_one() {
        assert_eq!(fault("OPENAI_*"), None);
        assert_eq!(fault("*"), None);
        for bad in ["", "A*B", "A-B", "1A", "JACKFIELD_X", "A="] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
