//! `jackfield agents install` and `update`: put agents into folders of their own, and use them.

use super::{ConfiguredAgents, installation::AgentInstallation};
use crate::{complete, context::CommandContext, env, report::CommandError};
use clap::Args;
use jackfield_agents::install::{InstallPlan, PlanState};
use jackfield_catalog::AgentSpec;

/// Install an agent into a folder of its own, for Jackfield only
///
/// The package comes from the registry that npm or pip is configured to use, or it is an archive whose
/// checksum is in the agent's file. The version is exact and stays until `agents update`; the agent starts without a network afterwards. Programs that are
/// installed elsewhere are not changed, and this one takes precedence over them.
///
/// What will be run is printed first, and on a terminal you are asked for confirmation. Install scripts
/// of packages are not run, except for agents that do not work without them; the list says so. Agents
/// that their vendor distributes as a script for a shell are refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents install gemini
  $ jackfield agents install codex@0.130.0
  $ jackfield agents install claude --dry-run
  $ jackfield agents install vibe --yes")]
pub(super) struct InstallAgentCommand {
    /// The agent's name in the catalog, and its version unless it is the newest: `codex@0.130.0`
    #[arg(value_name = "NAME[@VERSION]", add = complete::agents())]
    agent: String,

    #[command(flatten)]
    confirmation: ConfirmationOptions,
}

/// Update agents that `agents install` has installed
///
/// The version before is kept for `agents rollback`; older ones are removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents update
  $ jackfield agents update gemini
  $ jackfield agents update --yes")]
pub(super) struct UpdateAgentsCommand {
    /// The agents to update [default: all that `agents install` has installed]
    #[arg(value_name = "NAME", add = complete::agents())]
    agents: Vec<String>,

    #[command(flatten)]
    confirmation: ConfirmationOptions,
}

#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ConfirmationOptions {
    /// Only print what would be run
    #[arg(long, env = env::DRY_RUN, hide_env_values = true, value_parser = env::flag_parser())]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag_parser())]
    yes: bool,
}

impl InstallAgentCommand {
    pub(super) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("agents install")?;
        let agents = ConfiguredAgents::new(context)?;
        let (name, version) = match self.agent.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (&*self.agent, None),
        };
        let spec = agents.find_spec(name)?.clone();
        let mut installation = AgentInstallation::new(context, agents);
        let plan = installation.resolve_plan(&spec, version)?;
        if plan.state == PlanState::Current {
            let version = plan.version();
            context.output.print_note(&format!("`{}` {version} is already in use", spec.id));
            return Ok(());
        }
        installation.print_plan(&plan)?;
        if self.confirmation.dry_run {
            return Ok(());
        }
        installation.confirm(self.confirmation.yes, &format!("install {}", spec.id))?;
        installation.execute_plan(&plan)
    }
}

impl UpdateAgentsCommand {
    pub(super) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("agents update")?;
        let agents = ConfiguredAgents::new(context)?;
        let specs = self.select_specs(&agents, context)?;
        let mut installation = AgentInstallation::new(context, agents);
        let mut plans: Vec<InstallPlan> = Vec::new();
        for spec in &specs {
            let plan = installation.resolve_plan(spec, None)?;
            if plan.state == PlanState::Current {
                let version = plan.version();
                context.output.print_note(&format!("`{}` {version} is the newest", spec.id));
            } else {
                installation.print_plan(&plan)?;
                plans.push(plan);
            }
        }
        if plans.is_empty() || self.confirmation.dry_run {
            return Ok(());
        }
        let names: Vec<&str> = plans.iter().map(InstallPlan::agent).collect();
        installation.confirm(self.confirmation.yes, &format!("update {}", names.join(", ")))?;
        plans.iter().try_for_each(|it| installation.execute_plan(it))
    }

    /// The named agents, or all that are installed.
    fn select_specs(
        &self,
        agents: &ConfiguredAgents,
        context: &CommandContext,
    ) -> Result<Vec<AgentSpec>, CommandError> {
        let installed = context.daemon.paths().installed_agents();
        if self.agents.is_empty() {
            let names = installed.list_agents();
            if names.is_empty() {
                let note = "nothing to update: `jackfield agents install NAME` installs an agent";
                context.output.print_note(note);
            }
            // An agent whose file was removed cannot be updated.
            let known = names.iter().filter_map(|it| agents.survey.catalogue.get(it));
            return Ok(known.cloned().collect());
        }
        let find = |name: &String| {
            let spec = agents.find_spec(name)?;
            match installed.find_current(&spec.id) {
                Some(_) => Ok(spec.clone()),
                None => Err(super::installation::install_error(
                    &installed.not_installed(&spec.id).into(),
                )),
            }
        };
        self.agents.iter().map(find).collect()
    }
}
