//! Runs the program with the attempts, and collects what it prints.

use super::probe_fixture::ProbeFixture;
use crate::os::PROBE_SUBCOMMAND;
use crate::plan::{EnforcementLayer, NetworkPlan, PathAccess, SandboxPlan};
use crate::planning::{DiskLookup, PlanError, make_plan};
use crate::probes::{
    JudgedProbe, OutcomeLine, ProbeOutcome, ProbeRequest, ProbeVerdict, SECRET_VARIABLE,
    SandboxProbe, expected_result,
};
use crate::profile::SandboxProfile;
use crate::subcommand::run_args;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The attempts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("failed to prepare the files and servers of the check")]
    Prepare(#[source] io::Error),
    #[error("the profile cannot be used for the check")]
    Plan(#[source] PlanError),
    #[error("failed to serve the network proxy of the check")]
    Proxy(#[source] io::Error),
    #[error("failed to start `{}`", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("{message}")]
    NotStarted { message: String },
    #[error("the probe program ended early: {message}")]
    Incomplete { message: String },
}

/// The attempts to make, and the program that makes them.
pub struct SandboxChecker<'a> {
    /// It has the subcommands of the sandbox.
    pub program: PathBuf,
    pub probes: Vec<&'static SandboxProbe>,
    /// Serves the proxy of a profile on a Unix socket, until this process ends.
    pub serve_proxy: &'a dyn Fn(&Path) -> io::Result<()>,
}

/// The outcomes without a sandbox.
#[derive(Debug, Clone)]
pub struct ControlRun(BTreeMap<String, ProbeOutcome>);

/// The judged attempts of one profile on one layer.
#[derive(Debug, Clone)]
pub struct LayerCheck {
    /// `None` for a profile that limits nothing.
    pub layer: Option<EnforcementLayer>,
    /// The layer cannot keep files read-only in a writable directory and refuses to start such a session, so the profile
    /// was checked with `protect_files = false`.
    pub without_protection: bool,
    pub reports: Vec<JudgedProbe>,
}

impl LayerCheck {
    pub fn count(&self, verdict: ProbeVerdict) -> usize {
        self.reports.iter().filter(|it| it.verdict == verdict).count()
    }
}

impl SandboxChecker<'_> {
    pub fn run_control(&self) -> Result<ControlRun, CheckError> {
        let fixture = ProbeFixture::create(&self.program).map_err(CheckError::Prepare)?;
        let mut command = Command::new(&self.program);
        command.arg(PROBE_SUBCOMMAND);
        Ok(ControlRun(self.run(command, &fixture, &self.probes, false)?))
    }

    /// Judges the attempts without a sandbox by the promises of a profile.
    pub fn judge_control(
        &self,
        profile: &SandboxProfile,
        layer: Option<EnforcementLayer>,
        control: &ControlRun,
    ) -> Result<LayerCheck, CheckError> {
        let fixture = ProbeFixture::create(&self.program).map_err(CheckError::Prepare)?;
        Ok(self.judge(profile, layer, &fixture, control, &control.0))
    }

    /// Makes the attempts inside the sandbox of a profile.
    pub fn check_layer(
        &self,
        profile: &SandboxProfile,
        layer: EnforcementLayer,
        control: &ControlRun,
    ) -> Result<LayerCheck, CheckError> {
        let fixture = ProbeFixture::create(&self.program).map_err(CheckError::Prepare)?;
        let facts = fixture.launch_facts(layer, &self.program);
        let plan_of = |profile: &SandboxProfile| {
            make_plan(profile, &facts, &DiskLookup).map_err(CheckError::Plan)
        };
        let unprotected = SandboxProfile { protect_files: false, ..profile.clone() };
        let mut plan = plan_of(profile)?;
        let without_protection = layer == EnforcementLayer::Landlock
            && profile.protect_files
            && has_rule_below_writable(&plan);
        let profile = if without_protection {
            plan = plan_of(&unprotected)?;
            &unprotected
        } else {
            profile
        };
        if let NetworkPlan::Proxy { socket } = &plan.network {
            (self.serve_proxy)(socket).map_err(CheckError::Proxy)?;
        }
        let expected =
            |it: &&&SandboxProbe| expected_result(it, profile, Some(layer), &fixture.targets);
        let probes: Vec<_> =
            self.probes.iter().filter(|it| expected(it).is_some()).copied().collect();
        let mut command = Command::new(&self.program);
        command.args(run_args(&plan)).arg(&self.program).arg(PROBE_SUBCOMMAND);
        let outcomes = self.run(command, &fixture, &probes, true)?;
        let judged = self.judge(profile, Some(layer), &fixture, control, &outcomes);
        Ok(LayerCheck { without_protection, ..judged })
    }

    fn judge(
        &self,
        profile: &SandboxProfile,
        layer: Option<EnforcementLayer>,
        fixture: &ProbeFixture,
        control: &ControlRun,
        outcomes: &BTreeMap<String, ProbeOutcome>,
    ) -> LayerCheck {
        let missing = || ProbeOutcome::Failed("it was not tried".to_owned());
        let judge = |probe: &&'static SandboxProbe| {
            let control = control.0.get(probe.name).cloned().unwrap_or_else(missing);
            let expected = expected_result(probe, profile, layer, &fixture.targets);
            let outcome = outcomes.get(probe.name).cloned();
            JudgedProbe::new(probe, layer, control, expected, outcome)
        };
        let reports = self.probes.iter().map(judge).collect();
        LayerCheck { layer, without_protection: false, reports }
    }

    fn run(
        &self,
        mut command: Command,
        fixture: &ProbeFixture,
        probes: &[&'static SandboxProbe],
        is_sandboxed: bool,
    ) -> Result<BTreeMap<String, ProbeOutcome>, CheckError> {
        let request = ProbeRequest {
            names: probes.iter().map(|it| it.name.to_owned()).collect(),
            targets: fixture.targets.clone(),
            is_sandboxed,
        };
        let request = serde_json::to_string(&request).expect("a request has texts and numbers");
        command.arg(request).current_dir(&fixture.targets.project).stdin(Stdio::null());
        command.env("HOME", &fixture.targets.home).env(SECRET_VARIABLE, &fixture.targets.secret);
        let output = command.output();
        let output =
            output.map_err(|source| CheckError::Start { program: self.program.clone(), source })?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let lines = lines.lines().filter_map(|it| serde_json::from_str::<OutcomeLine>(it).ok());
        let outcomes: BTreeMap<_, _> = lines.map(|it| (it.name, it.outcome)).collect();
        let message = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match outcomes.len() {
            0 if !probes.is_empty() => Err(CheckError::NotStarted { message: message() }),
            count if count < probes.len() => Err(CheckError::Incomplete { message: message() }),
            _ => Ok(outcomes),
        }
    }
}

/// Whether something in a writable directory is less than writable.
fn has_rule_below_writable(plan: &SandboxPlan) -> bool {
    let writable = || plan.paths.iter().filter(|it| it.access == PathAccess::Writable);
    let others = plan.paths.iter().filter(|it| it.access != PathAccess::Writable);
    others.into_iter().any(|rule| writable().any(|it| rule.path.starts_with(&it.path)))
}
