//! The agent of a command that names none: the configured one, or the only one that is installed.

use super::{AgentChoice, DaemonConnector, EndpointAddress, has_agent_mark, load_settings};
use crate::report::CommandError;
use jackfield_agents::find::{choose_variant, find_program};
use jackfield_daemon::{Paths, Settings, environment, load_catalog};
use std::collections::BTreeSet;

/// Jackfield's own agent, which is always there. It is chosen only if no other agent is installed.
pub(crate) const OWN_AGENT: &str = "chat";

/// Names the agent of a new session if the command does not. A daemon on another machine has other agents, and a client
/// below an agent may not choose one: there, the daemon chooses.
pub(crate) fn with_default_agent(
    choice: AgentChoice,
    daemon: &DaemonConnector,
) -> Result<AgentChoice, CommandError> {
    let is_remote = matches!(daemon.address(), EndpointAddress::Tcp(_));
    if choice != AgentChoice::Configured || is_remote || has_agent_mark() {
        return Ok(choice);
    }
    choose_default_agent(daemon).map(AgentChoice::by_name)
}

/// The default agent, or the only installed one. The error lists what is installed.
fn choose_default_agent(daemon: &DaemonConnector) -> Result<String, CommandError> {
    let settings = load_settings(daemon.paths())?;
    if let Some(name) = settings.default_agent {
        return Ok(name);
    }
    let mut found = find_installed_agents(daemon.paths(), &settings);
    let has_own = found.remove(OWN_AGENT);
    match found.len() {
        0 if has_own => Ok(OWN_AGENT.to_owned()),
        1 => Ok(found.pop_first().unwrap_or_default()),
        0 => Err(CommandError::usage(
            "no agent was named, and none is installed",
            "`jackfield agents` lists the agents to install; or pass the command of an agent after `--`",
        )),
        _ => {
            let mut names: Vec<String> = found.into_iter().map(|it| format!("`{it}`")).collect();
            names.extend(has_own.then(|| format!("`{OWN_AGENT}`")));
            let message =
                format!("no agent was named, and several are installed: {}", names.join(", "));
            let example = names[0].trim_matches('`');
            let hint = format!(
                "name one, for example `{example}`, or run `jackfield config set default_agent {example}`"
            );
            Err(CommandError::usage(message, hint))
        }
    }
}

/// The names of the agents whose program exists.
pub(crate) fn find_installed_agents(paths: &Paths, settings: &Settings) -> BTreeSet<String> {
    let catalog = load_catalog(paths);
    let locations = environment::program_locations(paths);
    let commands =
        settings.agents.iter().filter_map(|(name, it)| Some((name, it.command.as_ref()?)));
    let is_found = |command: &[String]| find_program(&command[..1], None, &locations).is_ok();
    let configured =
        commands.filter(|(_, it)| !it.is_empty() && is_found(it)).map(|it| it.0.clone());
    let specs = catalog.iter().filter(|it| choose_variant(it, &locations).is_ok());
    configured.chain(specs.map(|it| it.id.clone())).collect()
}
