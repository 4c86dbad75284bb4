//! `jackfield agents rollback` and `remove`: use the version before, or remove all versions.

use super::{
    ConfiguredAgents,
    configured::run_until_stopped,
    installation::{AgentInstallation, PrintedProgress, install_error},
    live_sessions::list_live_sessions,
};
use crate::{
    complete,
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{DONE, WARNING, paint},
    report::CommandError,
};
use clap::Args;
use jackfield_agents::{
    install::InstallEvents as _,
    installed::{AgentLock, InstalledAgents, StoreError},
};

/// Use the version of an agent that was in use before the last update
///
/// Sessions that are running keep their version. A second `rollback` undoes the first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents rollback gemini")]
pub(super) struct RollbackAgentCommand {
    /// The agent's name
    #[arg(value_name = "NAME", add = complete::agents())]
    agent: String,
}

/// Remove an agent that `agents install` has installed, with all its versions
///
/// Programs that are installed elsewhere are not changed, and are used again if there are any. An agent
/// with a running session is not removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents remove gemini
  $ jackfield agents remove gemini --yes")]
pub(super) struct RemoveAgentCommand {
    /// The agent's name
    #[arg(value_name = "NAME", add = complete::agents())]
    agent: String,

    /// Do not ask for confirmation
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag_parser())]
    yes: bool,
}

impl RollbackAgentCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("agents rollback")?;
        let agents = ConfiguredAgents::new(context)?;
        let agent = agents.survey.catalogue.resolve_id(&self.agent);
        let installed = context.daemon.paths().installed_agents();
        if installed.selection(agent).is_none() {
            return Err(store_error(installed.not_installed(agent)));
        }
        let _lock = lock_agent(context, &installed, agent)?;
        let selection = installed.select_previous(agent).map_err(store_error)?;
        let (current, previous) = (&selection.current, selection.previous.unwrap_or_default());
        let done = paint(DONE, "rolled back");
        context.output.print_note(&format!("{done} {agent} from {previous} to {current}"));
        Ok(())
    }
}

impl RemoveAgentCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("agents remove")?;
        let agents = ConfiguredAgents::new(context)?;
        let agent = agents.survey.catalogue.resolve_id(&self.agent).to_owned();
        let installed = context.daemon.paths().installed_agents();
        let versions = installed.list_versions(&agent);
        if versions.is_empty() {
            return Err(store_error(installed.not_installed(&agent)));
        }
        check_unused(context, &agents, &agent)?;
        let folder = installed.agent_dir(&agent);
        let line = format!("{} with {agent} {}", folder.display(), versions.join(", "));
        context.output.print_line(&line)?;
        AgentInstallation::new(context, agents).confirm(self.yes, &format!("remove {agent}"))?;
        let _lock = lock_agent(context, &installed, &agent)?;
        installed.remove_agent(&agent).map_err(store_error)?;
        context.output.print_note(&format!("{} {agent}", paint(DONE, "removed")));
        Ok(())
    }
}

/// Fails if a session of the daemon has a process of this agent, which may still load files from the folder.
fn check_unused(
    context: &CommandContext,
    agents: &ConfiguredAgents,
    agent: &str,
) -> Result<(), CommandError> {
    let sessions = match list_live_sessions(context, agents, agent) {
        Ok(sessions) => sessions,
        Err(error) => {
            let line = format!("whether a session uses `{agent}` is unknown: {error}");
            context.output.print_note(&format!("{} {line}", paint(WARNING, "warning:")));
            return Ok(());
        }
    };
    let Some(first) = sessions.first() else { return Ok(()) };
    Err(CommandError::Failed {
        what: format!("`{agent}` is in use by session {}", sessions.join(", ")),
        exit: CliExitCode::Failed,
        hint: format!("close the session first: `jackfield sessions close {first}`"),
    })
}

fn lock_agent(
    context: &CommandContext,
    installed: &InstalledAgents,
    agent: &str,
) -> Result<AgentLock, CommandError> {
    let progress = PrintedProgress { context, agent };
    let locking = installed.lock(agent, || progress.on_wait());
    run_until_stopped("another command", locking)?.map_err(store_error)
}

fn store_error(error: StoreError) -> CommandError {
    install_error(&error.into())
}
