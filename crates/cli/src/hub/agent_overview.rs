//! The agents on this machine for a user without sessions: what is installed, and what could be.

use super::{OWN_AGENT, find_installed_agents, load_settings};
use jackfield_agents::{
    find::ProgramLocations,
    probe::{AgentStatus, AgentSurvey, LoginState},
};
use jackfield_catalog::{AgentSpec, Catalog, InstallAdvice};
use jackfield_daemon::{Paths, environment, load_catalog};
use jackfield_tui::{AgentEntry, AgentOverview};

/// The variable with the address of the model server for our own agent.
pub(crate) const MODEL_SERVER: &str = "OPENAI_BASE_URL";
/// Agents of different vendors that one command installs.
const SUGGESTED_AGENTS: [&str; 3] = ["claude", "codex", "opencode"];

/// Lists the agents without starting one: version and login are those of the last probe.
pub(crate) fn survey_agents(paths: &Paths) -> AgentOverview {
    let settings = load_settings(paths).unwrap_or_default();
    let names = find_installed_agents(paths, &settings);
    let locations = environment::program_locations(paths);
    let survey = AgentSurvey::new(load_catalog(paths), locations, &paths.probes());
    let has_agent = names.iter().any(|it| it != OWN_AGENT);
    let has_server = survey.locations.var(MODEL_SERVER).is_some();
    let mut installed: Vec<AgentEntry> = Vec::new();
    for name in names {
        let is_command = settings.agents.get(&name).is_some_and(|it| it.command.is_some());
        let remark = match survey.catalogue.get(&name) {
            Some(spec) if !is_command => {
                describe_agent(spec, &survey.status(spec), &survey.locations)
            }
            _ => "from config.toml".to_owned(),
        };
        installed.push(AgentEntry { name, remark });
    }
    installed.sort_by_key(|it| it.name == OWN_AGENT);
    AgentOverview {
        installed,
        suggested: if has_agent || has_server {
            Vec::new()
        } else {
            suggest_agents(&survey.catalogue)
        },
    }
}

fn suggest_agents(catalog: &Catalog) -> Vec<AgentEntry> {
    let specs = SUGGESTED_AGENTS.iter().filter_map(|it| catalog.get(it));
    let entry = |it: &AgentSpec| match it.install_advice() {
        InstallAdvice::Command(remark) => Some(AgentEntry { name: it.id.clone(), remark }),
        InstallAdvice::Vendor { .. } | InstallAdvice::Included => None,
    };
    specs.filter_map(entry).collect()
}

/// Version and login if they are known, otherwise where its program is.
fn describe_agent(spec: &AgentSpec, status: &AgentStatus, locations: &ProgramLocations) -> String {
    if spec.id == OWN_AGENT {
        return match locations.var(MODEL_SERVER) {
            Some(url) => format!("Jackfield's own agent, with {url}"),
            None => format!("Jackfield's own agent; needs {MODEL_SERVER}"),
        };
    }
    if !status.is_usable() {
        return "does not work: `jackfield doctor agents` says why".to_owned();
    }
    let known: Vec<String> =
        status.version.clone().into_iter().chain(describe_login(status)).collect();
    let path = || status.program.as_ref().map(|it| it.path.display().to_string());
    if known.is_empty() { path().unwrap_or_default() } else { known.join(", ") }
}

/// Whether it is logged in, if that is known.
pub(crate) fn describe_login(status: &AgentStatus) -> Option<String> {
    match (&status.login_variable, status.login) {
        (Some(variable), _) => Some(format!("login from {variable}")),
        (None, LoginState::Ok) => Some("logged in".to_owned()),
        (None, LoginState::Missing) => Some("not logged in".to_owned()),
        (None, LoginState::Unknown) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_agents_are_in_the_catalog_with_a_command_that_installs_them() {
        let suggested = suggest_agents(&Catalog::builtin());
        let names: Vec<&str> = suggested.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, SUGGESTED_AGENTS);
        let commands: Vec<&str> = suggested.iter().map(|it| it.remark.as_str()).collect();
        let expected = names.iter().map(|it| format!("jackfield agents install {it}"));
        assert_eq!(commands, expected.collect::<Vec<_>>());
    }
}
