//! Checks the limits of open files, processes and watched files. Jackfield starts many programs, and agents open and
//! watch many files.

use super::{check_context::CheckContext, finding::DoctorFinding};
use rustix::process::{Resource, getrlimit};
use std::{fs, path::Path};

/// With fewer files, a daemon with a few dozen clients and agents stops accepting more.
const FILES_MIN: u64 = 1024;
/// Enough for some hundred sessions.
const FILES_ENOUGH: u64 = 4096;
/// One agent and its tools are a few dozen processes and threads.
const PROCESSES_MIN: u64 = 256;
const PROCESSES_ENOUGH: u64 = 1024;
/// A repository with dependencies has tens of thousands of folders, and agents watch each one.
const WATCHES_ENOUGH: u64 = 65_536;
/// The default of Linux.
const WATCH_INSTANCES_ENOUGH: u64 = 128;

const INOTIFY: &str = "/proc/sys/fs/inotify";
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

pub(super) fn check_files(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let limit = getrlimit(Resource::Nofile);
    vec![judge_files(limit.current, limit.maximum)]
}

pub(super) fn check_processes(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let own_group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group_limit = read_group_limit(Path::new(CONTROL_GROUPS), &own_group);
    vec![judge_processes(getrlimit(Resource::Nproc).current, group_limit)]
}

pub(super) fn check_inotify(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let read = |name: &str| {
        fs::read_to_string(Path::new(INOTIFY).join(name)).ok()?.trim().parse::<u64>().ok()
    };
    let limits = (read("max_user_watches"), read("max_user_instances"));
    let (Some(watches), Some(instances)) = limits else { return Vec::new() };
    vec![judge_inotify(watches, instances)]
}

/// The smallest `pids.max` of the control group in these lines of `/proc/self/cgroup` and of its parents.
fn read_group_limit(mount: &Path, own_group: &str) -> Option<u64> {
    let group = own_group.lines().find_map(|it| it.strip_prefix("0::"))?;
    let group = mount.join(group.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|it| it.starts_with(mount));
    let limit = |it: &Path| fs::read_to_string(it.join("pids.max")).ok()?.trim().parse().ok();
    groups.filter_map(limit).min()
}

/// `None` is no limit. The daemon raises its limit to the hard one; agents start with the soft one.
fn judge_files(soft: Option<u64>, hard: Option<u64>) -> DoctorFinding {
    let (soft, hard) = (soft.unwrap_or(u64::MAX), hard.unwrap_or(u64::MAX));
    let raise = format!(
        "raise `nofile` to {FILES_ENOUGH} in /etc/security/limits.conf, or `LimitNOFILE=` of the unit, and log in \
         again"
    );
    if hard < FILES_MIN {
        let found = format!("the daemon may open only {hard} files, which is too few");
        DoctorFinding::problem(found, raise)
    } else if soft < FILES_MIN {
        let found = format!("agents may open only {soft} files");
        DoctorFinding::warning(found, format!("ulimit -n {}", hard.min(FILES_ENOUGH)))
    } else if hard < FILES_ENOUGH {
        DoctorFinding::warning(format!("the daemon may open only {hard} files"), raise)
    } else {
        let (soft, hard) = (format_limit(soft), format_limit(hard));
        DoctorFinding::ok(format!("open files: {soft} for agents, {hard} for the daemon"))
    }
}

/// The limits of the user and of the control group; `None` is no limit.
fn judge_processes(user: Option<u64>, group: Option<u64>) -> DoctorFinding {
    let (user, group) = (user.unwrap_or(u64::MAX), group.unwrap_or(u64::MAX));
    let limit = user.min(group);
    let found = format!("only {limit} processes and threads are allowed");
    let fix = if group < user {
        format!(
            "raise `TasksMax=` of the unit, or the limit of the container, to {PROCESSES_ENOUGH}"
        )
    } else {
        format!("ulimit -u {PROCESSES_ENOUGH}, or raise `nproc` in /etc/security/limits.conf")
    };
    if limit < PROCESSES_MIN {
        DoctorFinding::problem(found, fix)
    } else if limit < PROCESSES_ENOUGH {
        DoctorFinding::warning(found, fix)
    } else {
        DoctorFinding::ok(format!("processes and threads: {}", format_limit(limit)))
    }
}

fn judge_inotify(watches: u64, instances: u64) -> DoctorFinding {
    let (name, value, enough) = if watches < WATCHES_ENOUGH {
        ("max_user_watches", watches, 524_288)
    } else if instances < WATCH_INSTANCES_ENOUGH {
        ("max_user_instances", instances, 1024)
    } else {
        return DoctorFinding::ok(format!("watched files: {watches}, watchers: {instances}"));
    };
    let found = format!("`fs.inotify.{name}` is {value}: agents may miss changes of files");
    DoctorFinding::warning(
        found,
        format!("sudo sysctl fs.inotify.{name}={enough}; a file in /etc/sysctl.d keeps it"),
    )
}

fn format_limit(limit: u64) -> String {
    if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn limits_give_findings() {
        use CheckVerdict::{Ok, Problem, Warning};
        for (soft, hard, verdict, fix) in [
            (Some(1024), Some(1_048_576), Ok, ""),
            (None, None, Ok, ""),
            (Some(256), None, Warning, "ulimit -n 4096"),
            (Some(256), Some(2048), Warning, "ulimit -n 2048"),
            (Some(1024), Some(2048), Warning, "raise `nofile` to 4096"),
            (Some(64), Some(64), Problem, "raise `nofile` to 4096"),
        ] {
            let finding = judge_files(soft, hard);
            assert_eq!(finding.verdict, verdict, "{soft:?} {hard:?}");
            assert!(finding.fix.unwrap_or_default().starts_with(fix), "{soft:?} {hard:?}");
        }
        for (user, group, verdict, fix) in [
            (None, None, Ok, ""),
            (Some(30_000), Some(9_000), Ok, ""),
            (Some(500), None, Warning, "ulimit -u 1024"),
            (Some(100), Some(9_000), Problem, "ulimit -u 1024"),
            (None, Some(100), Problem, "raise `TasksMax=`"),
        ] {
            let finding = judge_processes(user, group);
            assert_eq!(finding.verdict, verdict, "{user:?} {group:?}");
            assert!(finding.fix.unwrap_or_default().starts_with(fix), "{user:?} {group:?}");
        }
        for (watches, instances, verdict, fix) in [
            (524_288, 128, Ok, ""),
            (8_192, 128, Warning, "sudo sysctl fs.inotify.max_user_watches="),
            (524_288, 16, Warning, "sudo sysctl fs.inotify.max_user_instances="),
        ] {
            let finding = judge_inotify(watches, instances);
            assert_eq!(finding.verdict, verdict, "{watches} {instances}");
            assert!(finding.fix.unwrap_or_default().starts_with(fix), "{watches} {instances}");
        }
    }

    #[test]
    fn smallest_limit_of_the_control_group_and_its_parents_counts() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("user.slice/session.scope");
        fs::create_dir_all(&group).unwrap();
        let limit = || read_group_limit(mount.path(), "1:x:/y\n0::/user.slice/session.scope\n");
        assert_eq!(limit(), None);
        fs::write(group.join("pids.max"), "max\n").unwrap();
        fs::write(mount.path().join("user.slice/pids.max"), "300\n").unwrap();
        assert_eq!(limit(), Some(300));
        fs::write(group.join("pids.max"), "20\n").unwrap();
        assert_eq!(limit(), Some(20));
        assert_eq!(read_group_limit(mount.path(), "1:x:/y\n"), None);
    }
}
