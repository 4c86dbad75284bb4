//! Names of agents in `config.toml`: an alias of the catalog is replaced by the id of its agent, and an
//! unknown name is refused.

use super::{AgentSettings, Settings, document::InvalidSetting};
use crate::agent_files::AgentFiles;
use jackfield_protocol::suggest_name;

/// Replaces aliases and checks `default_agent` and `fallback`. Returns what is invalid.
pub(super) fn resolve_names(
    settings: &mut Settings,
    files: &AgentFiles,
) -> Result<(), InvalidSetting> {
    resolve_tables(settings, files)?;
    let names: Vec<String> = settings.agents.keys().cloned().collect();
    let resolve = |name: &str| {
        let is_configured = names.iter().any(|it| it == name);
        if is_configured || files.find_error(name).is_some() {
            return Ok(name.to_owned());
        }
        files.catalog().get(name).map(|it| it.id.clone()).ok_or_else(|| {
            let known = files.catalog().names().chain(names.iter().map(String::as_str));
            suggest_name(name, known)
        })
    };
    for (name, agent) in &settings.agents {
        check_variant(name, agent, files)?;
    }
    for (name, agent) in &mut settings.agents {
        let Some(other) = &mut agent.fallback else { continue };
        let invalid = |suggestion: &str| {
            let reason = format!(
                "`fallback` of [agents.{name}] is `{other}`, which is not another known \
                 agent{suggestion}; `jackfield agents` lists them"
            );
            InvalidSetting::new(&["agents", name, "fallback"], reason)
        };
        let resolved = resolve(other).map_err(|it| invalid(&it))?;
        if resolved == *name {
            return Err(invalid(""));
        }
        *other = resolved;
    }
    if let Some(name) = &mut settings.default_agent {
        *name = resolve(name).map_err(|suggestion| {
            let reason = format!(
                "`default_agent` is `{name}`, but there is no [agents.{name}] and no such agent in \
                 the catalog{suggestion}; `jackfield agents` lists all"
            );
            InvalidSetting::new(&["default_agent"], reason)
        })?;
    }
    Ok(())
}

/// `[agents.ALIAS]` without a command adjusts the agent of that alias. With a command it defines an
/// agent of that name.
fn resolve_tables(settings: &mut Settings, files: &AgentFiles) -> Result<(), InvalidSetting> {
    for (name, agent) in std::mem::take(&mut settings.agents) {
        let resolved = match agent.command {
            Some(_) => name.as_str(),
            None => files.catalog().resolve_id(&name),
        };
        let resolved = resolved.to_owned();
        if settings.agents.insert(resolved.clone(), agent).is_some() {
            let reason = format!(
                "[agents.{name}] and another table are both about agent `{resolved}`: keep one"
            );
            return Err(InvalidSetting::new(&["agents", &name], reason));
        }
    }
    Ok(())
}

fn check_variant(
    name: &str,
    agent: &AgentSettings,
    files: &AgentFiles,
) -> Result<(), InvalidSetting> {
    let Some(variant) = &agent.variant else { return Ok(()) };
    let invalid = |reason| InvalidSetting::new(&["agents", name, "variant"], reason);
    let Some(spec) = files.catalog().get(name) else {
        let why = "is for agents of the catalog: remove it";
        return Err(invalid(format!("`variant` of [agents.{name}] {why}")));
    };
    if spec.find_variant(variant).is_some() {
        return Ok(());
    }
    let known = spec.list_variants();
    Err(invalid(format!("`variant` of [agents.{name}] is `{variant}`: choose one of {known}")))
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, load};

    fn load_text(text: &str) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        load(&path).map_err(|it| it.to_string())
    }

    #[test]
    fn default_agent_must_be_configured_or_in_the_catalog() {
        assert!(load_text("default_agent = \"x\"").unwrap_err().contains("[agents.x]"));
        assert!(load_text("default_agent = \"x\"\n[agents.x]\ncommand = [\"y\"]\n").is_ok());
        assert!(load_text("default_agent = \"goose\"").is_ok());
        let why = load_text("default_agent = \"gose\"").unwrap_err();
        assert!(why.contains("did you mean `goose`?"), "{why}");
    }

    #[test]
    fn fallback_must_be_another_known_agent() {
        let load = |other: &str| {
            let text = format!("[agents.codex]\nfallback = \"{other}\"\n");
            load_text(&text).map(|it| it.pools())
        };
        for other in ["codex", "codex-cli", "nobody"] {
            assert!(load(other).unwrap_err().contains("`fallback` of [agents.codex]"));
        }
        assert_eq!(load("gemini-cli").unwrap()["codex"].fallback.as_deref(), Some("gemini"));
    }

    #[test]
    fn variant_must_be_one_of_the_catalog() {
        let settings = load_text("[agents.codex]\nvariant = \"exec\"\n").unwrap();
        assert_eq!(settings.agents["codex"].variant.as_deref(), Some("exec"));
        let why = load_text("[agents.codex]\nvariant = \"x\"\n").unwrap_err();
        assert!(why.contains("choose one of `acp`, `app-server`, `exec`"), "{why}");
        let text = "[agents.own]\ncommand = [\"x\"]\nvariant = \"acp\"\n";
        assert!(load_text(text).unwrap_err().contains("agents of the catalog"));
    }

    #[test]
    fn alias_stands_for_its_agent_unless_a_command_defines_it() {
        let text = "default_agent = \"claude-code\"\n[agents.cursor-agent]\nwarm = 2\n";
        let settings = load_text(text).unwrap();
        assert_eq!(settings.default_agent.as_deref(), Some("claude"));
        assert_eq!(settings.agents["cursor"].warm, 2);
        let text = "default_agent = \"codex-cli\"\n[agents.codex-cli]\ncommand = [\"x\"]\n";
        let settings = load_text(text).unwrap();
        assert_eq!(settings.default_agent.as_deref(), Some("codex-cli"));
        assert!(settings.agents.contains_key("codex-cli"));
        let why = load_text("[agents.codex]\n[agents.codex-cli]\n").unwrap_err();
        assert!(why.contains("both about agent `codex`"), "{why}");
    }
}
