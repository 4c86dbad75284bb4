//! What an agent may see of the daemon's environment: what its spec grants, and what its settings add.

use crate::config::AgentSettings;
use jackfield_catalog::EnvRules;
use std::collections::BTreeMap;

/// The environment of this process; what is no UTF-8 is of no use to an agent.
pub fn ours() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Composes an agent's environment from ours. Without rules of its own it sees what every program
/// expects.
pub(crate) fn for_agent(
    ours: impl Iterator<Item = (String, String)>,
    rules: Option<&EnvRules>,
    settings: Option<&AgentSettings>,
) -> Vec<(String, String)> {
    let mut rules = rules.cloned().unwrap_or_default();
    rules.pass.extend(settings.into_iter().flat_map(|it| it.pass_env.clone()));
    let mut env: BTreeMap<String, String> = rules.compose_environment(ours).into_iter().collect();
    for (name, value) in settings.into_iter().flat_map(|it| &it.env) {
        env.insert(name.clone(), value.clone());
    }
    env.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> impl Iterator<Item = (String, String)> {
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
    fn keys_reach_only_the_agent_that_is_meant_to_have_them() {
        assert_eq!(for_agent(ours(), None, None), [("PATH".into(), "/bin".into())]);
        let settings = AgentSettings {
            command: None,
            env: BTreeMap::from([("X".into(), "1".into())]),
            pass_env: vec!["GOOSE_*".into(), "JACKFIELD_TOKEN".into()],
            ..AgentSettings::default()
        };
        let env = for_agent(ours(), None, Some(&settings));
        assert_eq!(names(env), ["GOOSE_MODE", "PATH", "X"]);
        let rules = EnvRules { pass: vec!["OPENAI_*".into()], ..EnvRules::default() };
        let env = for_agent(ours(), Some(&rules), Some(&settings));
        assert_eq!(names(env), ["GOOSE_MODE", "OPENAI_API_KEY", "PATH", "X"]);
    }
}
