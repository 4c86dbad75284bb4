//! Checks our folders and the token: owner, mode, and the length of the path of the socket.

use super::{
    check_context::CheckContext,
    finding::{DoctorFinding, ModeRepair},
};
use crate::plain_text::quote_path;
use jackfield_transport::EndpointAddress;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

const FOLDER_MODE: u32 = 0o700;
const TOKEN_MODE: u32 = 0o600;
const GROUP_AND_OTHERS: u32 = 0o077;

pub(super) fn check_state(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    check_folder("JACKFIELD_STATE_DIR", &context.paths.state)
}

pub(super) fn check_runtime(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    check_folder("JACKFIELD_RUNTIME_DIR", &context.paths.runtime)
}

fn check_folder(variable: &str, folder: &Path) -> Vec<DoctorFinding> {
    vec![judge_folder(variable, folder, &read_file_state(folder), own_user())]
}

pub(super) fn check_socket(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let EndpointAddress::Unix(path) = context.command.daemon.address() else {
        return Vec::new();
    };
    vec![judge_socket_path(&path)]
}

pub(super) fn check_token(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let path = context.paths.token();
    vec![judge_token(&path, &read_file_state(&path), own_user())]
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum FileState {
    Missing {
        /// A parent that is not a directory, so that nothing can be created here.
        blocked_by: Option<PathBuf>,
    },
    Directory {
        owner: u32,
        mode: u32,
    },
    File {
        owner: u32,
        mode: u32,
    },
    /// A link, a socket or a device.
    Other,
}

/// Symbolic links are not followed.
fn read_file_state(path: &Path) -> FileState {
    let Ok(meta) = fs::symlink_metadata(path) else {
        let parent = path.ancestors().skip(1).find(|it| fs::symlink_metadata(it).is_ok());
        let blocked_by = parent.filter(|it| !it.is_dir()).map(Path::to_owned);
        return FileState::Missing { blocked_by };
    };
    let (owner, mode) = (meta.uid(), meta.permissions().mode() & 0o7777);
    match (meta.is_dir(), meta.is_file()) {
        (true, _) => FileState::Directory { owner, mode },
        (_, true) => FileState::File { owner, mode },
        _ => FileState::Other,
    }
}

pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A folder of ours belongs to this user and is closed to others, or does not exist yet.
fn judge_folder(variable: &str, folder: &Path, state: &FileState, user: u32) -> DoctorFinding {
    let shown = folder.display();
    match state {
        FileState::Missing { blocked_by: None } => {
            DoctorFinding::ok(format!("{shown} is created on first use"))
        }
        FileState::Missing { blocked_by: Some(file) } => {
            let found = format!("{shown} cannot be created: {} is not a directory", file.display());
            DoctorFinding::problem(found, format!("rm {}, or set {variable}", quote_path(file)))
        }
        FileState::File { .. } | FileState::Other => {
            let fix = format!("rm {}", quote_path(folder));
            DoctorFinding::problem(format!("{shown} is not a directory"), fix)
        }
        FileState::Directory { owner, .. } if *owner != user => {
            let found = format!("{shown} belongs to user {owner}, not to you");
            let fix = format!("remove {shown}, or set {variable} to another directory");
            DoctorFinding::problem(found, fix)
        }
        FileState::Directory { mode, .. } if mode & GROUP_AND_OTHERS != 0 => {
            let found = format!("{shown} is accessible to other users (mode {mode:o})");
            let repair = ModeRepair { path: folder.to_owned(), mode: FOLDER_MODE };
            DoctorFinding::wrong_mode(found, repair)
        }
        FileState::Directory { .. } => DoctorFinding::ok(shown.to_string()),
    }
}

fn judge_token(path: &Path, state: &FileState, user: u32) -> DoctorFinding {
    let shown = path.display();
    match state {
        FileState::Missing { .. } => {
            DoctorFinding::ok("the daemon creates it when it starts".to_owned())
        }
        FileState::Directory { .. } | FileState::Other => {
            let fix = format!("rm -r {}", quote_path(path));
            DoctorFinding::problem(format!("{shown} is not a file"), fix)
        }
        FileState::File { owner, .. } if *owner != user => {
            let found = format!("{shown} belongs to user {owner}, not to you");
            DoctorFinding::problem(found, format!("chown {user} {}", quote_path(path)))
        }
        FileState::File { mode, .. } if mode & GROUP_AND_OTHERS != 0 => {
            let found = format!("{shown} is accessible to other users (mode {mode:o})");
            let repair = ModeRepair { path: path.to_owned(), mode: TOKEN_MODE };
            let finding = DoctorFinding::wrong_mode(found, repair);
            let fix = finding.fix.unwrap_or_default();
            let fix = format!("{fix}; if others could read it: jackfield token --rotate");
            DoctorFinding { fix: Some(fix), ..finding }
        }
        FileState::File { .. } => DoctorFinding::ok(format!("{shown} is private")),
    }
}

fn judge_socket_path(path: &Path) -> DoctorFinding {
    if jackfield_transport::check_socket_path(path).is_ok() {
        return DoctorFinding::ok(format!("{} is short enough", path.display()));
    }
    let length = path.as_os_str().len();
    let found = format!("{} is too long for a socket: {length} bytes", path.display());
    DoctorFinding::problem(found, "set JACKFIELD_RUNTIME_DIR to a shorter directory")
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    fn folder(state: &FileState) -> DoctorFinding {
        judge_folder("JACKFIELD_STATE_DIR", Path::new("/s"), state, 7)
    }

    #[test]
    fn folder_must_be_own_and_private() {
        for (state, fix) in [
            (FileState::Directory { owner: 7, mode: 0o700 }, None),
            (FileState::Missing { blocked_by: None }, None),
            (FileState::Directory { owner: 7, mode: 0o777 }, Some("chmod 700 /s")),
            (FileState::Directory { owner: 7, mode: 0o710 }, Some("chmod 700 /s")),
            (
                FileState::Directory { owner: 8, mode: 0o700 },
                Some("remove /s, or set JACKFIELD_STATE_DIR to another directory"),
            ),
            (FileState::Other, Some("rm /s")),
            (
                FileState::Missing { blocked_by: Some("/f".into()) },
                Some("rm /f, or set JACKFIELD_STATE_DIR"),
            ),
        ] {
            let finding = folder(&state);
            let expected = if fix.is_some() { CheckVerdict::Problem } else { CheckVerdict::Ok };
            assert_eq!((finding.verdict, finding.fix.as_deref()), (expected, fix), "{state:?}");
        }
    }

    #[test]
    fn only_wrong_modes_of_own_files_are_repaired() {
        let open = FileState::Directory { owner: 7, mode: 0o755 };
        let repair = folder(&open).repair.unwrap();
        assert_eq!((repair.path.as_path(), repair.mode), (Path::new("/s"), 0o700));
        assert_eq!(folder(&FileState::Directory { owner: 8, mode: 0o755 }).repair, None);
        let token = |state| judge_token(Path::new("/t"), &state, 7);
        let finding = token(FileState::File { owner: 7, mode: 0o644 });
        assert_eq!(finding.repair.as_ref().map(|it| it.mode), Some(0o600));
        assert!(finding.fix.unwrap().starts_with("chmod 600 /t; if others"));
        assert_eq!(token(FileState::File { owner: 8, mode: 0o644 }).repair, None);
        let private = token(FileState::File { owner: 7, mode: 0o600 });
        assert_eq!(private.verdict, CheckVerdict::Ok);
    }

    #[test]
    fn long_path_of_the_socket_is_a_problem() {
        assert_eq!(judge_socket_path(Path::new("/run/hub.sock")).verdict, CheckVerdict::Ok);
        let long = PathBuf::from(format!("/{}/hub.sock", "x".repeat(120)));
        assert!(judge_socket_path(&long).found.ends_with("130 bytes"));
    }
}
