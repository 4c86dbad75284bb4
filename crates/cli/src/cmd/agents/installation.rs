//! Shows a plan, asks for confirmation, carries it out and reports the result.

use super::{ConfiguredAgents, configured::run_until_stopped, live_sessions::list_live_sessions};
use crate::{
    context::CommandContext,
    exit::CliExitCode,
    out::{ALERT, BRIGHT, DIM, DONE, WARNING, paint},
    report::CommandError,
};
use jackfield_agents::{
    install::{InstallError, InstallEvents, InstallPlan, PlanState},
    installed::{InstalledAgents, PackageSource, StoreError},
    probe::DiagnosticReason,
};
use jackfield_catalog::AgentSpec;
use std::io;

pub(super) struct AgentInstallation<'a> {
    context: &'a CommandContext,
    agents: ConfiguredAgents,
    installed: InstalledAgents,
}

impl AgentInstallation<'_> {
    pub(super) fn new(context: &CommandContext, agents: ConfiguredAgents) -> AgentInstallation<'_> {
        AgentInstallation { context, agents, installed: context.daemon.paths().installed_agents() }
    }

    /// Asks the registry for the version, or for the newest one.
    pub(super) fn resolve_plan(
        &self,
        spec: &AgentSpec,
        version: Option<&str>,
    ) -> Result<InstallPlan, CommandError> {
        let locations = &self.agents.survey.locations;
        let resolving = InstallPlan::resolve(spec, version, &self.installed, locations);
        run_until_stopped("the package registry", resolving)?.map_err(|it| install_error(&it))
    }

    /// Prints everything that will be run.
    pub(super) fn print_plan(&self, plan: &InstallPlan) -> Result<(), CommandError> {
        let print = |name: &str, value: &str| {
            let line = format!("  {} {value}", paint(DIM, format!("{name:<9}")));
            self.context.output.print_line(&line)
        };
        let title = paint(BRIGHT, format!("{} {}", plan.agent(), plan.version()));
        let change = match &plan.state {
            PlanState::Replaces(earlier) => format!("{title} replaces {earlier}"),
            PlanState::New | PlanState::Current => title,
        };
        self.context.output.print_line(&change)?;
        for package in &plan.packages {
            let (source, name) = (package.source.name(), &package.name);
            let (version, integrity) = (&package.version, &package.integrity);
            print("package", &format!("{name} {version} from {source}, {integrity}"))?;
        }
        print("folder", &plan.folder.display().to_string())?;
        print("programs", &plan.bins.join(", "))?;
        let scripts = match &plan.with_scripts[..] {
            [] => "not run".to_owned(),
            names => format!("those of {} are run: it does not work without", names.join(", ")),
        };
        print("scripts", &scripts)?;
        if plan.commands.is_empty() {
            print("runs", "nothing: this version is in its folder")?;
        }
        plan.commands.iter().try_for_each(|it| print("runs", &it.command_line()))?;
        if plan.packages[0].source == PackageSource::Archive && !plan.commands.is_empty() {
            print("unpacks", "the archive, if its checksum is the one above")?;
        }
        Ok(())
    }

    /// Fails unless the user agrees.
    pub(super) fn confirm(&self, is_confirmed: bool, what: &str) -> Result<(), CommandError> {
        if is_confirmed {
            return Ok(());
        }
        if !self.context.output.can_prompt_user() {
            let message = format!("confirmation is required to {what}");
            let hint = "pass `--yes` to confirm, or `--dry-run` to print the commands only";
            return Err(CommandError::usage(message, hint));
        }
        self.context.output.print_question(&format!("{}? [y/N]", paint(ALERT, what)));
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.map_err(|source| CommandError::local("cannot read the answer", source))?;
        if matches!(line.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(CommandError::ChangeDeclined)
        }
    }

    /// Installs, removes versions that are no longer needed, and queries the program.
    pub(super) fn execute_plan(&mut self, plan: &InstallPlan) -> Result<(), CommandError> {
        let locations = self.agents.survey.locations.clone();
        let progress = PrintedProgress { context: self.context, agent: plan.agent() };
        let executing = plan.execute(&self.installed, &locations, &progress);
        let record = run_until_stopped("the package manager", executing)?
            .map_err(|it| install_error(&it))?;
        let (agent, version) = (plan.agent(), record.version());
        let line = format!("{} {agent} {version}", paint(DONE, "installed"));
        self.context.output.print_note(&line);
        self.remove_unused(agent)?;
        self.report_protocol(agent)
    }

    /// Removes versions other than the current one and the one before, unless a session may use one of them.
    fn remove_unused(&self, agent: &str) -> Result<(), CommandError> {
        let is_unused = |it: &Vec<String>| it.is_empty();
        if !list_live_sessions(self.context, &self.agents, agent).is_ok_and(|it| is_unused(&it)) {
            return Ok(());
        }
        let error = |it: StoreError| install_error(&it.into());
        let removed = self.installed.remove_unused_versions(agent).map_err(error)?;
        if !removed.is_empty() {
            let line = format!("removed {agent} {}", removed.join(", "));
            self.context.output.print_note(&paint(DIM, line));
        }
        Ok(())
    }

    /// Says whether the agent can be used: whether it speaks ACP, and is logged in.
    fn report_protocol(&mut self, agent: &str) -> Result<(), CommandError> {
        let Some(spec) = self.agents.survey.catalogue.get(agent).cloned() else { return Ok(()) };
        self.agents.probe(self.context, vec![spec.clone()], None)?;
        let status = self.agents.survey.status(&spec);
        let is_relevant = |it: DiagnosticReason| {
            matches!(it, DiagnosticReason::LaunchVariantFailed | DiagnosticReason::AuthMissing)
        };
        for problem in status.diagnostics.iter().filter(|it| is_relevant(it.reason)) {
            let line = format!("{} {}", paint(WARNING, "warning:"), problem.message);
            self.context.output.print_note(&line);
            self.context.output.print_note(&format!("  fix: {}", problem.fix));
        }
        let next = format!("next: `jackfield run -a {agent} \"What does this project do?\"`");
        self.context.output.print_note(&next);
        Ok(())
    }
}

/// Prints the progress of a change to an agent.
pub(super) struct PrintedProgress<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) agent: &'a str,
}

impl InstallEvents for PrintedProgress<'_> {
    fn on_wait(&self) {
        let line = format!("waiting for another command that changes `{}`", self.agent);
        self.context.output.print_note(&line);
    }

    fn on_command(&self, command_line: &str) {
        self.context.output.print_note(&paint(DIM, format!("running {command_line}")));
    }
}

/// The error of a command for an error of an installation.
pub(super) fn install_error(error: &InstallError) -> CommandError {
    let exit = match error {
        InstallError::NotOffered { .. }
        | InstallError::InvalidVersion { .. }
        | InstallError::OtherVersion { .. } => CliExitCode::Usage,
        InstallError::Store(StoreError::NotInstalled { .. } | StoreError::NoPrevious { .. }) => {
            CliExitCode::NotFound
        }
        _ => CliExitCode::Failed,
    };
    let (what, hint) = (error.to_string(), error.hint());
    let source = std::error::Error::source(error).map(ToString::to_string);
    match source {
        Some(source) => CommandError::Local { what, source: source.into(), exit, hint },
        None => CommandError::Failed { what, exit, hint },
    }
}
