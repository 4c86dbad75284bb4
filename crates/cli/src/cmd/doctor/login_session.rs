//! Checks what the system does with processes of this user: whether they may be grouped, and what ends at logout.

use super::{check_context::CheckContext, finding::DoctorFinding};
use jackfield_agents::ProcessLedger;
use std::path::Path;

/// Exists while systemd manages the system.
const SYSTEMD: &str = "/run/systemd/system";
/// Has a file for each user whose services run without a login.
const LINGER: &str = "/var/lib/systemd/linger";
/// The runtime directories that logind removes when a user logs out.
const USER_RUNTIME: &str = "/run/user";

pub(super) fn check_cgroup(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    if !Path::new("/proc/self/cgroup").exists() {
        return Vec::new();
    }
    vec![describe_groups(ProcessLedger::has_control_groups())]
}

/// Neither is a defect: the guard of an agent ends its processes in both cases.
fn describe_groups(is_delegated: bool) -> DoctorFinding {
    DoctorFinding::ok(if is_delegated {
        "each agent gets a control group, which the kernel ends as a whole"
    } else {
        "no control groups: a guard ends the processes of an agent (a systemd unit adds groups)"
    })
}

pub(super) fn check_linger(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let Some(user) = variable("USER").or_else(|| variable("LOGNAME")) else { return Vec::new() };
    if !Path::new(SYSTEMD).exists() || !context.paths.runtime.starts_with(USER_RUNTIME) {
        return Vec::new();
    }
    let has_linger = Path::new(LINGER).join(user).exists();
    vec![judge_linger(has_linger, variable("SSH_CONNECTION").is_some())]
}

fn judge_linger(has_linger: bool, is_remote: bool) -> DoctorFinding {
    if has_linger {
        return DoctorFinding::ok("on: sessions continue after you log out");
    }
    let found = "off: the daemon loses its socket when you log out";
    if is_remote {
        return DoctorFinding::warning(found, "loginctl enable-linger");
    }
    DoctorFinding::ok(format!("{found} (`loginctl enable-linger` keeps it)"))
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn missing_linger_is_a_warning_for_remote_users() {
        assert_eq!(judge_linger(true, true).verdict, CheckVerdict::Ok);
        assert_eq!(judge_linger(false, false).verdict, CheckVerdict::Ok);
        let finding = judge_linger(false, true);
        assert_eq!(finding.verdict, CheckVerdict::Warning);
        assert_eq!(finding.fix.as_deref(), Some("loginctl enable-linger"));
    }
}
