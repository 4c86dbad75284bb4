//! What an agent may see of the daemon's environment: a short list, plus what its settings name.

use crate::config::AgentSettings;
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

/// Composes an agent's environment from ours.
pub(crate) fn for_agent(
    ours: impl Iterator<Item = (String, String)>,
    settings: Option<&AgentSettings>,
) -> Vec<(String, String)> {
    let granted: &[String] = settings.map_or(&[], |it| &it.pass_env);
    let may_see = |name: &str| {
        BASE.iter().any(|it| matches(it, name)) || granted.iter().any(|it| matches(it, name))
    };
    let mut env: BTreeMap<String, String> =
        ours.filter(|(name, _)| may_see(name) && !name.starts_with("JACKFIELD_")).collect();
    for (name, value) in settings.into_iter().flat_map(|it| &it.env) {
        env.insert(name.clone(), value.clone());
    }
    env.into_iter().collect()
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

    #[test]
    fn keys_reach_only_the_agent_that_is_meant_to_have_them() {
        let ours = || {
            [
                ("PATH", "/bin"),
                ("OPENAI_API_KEY", "k"),
                ("GOOSE_MODE", "auto"),
                ("JACKFIELD_TOKEN", "t"),
            ]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        assert_eq!(for_agent(ours(), None), [("PATH".into(), "/bin".into())]);
        let settings = AgentSettings {
            command: vec!["goose".into()],
            env: BTreeMap::from([("X".into(), "1".into())]),
            pass_env: vec!["GOOSE_*".into(), "JACKFIELD_TOKEN".into()],
        };
        let names: Vec<String> =
            for_agent(ours(), Some(&settings)).into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["GOOSE_MODE", "PATH", "X"]);
    }
}
