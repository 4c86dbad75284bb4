//! Values that shells complete: agents, sessions and configuration keys as they are now. No daemon is started, and
//! an error gives no candidates.

use crate::{
    hub::{DaemonConnector, list_sessions, load_settings},
    out::{ColorMode, CommandOutput},
    plain_text::to_one_line,
};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, CompletionCandidate},
};
use jackfield_daemon::{Paths, config::keys::CONFIG_KEYS, load_catalog};
use std::collections::BTreeMap;

/// Set by the shell functions that `jackfield completions` prints: the name of the shell.
pub(crate) const VARIABLE: &str = "JACKFIELD_COMPLETE";

const HELP_CHARS_MAX: usize = 60;

/// Answers a shell that asks for candidates, and exits. Does nothing if no shell asks.
pub(crate) fn answer_shell(tree: fn() -> clap::Command) {
    CompleteEnv::with_factory(tree).var(VARIABLE).complete();
}

pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(list_agents)
}

/// The name of each session if it has one, else its id.
pub(crate) fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(list_session_names)
}

/// Keys of config.toml without a placeholder.
pub(crate) fn config_keys() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let candidate = |name: &str, help: &str| candidate(name, help);
        CONFIG_KEYS.iter().map(|it| candidate(it.name, it.meaning)).collect()
    })
}

fn list_agents() -> Vec<CompletionCandidate> {
    let paths = Paths::from_env();
    let mut names: BTreeMap<String, String> =
        load_catalog(&paths).iter().map(|it| (it.id.clone(), it.name.clone())).collect();
    let settings = load_settings(&paths).unwrap_or_default();
    for name in settings.agents.into_keys() {
        names.entry(name).or_insert_with(|| "in config.toml".to_owned());
    }
    names.iter().map(|(name, help)| candidate(name, help)).collect()
}

fn list_session_names() -> Vec<CompletionCandidate> {
    let output = CommandOutput::new(ColorMode::Never, true, 0);
    let connector = DaemonConnector::new(None, &output);
    let Ok(Some(mut conn)) = connector.connect_if_running("complete") else { return Vec::new() };
    let rows = list_sessions(&mut conn).unwrap_or_default();
    let candidates = rows.iter().map(|row| {
        let help =
            format!("{} {} {}", row.agent, row.state, row.title.as_deref().unwrap_or_default());
        candidate(row.name.as_deref().unwrap_or(&row.session_id), &help)
    });
    candidates.collect()
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(to_one_line(help, HELP_CHARS_MAX).into()))
}
