//! Checks for the Windows Subsystem for Linux: its version, and folders on Windows drives.

use super::{check_context::CheckContext, finding::DoctorFinding};
use std::path::Path;

pub(super) fn check_wsl(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let kernel = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let cwd = std::env::current_dir().unwrap_or_default();
    judge_wsl(&kernel, &context.paths.state, &cwd).into_iter().collect()
}

/// `None` outside of WSL. `kernel` is the content of `/proc/version`.
fn judge_wsl(kernel: &str, state: &Path, cwd: &Path) -> Option<DoctorFinding> {
    let kernel = kernel.to_lowercase();
    if !kernel.contains("microsoft") {
        return None;
    }
    Some(if !kernel.contains("wsl2") && !kernel.contains("microsoft-standard") {
        let found = "WSL 1 lacks parts of Linux that Jackfield needs";
        DoctorFinding::problem(found, "in Windows: wsl --set-version DISTRIBUTION 2")
    } else if is_on_windows_drive(state) {
        let found =
            format!("{} is on a Windows drive, which has no modes and locks", state.display());
        let fix = "set JACKFIELD_STATE_DIR to a directory below your home directory in Linux";
        DoctorFinding::problem(found, fix)
    } else if is_on_windows_drive(cwd) {
        let found = format!("{} is on a Windows drive, where agents are slow", cwd.display());
        DoctorFinding::warning(found, "clone the project below your home directory in Linux")
    } else {
        DoctorFinding::ok("WSL 2, with folders of Linux")
    })
}

/// Below `/mnt/c` or another drive.
fn is_on_windows_drive(folder: &Path) -> bool {
    let rest = folder.strip_prefix("/mnt").ok();
    let drive = rest.and_then(|it| it.iter().next()).and_then(|it| it.to_str());
    drive.is_some_and(|it| it.len() == 1 && it.starts_with(|it: char| it.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    const WSL_2: &str = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc) #1 SMP";
    const WSL_1: &str = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc) #1";

    fn judge(kernel: &str, state: &str, cwd: &str) -> Option<CheckVerdict> {
        judge_wsl(kernel, Path::new(state), Path::new(cwd)).map(|it| it.verdict)
    }

    #[test]
    fn windows_drives_are_named_only_in_wsl() {
        use CheckVerdict::{Ok, Problem, Warning};
        let home = "/home/me/.local/state/jackfield";
        assert_eq!(judge("Linux version 6.1.0 (debian)", "/mnt/c/x", "/mnt/c"), None);
        assert_eq!(judge(WSL_2, home, "/home/me/project"), Some(Ok));
        assert_eq!(judge(WSL_2, home, "/mnt/c/Users/Me/My Project"), Some(Warning));
        assert_eq!(judge(WSL_2, home, "/mnt/wsl/disk"), Some(Ok), "a disk of Linux");
        assert_eq!(judge(WSL_2, "/mnt/d/state", "/home/me"), Some(Problem));
        assert_eq!(judge(WSL_1, home, "/home/me"), Some(Problem));
    }
}
