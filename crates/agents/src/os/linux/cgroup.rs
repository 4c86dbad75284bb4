//! Control groups (version 2) of Linux, if this user may create them. Everything that an agent
//! starts stays in its group, even if it changes its session, parent or environment, and the kernel
//! kills the whole group at once.
//!
//! A group is not a security boundary: a process with the uid of the groups' owner can move itself
//! to another group.

use crate::os::ProcessIdentity;
use rustix::process::geteuid;
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const PREFIX: &str = "jackfield-";
const PROCESSES_FILE: &str = "cgroup.procs";
const KILL_FILE: &str = "cgroup.kill";
/// The attribute that systemd sets on a directory with `Delegate=yes`.
const DELEGATE_ATTRIBUTE: &str = "user.delegate";

/// The group of one agent and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlGroup {
    directory: PathBuf,
}

impl ControlGroup {
    /// A group in a directory that [`delegated_directory`] found. Creates nothing.
    pub(crate) fn new(parent: &Path, mark: &str) -> ControlGroup {
        ControlGroup { directory: parent.join(format!("{PREFIX}{mark}")) }
    }

    /// The group of this directory, which the daemon has chosen. Creates nothing.
    pub(crate) fn at(directory: PathBuf) -> ControlGroup {
        ControlGroup { directory }
    }

    /// A recorded group, if the directory still is a group with the name of this mark.
    pub(crate) fn from_record(directory: &Path, mark: &str) -> Option<ControlGroup> {
        let is_named = directory.file_name()?.to_str()? == format!("{PREFIX}{mark}");
        let is_group = is_named && directory.join(KILL_FILE).is_file();
        is_group.then(|| ControlGroup { directory: directory.to_owned() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the group, runs `start` inside it and moves this process back. The started process
    /// stays in the group.
    pub(crate) fn start_inside<T>(&self, start: impl FnOnce() -> T) -> T {
        let parent = self.directory.parent().unwrap_or(Path::new("/"));
        let entered = match fs::create_dir(&self.directory) {
            Ok(()) => enter_group(&self.directory),
            Err(error) => Err(error),
        };
        let started = start();
        // Without a group the guard ends the tree alone, as on systems without groups.
        if entered.is_ok() {
            let _stays_inside = enter_group(parent);
        }
        started
    }

    /// Kills every process of the group and of the groups in it, in one step.
    pub(crate) fn kill(&self) {
        // A group that was removed or never created has no processes.
        let _ = fs::write(self.directory.join(KILL_FILE), "1");
    }

    /// The processes in the group and in the groups below it.
    pub(crate) fn processes(&self) -> Vec<ProcessIdentity> {
        let mut found = Vec::new();
        for directory in directories(&self.directory) {
            let listed = fs::read_to_string(directory.join(PROCESSES_FILE)).unwrap_or_default();
            found.extend(listed.lines().filter_map(|it| ProcessIdentity::find(it.parse().ok()?)));
        }
        found
    }

    /// Removes the group if it has no processes.
    pub(crate) fn remove(&self) {
        for directory in directories(&self.directory).iter().rev() {
            let _in_use = fs::remove_dir(directory);
        }
    }
}

/// Moves this process to a group.
fn enter_group(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(PROCESSES_FILE), "0")
}

/// A directory of groups and all below it, parents first.
fn directories(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while let Some(directory) = found.get(next) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let below = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
        let below: Vec<PathBuf> = below.map(|it| it.path()).collect();
        found.extend(below);
        next += 1;
    }
    found
}

/// The group of this process, if it may create groups in it: systemd has delegated it
/// (`Delegate=yes`), or it belongs to this user. Root could always create groups, but must not
/// divide those of other services.
pub(crate) fn delegated_directory() -> Option<PathBuf> {
    let mount = mount_point(&fs::read_to_string("/proc/self/mountinfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let directory = mount.join(own_group(&groups)?.trim_start_matches('/'));
    is_delegated(&directory).then_some(directory)
}

fn is_delegated(directory: &Path) -> bool {
    let Ok(metadata) = directory.metadata() else { return false };
    let user = geteuid();
    let is_owned = !user.is_root() && metadata.uid() == user.as_raw();
    let mut value = [0_u8; 2];
    let length = rustix::fs::getxattr(directory, DELEGATE_ATTRIBUTE, &mut value[..]);
    is_owned || matches!(length, Ok(length) if value[..length] == *b"1")
}

/// The mount point of the groups of version 2, from the lines of `mountinfo`.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, place) = (left.next()?, left.next()?);
        let is_groups = right.starts_with("cgroup2 ") && root == "/";
        is_groups.then(|| PathBuf::from(place))
    })
}

/// The group of version 2, from the lines of `/proc/PID/cgroup`.
fn own_group(lines: &str) -> Option<&str> {
    lines.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_and_own_group_of_version_2_are_found() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            26 25 0:23 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n\
            27 25 0:24 /other /mnt/part rw - cgroup2 cgroup2 rw\n\
            28 25 0:24 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("26 25 0:23 / /x rw - cgroup cgroup rw,pids\n"), None);
        let lines = "8:pids:/a\n0::/user.slice/user-1000.slice/user@1000.service/app.slice\n";
        assert_eq!(
            own_group(lines),
            Some("/user.slice/user-1000.slice/user@1000.service/app.slice")
        );
        assert_eq!(own_group("8:pids:/a\n"), None);
    }

    #[test]
    fn recorded_directory_must_be_a_group_of_the_mark() {
        let directory = tempfile::tempdir().unwrap();
        let group = directory.path().join("jackfield-a-1");
        fs::create_dir(&group).unwrap();
        assert_eq!(ControlGroup::from_record(&group, "a-1"), None, "not a group of the kernel");
        fs::write(group.join(KILL_FILE), "").unwrap();
        assert!(ControlGroup::from_record(&group, "a-1").is_some());
        assert_eq!(ControlGroup::from_record(&group, "a-2"), None, "another mark");
        assert_eq!(ControlGroup::from_record(directory.path(), "a-1"), None);
    }
}
