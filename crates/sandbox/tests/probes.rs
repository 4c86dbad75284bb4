//! Every probe works without a sandbox, and has the promised result inside, on both layers.

use crate::fixture::program;
use jackfield_sandbox::check::{ControlRun, LayerCheck, SandboxChecker};
use jackfield_sandbox::plan::EnforcementLayer;
use jackfield_sandbox::probes::{
    ExpectedResult, JudgedProbe, PROBES, ProbeGroup, ProbeOutcome, ProbeVerdict, SandboxProbe,
};
use jackfield_sandbox::profile::{ProfileSet, SandboxProfile};

/// What only root can do without a sandbox, and what some kernels and containers refuse to everyone.
const PRIVILEGED: &[&str] = &[
    "create-device",
    "load-module",
    "packet-socket",
    "raw-socket",
    "trace-process",
    "type-into-terminal",
    "use-bpf",
    "write-kernel-setting",
];

/// A built-in profile without network: the proxy is a part of another crate.
fn profile(name: &str) -> SandboxProfile {
    let set = ProfileSet::parse(&format!("[sandbox.{name}]\nnetwork = \"none\"\n")).unwrap();
    set.find(name).unwrap().clone()
}

fn checker() -> SandboxChecker<'static> {
    SandboxChecker {
        program: program(),
        probes: PROBES.iter().collect(),
        serve_proxy: &|_| panic!("there is no network"),
    }
}

fn names(reports: &[JudgedProbe], verdict: ProbeVerdict) -> Vec<&'static str> {
    reports.iter().filter(|it| it.verdict == verdict).map(|it| it.probe.name).collect()
}

fn run_control() -> ControlRun {
    checker().run_control().unwrap()
}

fn check(name: &str, layer: EnforcementLayer) -> LayerCheck {
    let checked = checker().check_layer(&profile(name), layer, &run_control()).unwrap();
    for report in &checked.reports {
        let JudgedProbe { probe, control, expected, outcome, refused_by, verdict } = report;
        let context = format!("{}: {control:?} {expected:?} {outcome:?}", probe.name);
        assert_ne!(*verdict, ProbeVerdict::NotAsPromised, "{context}");
        if !PRIVILEGED.contains(&probe.name) {
            assert_eq!(*control, ProbeOutcome::Worked, "without a sandbox: {context}");
        }
        let is_refused = matches!(outcome, Some(ProbeOutcome::Refused(_)));
        assert_eq!(is_refused, *expected == Some(ExpectedResult::Refused), "{context}");
        assert_eq!(refused_by.is_some(), is_refused, "the cause is unknown: {context}");
    }
    checked
}

#[test]
fn probes_have_the_promised_results_with_bubblewrap() {
    let workspace = check("workspace", EnforcementLayer::Bubblewrap);
    assert!(!workspace.without_protection);
    check("read-only", EnforcementLayer::Bubblewrap);
}

#[test]
fn probes_have_the_promised_results_with_landlock() {
    let workspace = check("workspace", EnforcementLayer::Landlock);
    assert!(workspace.without_protection);
    let read_only = check("read-only", EnforcementLayer::Landlock);
    assert!(!read_only.without_protection);
}

#[test]
fn process_without_a_sandbox_breaks_every_promise_of_workspace() {
    let (checker, control) = (checker(), run_control());
    let layer = Some(EnforcementLayer::Bubblewrap);
    let judged = checker.judge_control(&profile("workspace"), layer, &control).unwrap();
    let broken = names(&judged.reports, ProbeVerdict::NotAsPromised);
    let is_attack =
        |it: &&SandboxProbe| it.group != ProbeGroup::Work && !PRIVILEGED.contains(&it.name);
    for probe in PROBES.iter().filter(is_attack) {
        assert!(broken.contains(&probe.name), "{} was not noticed", probe.name);
    }
    let open = ProfileSet::built_in().find("open").unwrap().clone();
    let judged = checker.judge_control(&open, None, &control).unwrap();
    assert_eq!(judged.count(ProbeVerdict::NotAsPromised), 0);
}

#[test]
fn permitted_secret_is_read_and_the_rest_stays_refused() {
    let policy = "[sandbox.workspace]\nnetwork = \"none\"\nread = [\"~/.aws\"]\n";
    let set = ProfileSet::parse(policy).unwrap();
    let probes =
        ["read-cloud-credentials", "read-ssh-key"].map(|it| SandboxProbe::find(it).unwrap());
    let checker = SandboxChecker { probes: probes.into(), ..checker() };
    let control = checker.run_control().unwrap();
    for layer in [EnforcementLayer::Bubblewrap, EnforcementLayer::Landlock] {
        let checked = checker.check_layer(set.find("workspace").unwrap(), layer, &control).unwrap();
        let worked = checked.reports.iter().map(|it| it.outcome == Some(ProbeOutcome::Worked));
        assert_eq!(worked.collect::<Vec<_>>(), [true, false], "{layer}");
        assert_eq!(checked.count(ProbeVerdict::AsPromised), 2, "{layer}");
        // The profile without this entry does not promise that.
        let judged = checker.check_layer(&profile("workspace"), layer, &control).unwrap();
        assert_eq!(judged.reports[0].outcome, Some(ProbeOutcome::Refused(sign_of(layer).into())));
    }
}

fn sign_of(layer: EnforcementLayer) -> &'static str {
    match layer {
        EnforcementLayer::Bubblewrap => "ENOENT",
        _ => "EACCES",
    }
}
