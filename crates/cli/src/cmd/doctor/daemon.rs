//! Checks the daemon: whether it answers, its version, and the agents that a dead one has left.

use super::{
    super::daemon::request_status, check_context::CheckContext, finding::DoctorFinding,
    journal::RunningDaemon,
};
use crate::{context::CommandContext, plain_text::format_count, report::CommandError};
use jackfield_transport::EndpointAddress;
use serde_json::Value;
use std::{error::Error as _, fs, path::Path};

/// What the daemon answered.
pub(super) struct DaemonContact {
    answer: Result<Option<DaemonAnswer>, CommandError>,
    /// It listens, or holds the lock of the state directory.
    pub(super) is_running: bool,
}

struct DaemonAnswer {
    status: Value,
    pid: Option<i32>,
    address: EndpointAddress,
}

impl DaemonContact {
    /// The daemon, if it answered.
    pub(super) fn running(&self) -> Option<RunningDaemon<'_>> {
        let answer = self.answer.as_ref().ok()?.as_ref()?;
        Some(RunningDaemon { status: &answer.status, pid: answer.pid })
    }
}

pub(super) fn contact_daemon(context: &CommandContext) -> DaemonContact {
    let answer = context.daemon.connect_if_running("doctor").and_then(|conn| {
        let Some(mut conn) = conn else { return Ok(None) };
        // The daemon may listen in another runtime directory than that of this environment.
        let address = conn.peer_address().unwrap_or_else(|| context.daemon.address());
        let status = request_status(&mut conn)?;
        Ok(Some(DaemonAnswer { status, pid: conn.peer_pid(), address }))
    });
    DaemonContact { answer, is_running: context.daemon.is_running() }
}

pub(super) fn check_daemon(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    vec![match &context.daemon().answer {
        Ok(None) => DoctorFinding::ok("not running; it is started on first use"),
        Ok(Some(DaemonAnswer { status, pid, address })) => {
            let version = status["version"].as_str().unwrap_or("unknown");
            let pid = pid.map(|it| format!(", pid {it}")).unwrap_or_default();
            judge_version(version, env!("CARGO_PKG_VERSION"), &pid, &address.to_string())
        }
        Err(error) => {
            let cause = error.source().map(|it| format!(": {it}"));
            let found = format!("{error}{}", cause.unwrap_or_default());
            let restart = || "jackfield daemon restart".to_owned();
            DoctorFinding::problem(found, error.lockout_hint().unwrap_or_else(restart))
        }
    }]
}

fn judge_version(version: &str, own_version: &str, pid: &str, address: &str) -> DoctorFinding {
    if version == own_version {
        return DoctorFinding::ok(format!("version {version}{pid}, on {address}"));
    }
    let found = format!("version {version}{pid}, but this command has version {own_version}");
    DoctorFinding::problem(found, "jackfield daemon stop")
}

pub(super) fn check_ledger(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let agents = count_recorded_agents(&context.paths.ledger());
    vec![judge_ledger(agents, context.daemon().is_running)]
}

fn count_recorded_agents(ledger: &Path) -> usize {
    let entries = fs::read_dir(ledger).into_iter().flatten().flatten();
    entries.filter(|it| it.path().extension().is_some_and(|it| it == "json")).count()
}

/// Agents that are recorded as running although no daemon runs.
fn judge_ledger(agents: usize, is_running: bool) -> DoctorFinding {
    let count = format_count(agents, "agent");
    match (agents, is_running) {
        (0, _) => DoctorFinding::ok("no agents are recorded as running"),
        (_, true) => DoctorFinding::ok(format!("recorded as running: {count}")),
        (_, false) => DoctorFinding::problem(
            format!("{count} left over from a dead daemon"),
            "jackfield daemon start, which kills them",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn daemon_of_another_version_is_a_problem() {
        assert_eq!(judge_version("1.2.3", "1.2.3", "", "unix:///s").verdict, CheckVerdict::Ok);
        let finding = judge_version("1.2.2", "1.2.3", ", pid 7", "unix:///s");
        assert_eq!(finding.found, "version 1.2.2, pid 7, but this command has version 1.2.3");
        assert_eq!(finding.fix.as_deref(), Some("jackfield daemon stop"));
    }

    #[test]
    fn agents_without_a_daemon_are_a_problem() {
        assert_eq!(judge_ledger(0, false).verdict, CheckVerdict::Ok);
        assert_eq!(judge_ledger(2, true).verdict, CheckVerdict::Ok);
        assert_eq!(judge_ledger(1, false).found, "1 agent left over from a dead daemon");
    }
}
