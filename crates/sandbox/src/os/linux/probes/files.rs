//! Attempts on files.
#![expect(unsafe_code, reason = "calls without a safe form")]

use super::attempt_error::{AttemptError, AttemptResult, check};
use crate::probes::{KEY_LINK, ProbeNeed, ProbeTargets, SETTINGS_LINK, SandboxProbe};
use std::{
    ffi::CString,
    fs::{self, File, OpenOptions, Permissions},
    io::Write as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
    time::SystemTime,
};

/// Descriptors above this are not searched.
const DESCRIPTORS_MAX: i32 = 256;

/// Makes an attempt on the file that the probe needs. `None` if it needs no file.
pub(super) fn attempt(probe: &SandboxProbe, targets: &ProbeTargets) -> Option<AttemptResult> {
    let in_project = |name: &str| targets.project.join(name);
    if let ProbeNeed::Variable(name) = probe.need {
        return Some(read_variable(name, targets));
    }
    let path = probe.need.path(targets);
    Some(match (probe.name, path) {
        ("read-descriptor", _) => read_descriptors(targets),
        (name, Some(path)) => match name {
            "read-through-link" => read_secret(&in_project(KEY_LINK), targets),
            "see-hidden-file" => fs::metadata(path).map(drop).map_err(Into::into),
            "create-outside" | "add-hook" => File::create_new(path).map(drop).map_err(Into::into),
            "truncate-outside" => truncate(&path),
            "delete-outside" => fs::remove_file(path).map_err(Into::into),
            "move-outside" => fs::rename(path, in_project("moved")).map_err(Into::into),
            "hard-link-outside" => fs::hard_link(path, in_project("linked")).map_err(Into::into),
            "write-through-link" => append(&in_project(SETTINGS_LINK)),
            "replace-git-folder" => replace_folder(&in_project(".git"), &in_project("old-git")),
            "change-mode" => {
                fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(Into::into)
            }
            "change-owner" => {
                let user = rustix::process::getuid().as_raw();
                std::os::unix::fs::chown(path, Some(user), None).map_err(Into::into)
            }
            "change-times" => change_times(&path),
            "change-attribute" => change_attribute(&path),
            _ => match probe.need {
                ProbeNeed::Read(_) | ProbeNeed::ReadOwn(_) => read_secret(&path, targets),
                _ => append(&path),
            },
        },
        (_, None) => return None,
    })
}

/// Reads a file, and checks that it is the planted one.
pub(super) fn read_secret(path: &Path, targets: &ProbeTargets) -> AttemptResult {
    find_secret(&fs::read(path)?, targets)
}

pub(super) fn find_secret(bytes: &[u8], targets: &ProbeTargets) -> AttemptResult {
    let secret = targets.secret.as_bytes();
    let is_found = bytes.windows(secret.len()).any(|it| it == secret);
    if is_found { Ok(()) } else { Err(AttemptError::nothing_found()) }
}

fn append(path: &Path) -> AttemptResult {
    let mut file = OpenOptions::new().append(true).open(path)?;
    Ok(file.write_all(b"\n")?)
}

fn read_variable(name: &str, targets: &ProbeTargets) -> AttemptResult {
    let value = std::env::var(name).unwrap_or_default();
    find_secret(value.as_bytes(), targets)
}

/// Reads all descriptors that were not closed.
fn read_descriptors(targets: &ProbeTargets) -> AttemptResult {
    let numbers = 3..DESCRIPTORS_MAX;
    let is_secret = |number: i32| {
        let mut bytes = [0_u8; 256];
        // SAFETY: the buffer has this length, and a descriptor that is not open is refused.
        let read = unsafe { libc::pread(number, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        let read = usize::try_from(read).unwrap_or(0);
        find_secret(&bytes[..read], targets).is_ok()
    };
    if numbers.into_iter().any(is_secret) { Ok(()) } else { Err(AttemptError::nothing_found()) }
}

fn truncate(path: &Path) -> AttemptResult {
    let path = to_c_string(path)?;
    // SAFETY: the path ends with a zero.
    check(unsafe { libc::truncate(path.as_ptr(), 0) })?;
    Ok(())
}

/// Replaces a folder by a copy that is empty, and puts it back.
fn replace_folder(folder: &Path, moved: &Path) -> AttemptResult {
    fs::rename(folder, moved)?;
    fs::create_dir(folder)?;
    fs::remove_dir(folder)?;
    Ok(fs::rename(moved, folder)?)
}

fn change_times(path: &Path) -> AttemptResult {
    Ok(File::open(path)?.set_modified(SystemTime::UNIX_EPOCH)?)
}

fn change_attribute(path: &Path) -> AttemptResult {
    let path = to_c_string(path)?;
    let value = b"1";
    // SAFETY: the path and the name end with a zero, and the value has this length.
    let status = unsafe {
        libc::setxattr(
            path.as_ptr(),
            c"user.sandbox-check".as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    check(status)?;
    Ok(())
}

fn to_c_string(path: &Path) -> Result<CString, AttemptError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|it| AttemptError::Failed(it.to_string()))
}
