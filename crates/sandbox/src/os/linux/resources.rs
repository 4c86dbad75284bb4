//! Limits of processes, memory, processor time and disk.
//!
//! Control groups limit the whole process tree, but only the guard's own group may be used, and only if
//! controllers are enabled in it. Otherwise each process is limited by itself.

use crate::plan::ResourceLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The prefix of the control groups that guards create.
const GROUP_PREFIX: &str = "jackfield-";

/// Limits the control group of this process, if a guard has created it. Returns the limits that remain for
/// [`limit_process`].
pub(super) fn limit_group(limits: ResourceLimits) -> ResourceLimits {
    match own_group() {
        Some(group) => limit_group_at(&group, limits),
        None => limits,
    }
}

fn limit_group_at(group: &Path, limits: ResourceLimits) -> ResourceLimits {
    // A missing file means that the controller is not enabled.
    let is_set = |file: &str, limit: Option<u64>| {
        limit.is_some_and(|it| {
            let path = group.join(file);
            path.is_file() && fs::write(path, it.to_string()).is_ok()
        })
    };
    ResourceLimits {
        processes: limits.processes.filter(|_| !is_set("pids.max", limits.processes)),
        memory_bytes: limits.memory_bytes.filter(|_| !is_set("memory.max", limits.memory_bytes)),
        ..limits
    }
}

fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|it| it.strip_prefix("0::/"))?;
    let is_ours = Path::new(group).file_name()?.to_str()?.starts_with(GROUP_PREFIX);
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mut found = places.iter().map(|it| Path::new(it).join(group));
    found.find(|it| is_ours && it.join("cgroup.procs").is_file())
}

/// Limits this process and each of its descendants.
pub(super) fn limit_process(limits: ResourceLimits) -> io::Result<()> {
    for (resource, limit) in [
        // In a user namespace, only the processes in it are counted. Root is not limited.
        (Resource::Nproc, limits.processes),
        // Not the address space, of which runtimes reserve much more than they use.
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Cpu, limits.cpu_seconds),
    ] {
        let Some(limit) = limit else { continue };
        let highest = getrlimit(resource).maximum.map_or(limit, |it| it.min(limit));
        setrlimit(resource, Rlimit { current: Some(highest), maximum: Some(highest) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_controllers_limit_the_group_and_others_the_process() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("pids.max"), "max").unwrap();
        let limits = ResourceLimits {
            processes: Some(50),
            memory_bytes: Some(1 << 30),
            file_bytes: Some(1 << 20),
            cpu_seconds: None,
        };
        let left = limit_group_at(group.path(), limits);
        assert_eq!(fs::read_to_string(group.path().join("pids.max")).unwrap(), "50");
        assert_eq!(left, ResourceLimits { processes: None, ..limits });
    }
}
