//! Checks the free space of the file systems with the journal and with temporary files.

use super::{check_context::CheckContext, finding::DoctorFinding};
use rustix::fs::statvfs;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const MIB: u64 = 1024 * 1024;
/// With less free space, a session may fill the disk within minutes.
const FREE_BYTES_MIN: u64 = 64 * MIB;
/// With less free space, a build of an agent may fill the disk.
const FREE_BYTES_LOW: u64 = 1024 * MIB;
/// A session and its agent create some files.
const FREE_FILES_MIN: u64 = 1000;

pub(super) fn check_disk(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let mut devices = Vec::new();
    let mut spaces = Vec::new();
    for folder in [&context.paths.state, &std::env::temp_dir()] {
        let Some(folder) = folder.ancestors().find(|it| it.exists()) else { continue };
        let device = fs::metadata(folder).map(|it| it.dev()).ok();
        if !devices.contains(&device) {
            devices.push(device);
            spaces.extend(read_space(folder));
        }
    }
    spaces.iter().map(judge_space).collect()
}

/// The free space of a file system.
struct DiskSpace {
    folder: PathBuf,
    free_bytes: u64,
    /// How many files can be created; `None` if the file system has no limit.
    free_files: Option<u64>,
}

fn read_space(folder: &Path) -> Option<DiskSpace> {
    let it = statvfs(folder).ok()?;
    Some(DiskSpace {
        folder: folder.to_owned(),
        free_bytes: it.f_bavail.saturating_mul(it.f_frsize),
        free_files: (0 < it.f_files).then_some(it.f_favail),
    })
}

fn judge_space(space: &DiskSpace) -> DoctorFinding {
    let shown = space.folder.display();
    let mib = space.free_bytes / MIB;
    if space.free_bytes < FREE_BYTES_MIN {
        let found = format!("only {mib} MiB are free on the file system of {shown}");
        DoctorFinding::problem(found, "free some space: prompts are refused when none is left")
    } else if let Some(files) = space.free_files.filter(|it| *it < FREE_FILES_MIN) {
        let found = format!("only {files} more files fit on the file system of {shown}");
        DoctorFinding::problem(found, "remove files: `df -i` and `du --inodes` show where they are")
    } else if space.free_bytes < FREE_BYTES_LOW {
        let found = format!("{mib} MiB are free on the file system of {shown}");
        DoctorFinding::warning(
            found,
            "free some space: `jackfield sessions prune` removes old sessions",
        )
    } else {
        DoctorFinding::ok(format!("{} GiB are free on the file system of {shown}", mib / 1024))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    #[test]
    fn little_space_is_a_warning_and_hardly_any_is_a_problem() {
        let verdict = |free_bytes, free_files| {
            judge_space(&DiskSpace { folder: "/s".into(), free_bytes, free_files }).verdict
        };
        assert_eq!(verdict(9 * 1024 * MIB, Some(1_000_000)), CheckVerdict::Ok);
        assert_eq!(verdict(9 * 1024 * MIB, None), CheckVerdict::Ok, "btrfs has no limit");
        assert_eq!(verdict(9 * 1024 * MIB, Some(3)), CheckVerdict::Problem);
        assert_eq!(verdict(500 * MIB, Some(1_000_000)), CheckVerdict::Warning);
        assert_eq!(verdict(63 * MIB, Some(1_000_000)), CheckVerdict::Problem);
    }
}
