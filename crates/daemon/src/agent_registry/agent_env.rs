//! The environment of agents: what their spec grants from the daemon's environment, and what their
//! settings add.

use crate::config::AgentSettings;
use jackfield_catalog::EnvRules;
use std::collections::BTreeMap;

/// Composes an agent's environment from the daemon's. Without rules it contains what every program
/// expects.
pub(super) fn compose_agent_env(
    process_env: impl Iterator<Item = (String, String)>,
    rules: Option<&EnvRules>,
    settings: Option<&AgentSettings>,
) -> Vec<(String, String)> {
    let mut rules = rules.cloned().unwrap_or_default();
    rules.pass.extend(settings.into_iter().flat_map(|it| it.pass_env.clone()));
    let mut env: BTreeMap<String, String> =
        rules.compose_environment(process_env).into_iter().collect();
    for (name, value) in settings.into_iter().flat_map(|it| &it.env) {
        env.insert(name.clone(), value.clone());
    }
    env.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process_env() -> impl Iterator<Item = (String, String)> {
        [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "k"),
            ("GOOSE_MODE", "auto"),
            ("JACKFIELD_TOKEN", "t"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    fn names(env: Vec<(String, String)>) -> Vec<String> {
        env.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn api_keys_reach_only_the_intended_agent() {
        assert_eq!(compose_agent_env(process_env(), None, None), [("PATH".into(), "/bin".into())]);
        let settings = AgentSettings {
            command: None,
            env: BTreeMap::from([("X".into(), "1".into())]),
            pass_env: vec!["GOOSE_*".into(), "JACKFIELD_TOKEN".into()],
            ..AgentSettings::default()
        };
        let env = compose_agent_env(process_env(), None, Some(&settings));
        assert_eq!(names(env), ["GOOSE_MODE", "PATH", "X"]);
        let rules = EnvRules { pass: vec!["OPENAI_*".into()], ..EnvRules::default() };
        let env = compose_agent_env(process_env(), Some(&rules), Some(&settings));
        assert_eq!(names(env), ["GOOSE_MODE", "OPENAI_API_KEY", "PATH", "X"]);
    }
}
