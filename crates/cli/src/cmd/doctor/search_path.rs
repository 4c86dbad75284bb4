//! Checks which agents are found only because of the `PATH` of this shell: an editor that is started from a desktop, and
//! a unit of systemd, have a shorter one.

use super::{check_context::CheckContext, finding::DoctorFinding};
use crate::{hub::OWN_AGENT, plain_text::quote_path};
use jackfield_agents::find::{ProgramLocations, choose_variant};
use std::path::PathBuf;

/// The `PATH` of programs that no shell has started.
const DESKTOP_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

pub(super) fn check_path(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let survey = context.survey();
    let env = survey.locations.env().filter(|it| it.0 != "PATH");
    let desktop_path = ("PATH".to_owned(), DESKTOP_PATH.to_owned());
    let desktop = ProgramLocations::new(env.chain([desktop_path]))
        .with_installed(context.paths.installed_agents());
    let specs = survey.catalogue.iter().filter(|it| it.id != OWN_AGENT);
    let hidden = specs.filter_map(|spec| {
        let here = choose_variant(spec, &survey.locations).ok()?;
        let is_hidden = choose_variant(spec, &desktop).is_err();
        is_hidden.then(|| HiddenAgent { id: spec.id.clone(), program: here.found.path })
    });
    vec![judge_hidden(&hidden.collect::<Vec<_>>())]
}

/// An agent that only this shell finds.
struct HiddenAgent {
    id: String,
    program: PathBuf,
}

fn judge_hidden(hidden: &[HiddenAgent]) -> DoctorFinding {
    let Some(first) = hidden.first() else {
        return DoctorFinding::ok("editors that are started from a desktop find the same agents");
    };
    let names: Vec<&str> = hidden.iter().map(|it| it.id.as_str()).collect();
    let found = format!("found only with the PATH of this shell: {}", names.join(", "));
    let program = quote_path(&first.program);
    let fix = format!("for editors and systemd, link each: ln -s {program} ~/.local/bin/");
    DoctorFinding::warning(found, fix)
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn agents_that_only_this_shell_finds_are_a_warning() {
        assert_eq!(judge_hidden(&[]).verdict, CheckVerdict::Ok);
        let agent = |id: &str| HiddenAgent { id: id.into(), program: format!("/opt/{id}").into() };
        let finding = judge_hidden(&[agent("codex"), agent("pi")]);
        assert_eq!(finding.found, "found only with the PATH of this shell: codex, pi");
        assert!(finding.fix.unwrap().ends_with("ln -s /opt/codex ~/.local/bin/"));
    }
}
