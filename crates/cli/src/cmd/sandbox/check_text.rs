//! Prints the result of `jackfield sandbox check`: a line for each attempt, or two on a narrow terminal.

use super::check_json::{describe_error, name_outcome};
use crate::{
    out::{ALERT, BRIGHT, CommandOutput, DIM, DONE, paint},
    plain_text::format_count,
    report::CommandError,
};
use jackfield_daemon::{CheckedLayer, LayerState, ProfileCheck};
use jackfield_protocol::chain;
use jackfield_sandbox::{
    check::LayerCheck,
    plan::EnforcementLayer,
    probes::{ExpectedResult, JudgedProbe, NOTHING_FOUND, ProbeGroup, ProbeOutcome, ProbeVerdict},
};

const NAME_WIDTH: usize = 23;
const ATTEMPT_WIDTH: usize = 44;
/// A narrower terminal gets two lines for each attempt.
const WIDTH_MIN: usize = 118;

pub(super) fn print(
    output: &CommandOutput,
    check: &ProfileCheck,
    is_shown: impl Fn(&JudgedProbe) -> bool,
) -> Result<(), CommandError> {
    let is_wide = output.width().is_none_or(|it| WIDTH_MIN <= it);
    for (index, layer) in check.layers.iter().enumerate() {
        if 0 < index {
            output.print_line("")?;
        }
        output.print_line(&paint(BRIGHT, format_heading(&check.profile, layer)))?;
        for line in format_layer(layer, is_wide, &is_shown) {
            output.print_line(&line)?;
        }
    }
    Ok(())
}

fn format_heading(profile: &str, layer: &CheckedLayer) -> String {
    let name = match layer.layer {
        Some(layer) => format!("profile {profile} on {layer}"),
        None => format!("profile {profile}: no sandbox"),
    };
    match &layer.state {
        LayerState::Checked { version, .. } if !version.is_empty() => format!("{name} ({version})"),
        LayerState::Checked { .. } => name,
        LayerState::Unavailable(_) => format!("{name}: not checked, it does not work here"),
        LayerState::Failed(_) => format!("{name}: FAILED, the sandbox was not started"),
    }
}

fn format_layer(
    layer: &CheckedLayer,
    is_wide: bool,
    is_shown: &impl Fn(&JudgedProbe) -> bool,
) -> Vec<String> {
    match &layer.state {
        LayerState::Checked { check, .. } => format_check(check, is_wide, is_shown),
        LayerState::Unavailable(problem) => {
            vec![format!("  {}", problem.reason), format!("  fix: {}", problem.hint)]
        }
        LayerState::Failed(error) => {
            chain(error).lines().map(|it| format!("  {}", it.trim())).collect()
        }
    }
}

fn format_check(
    check: &LayerCheck,
    is_wide: bool,
    is_shown: &impl Fn(&JudgedProbe) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    if check.without_protection {
        lines.push(
            "  This layer cannot protect files in a writable project, and refuses to start."
                .to_owned(),
        );
        lines.push("  So the profile was checked with `protect_files = false`.".to_owned());
    }
    let mut group: Option<ProbeGroup> = None;
    for report in check.reports.iter().filter(|it| is_shown(it)) {
        if group != Some(report.probe.group) {
            group = Some(report.probe.group);
            lines.push(String::new());
            lines.push(format!("  {}", report.probe.group));
        }
        lines.extend(format_report(report, check.layer, is_wide));
    }
    lines.push(String::new());
    lines.push(format!("  {}", summarize(check)));
    lines
}

/// The verdict, the name, the attempt, what was expected and what happened.
fn format_report(
    report: &JudgedProbe,
    layer: Option<EnforcementLayer>,
    is_wide: bool,
) -> Vec<String> {
    let verdict = match report.verdict {
        ProbeVerdict::AsPromised => paint(DONE, "ok  "),
        ProbeVerdict::NotAsPromised => paint(ALERT, "FAIL"),
        ProbeVerdict::NotApplicable => paint(DIM, "n/a "),
    };
    let (name, attempt) = (report.probe.name, report.probe.attempt);
    let result = describe_result(report, layer);
    if is_wide {
        return vec![format!("  {verdict} {name:<NAME_WIDTH$} {attempt:<ATTEMPT_WIDTH$} {result}")];
    }
    vec![
        format!("  {verdict} {name:<NAME_WIDTH$} {attempt}"),
        paint(DIM, format!("       {:NAME_WIDTH$} {result}", "")),
    ]
}

fn describe_result(report: &JudgedProbe, layer: Option<EnforcementLayer>) -> String {
    let Some(outcome) = &report.outcome else {
        return "not tried: the profile permits it, and it would leave this machine".to_owned();
    };
    if report.verdict == ProbeVerdict::NotApplicable {
        let error = describe_error(&report.control).unwrap_or_default();
        return format!("this machine refuses it anyway ({error})");
    }
    let expected = match report.expected {
        Some(ExpectedResult::Refused) => "refused",
        Some(ExpectedResult::Allowed) | None => "allowed",
    };
    let found = match (outcome, report.refused_by) {
        (ProbeOutcome::Refused(sign), Some(part)) if sign == NOTHING_FOUND => {
            format!("refused by {part}")
        }
        (ProbeOutcome::Refused(sign), Some(part)) => format!("refused by {part} ({sign})"),
        (ProbeOutcome::Refused(sign), None) => format!("refused, cause unknown ({sign})"),
        (ProbeOutcome::Failed(reason), _) => format!("failed: {reason}"),
        (ProbeOutcome::Worked, _) if !is_stopped(report, layer) => {
            "allowed: this layer does not stop it".to_owned()
        }
        (ProbeOutcome::Worked, _) => name_outcome(outcome).to_owned(),
    };
    if found.starts_with(expected) { found } else { format!("{found}, expected {expected}") }
}

/// Whether the layer could refuse it, if the profile did not permit it.
fn is_stopped(report: &JudgedProbe, layer: Option<EnforcementLayer>) -> bool {
    layer.is_none_or(|it| report.probe.refusing_part(it).is_some())
}

fn summarize(check: &LayerCheck) -> String {
    let count = |it| check.count(it);
    let tried = format_count(check.reports.len(), "probe");
    let mut text = format!("{tried}: {} as promised", count(ProbeVerdict::AsPromised));
    let broken = count(ProbeVerdict::NotAsPromised);
    if 0 < broken {
        text = format!("{text}, {broken} NOT AS PROMISED");
    }
    let skipped = count(ProbeVerdict::NotApplicable);
    if 0 < skipped {
        text = format!("{text}, {skipped} not applicable here");
    }
    text
}
