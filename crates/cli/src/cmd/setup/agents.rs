//! The agents that an editor gets: the named ones, or all that are found on this machine.

use crate::{
    cmd::agents::ConfiguredAgents,
    context::CommandContext,
    exit::CliExitCode,
    hub::{OWN_AGENT, find_installed_agents},
    report::CommandError,
};
use jackfield_editor_settings::EditorAgent;

/// Jackfield's own agent is always found, and works only with a model server: it has to be named.
pub(super) fn choose_agents(
    context: &CommandContext,
    named: &[String],
) -> Result<Vec<EditorAgent>, CommandError> {
    let agents = ConfiguredAgents::new(context)?;
    let mut installed = find_installed_agents(context.daemon.paths(), &agents.settings);
    let is_broken = |id: &String| {
        agents.survey.catalogue.get(id).is_some_and(|it| !agents.survey.status(it).is_usable())
    };
    installed.retain(|it| !is_broken(it));
    let mut ids: Vec<String> = Vec::new();
    for name in named {
        let is_command = agents.settings.agents.get(name).is_some_and(|it| it.command.is_some());
        let id = if is_command { name.clone() } else { agents.find_spec(name)?.id.clone() };
        if !installed.contains(&id) {
            context.output.print_note(&format!(
                "`{id}` is not installed yet; `jackfield agents show {id}` says how to install it"
            ));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if named.is_empty() {
        installed.remove(OWN_AGENT);
        ids.extend(installed);
    }
    if ids.is_empty() {
        return Err(CommandError::Local {
            what: "no agent was found on this machine".to_owned(),
            source: "none of the known programs is installed".into(),
            exit: CliExitCode::NotFound,
            hint: "`jackfield agents --all` shows how to install agents; `--agent NAME` adds one anyway"
                .to_owned(),
        });
    }
    let title = |id: &str| match agents.survey.catalogue.get(id) {
        Some(spec) if agents.settings.agents.get(id).is_none_or(|it| it.command.is_none()) => {
            make_title(&spec.name)
        }
        _ => make_title(id),
    };
    let mut chosen: Vec<EditorAgent> = Vec::new();
    for id in ids {
        let title = title(&id);
        let is_taken = chosen.iter().any(|it| it.title == title);
        let title = if is_taken { make_title(&id) } else { title };
        chosen.push(EditorAgent { id, title });
    }
    Ok(chosen)
}

/// The name of an agent in the menus of an editor, which may have another entry for the same agent.
fn make_title(name: &str) -> String {
    if name.contains("Jackfield") { name.to_owned() } else { format!("{name} in Jackfield") }
}
