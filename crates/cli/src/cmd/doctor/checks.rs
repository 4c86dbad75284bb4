//! The list of all checks. Their names are in scripts and in docs/doctor.md.

use super::{
    agents::check_agents,
    check_context::CheckContext,
    clock::check_clock,
    config::check_config,
    daemon::{check_daemon, check_ledger},
    disk::check_disk,
    finding::DoctorFinding,
    folders::{check_runtime, check_socket, check_state, check_token},
    journal::check_journal,
    limits::{check_files, check_inotify, check_processes},
    login_session::{check_cgroup, check_linger},
    node::check_node,
    sandbox::check_sandbox,
    search_path::check_path,
    terminal::{check_locale, check_terminal},
    tls::check_tls,
    wsl::check_wsl,
};

/// A check has a finding for each thing that it looks at, and none if it does not apply to this system.
pub(super) type RunCheck = fn(&CheckContext<'_>) -> Vec<DoctorFinding>;

/// All checks with their names, in the order in which they are run.
pub(super) const CHECKS: &[(&str, RunCheck)] = &[
    ("config", check_config),
    ("state", check_state),
    ("runtime", check_runtime),
    ("socket", check_socket),
    ("token", check_token),
    ("daemon", check_daemon),
    ("journal", check_journal),
    ("ledger", check_ledger),
    ("disk", check_disk),
    ("files", check_files),
    ("processes", check_processes),
    ("inotify", check_inotify),
    ("cgroup", check_cgroup),
    ("sandbox", check_sandbox),
    ("linger", check_linger),
    ("locale", check_locale),
    ("terminal", check_terminal),
    ("wsl", check_wsl),
    ("path", check_path),
    ("node", check_node),
    (AGENTS, check_agents),
    ("tls", check_tls),
    ("clock", check_clock),
];

/// The check that starts agents, which takes seconds.
pub(super) const AGENTS: &str = "agents";

pub(super) fn check_names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|it| it.0)
}
