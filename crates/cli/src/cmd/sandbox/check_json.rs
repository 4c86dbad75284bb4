//! The result of `jackfield sandbox check` for programs.

use jackfield_daemon::{CheckedLayer, LayerState, ProfileCheck};
use jackfield_protocol::chain;
use jackfield_sandbox::probes::{JudgedProbe, ProbeOutcome};
use serde_json::{Value, json};

pub(super) fn format(check: &ProfileCheck) -> Value {
    let layers: Vec<Value> = check.layers.iter().map(format_layer).collect();
    json!({ "profile": check.profile, "layers": layers })
}

fn format_layer(layer: &CheckedLayer) -> Value {
    let name = layer.layer.map(|it| json!(it));
    match &layer.state {
        LayerState::Checked { version, check } => json!({
            "layer": name, "state": "checked", "version": version,
            "withoutProtectedFiles": check.without_protection,
            "probes": check.reports.iter().map(format_report).collect::<Vec<_>>(),
        }),
        LayerState::Unavailable(problem) => json!({
            "layer": name, "state": "unavailable", "reason": problem.reason, "hint": problem.hint,
        }),
        LayerState::Failed(error) => json!({
            "layer": name, "state": "failed", "reason": chain(error),
        }),
    }
}

fn format_report(report: &JudgedProbe) -> Value {
    json!({
        "name": report.probe.name,
        "group": report.probe.group,
        "attempt": report.probe.attempt,
        "expected": report.expected,
        "result": report.outcome.as_ref().map(name_outcome),
        "error": report.outcome.as_ref().and_then(describe_error),
        "refusedBy": report.refused_by,
        "withoutSandbox": name_outcome(&report.control),
        "errorWithoutSandbox": describe_error(&report.control),
        "verdict": report.verdict,
    })
}

pub(super) fn name_outcome(outcome: &ProbeOutcome) -> &'static str {
    match outcome {
        ProbeOutcome::Worked => "allowed",
        ProbeOutcome::Refused(_) => "refused",
        ProbeOutcome::Failed(_) => "failed",
    }
}

pub(super) fn describe_error(outcome: &ProbeOutcome) -> Option<&str> {
    match outcome {
        ProbeOutcome::Worked => None,
        ProbeOutcome::Refused(text) | ProbeOutcome::Failed(text) => Some(text),
    }
}
