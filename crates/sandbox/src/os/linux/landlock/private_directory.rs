//! Private directories in the place of temporary ones, which Landlock cannot mount.
//!
//! The supervisor makes one below the temporary path and deletes it when the agent has ended. A lock on
//! the directory shows that its supervisor lives: the start of a sandbox deletes those without one, which
//! supervisors left behind that were killed.

use super::LandlockError;
use crate::plan::{PathAccess, PathRule};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The start of the name of every private directory.
const NAME_PREFIX: &str = ".jackfield-sandbox-";
/// A name is taken only while another supervisor with the id of this process is deleted.
const NAMES_MAX: u32 = 64;

/// A directory that exists as long as this value.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    pub(super) path: PathBuf,
    /// The path that it replaces.
    pub(super) replaces: PathBuf,
    _lock: OwnedFd,
}

impl PrivateDirectory {
    /// Makes one for each temporary path that exists, and deletes those of killed supervisors.
    pub(super) fn make_all(rules: &[PathRule]) -> Result<Vec<PrivateDirectory>, LandlockError> {
        let temporary = rules.iter().filter(|it| it.access == PathAccess::Temporary);
        let existing = temporary.filter(|it| it.path.is_dir());
        existing
            .map(|rule| {
                delete_unused(&rule.path);
                let made = PrivateDirectory::make(&rule.path);
                made.and_then(|it| it.link_visible(rules).map(|()| it)).map_err(|source| {
                    LandlockError::PrivateDirectory { path: rule.path.clone(), source }
                })
            })
            .collect()
    }

    /// Links to the visible paths below the temporary one, such as browsers in `~/.cache`.
    fn link_visible(&self, rules: &[PathRule]) -> io::Result<()> {
        let visible = [PathAccess::ReadOnly, PathAccess::Writable];
        let visible = rules.iter().filter(|it| visible.contains(&it.access) && it.path.exists());
        let mut visible: Vec<&PathRule> = visible.collect();
        visible.sort_by(|a, b| a.path.cmp(&b.path));
        for rule in visible {
            let Ok(below) = rule.path.strip_prefix(&self.replaces) else { continue };
            let link = self.path.join(below);
            // A path below another visible one is reached through the link to that.
            if !link.exists() && !below.as_os_str().is_empty() {
                fs::create_dir_all(link.parent().unwrap_or(&self.path))?;
                symlink(&rule.path, link)?;
            }
        }
        Ok(())
    }

    fn make(parent: &Path) -> io::Result<PrivateDirectory> {
        for attempt in 0..NAMES_MAX {
            let path = parent.join(format!("{NAME_PREFIX}{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            // Another start can delete the directory before it is locked.
            if let Some(lock) = lock_directory(&path) {
                return Ok(PrivateDirectory { path, replaces: parent.to_owned(), _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.path);
    }
}

/// Variables that name the private directories in the place of known temporary paths.
pub(super) fn variables(private: &[PrivateDirectory]) -> Vec<(&'static str, PathBuf)> {
    let replacement =
        |path: PathBuf| private.iter().find(|it| it.replaces == path).map(|it| it.path.clone());
    let temporary = replacement(std::env::temp_dir()).or_else(|| replacement("/tmp".into()));
    let caches = std::env::home_dir().and_then(|it| replacement(it.join(".cache")));
    let temporary = temporary.map(|it| ("TMPDIR", it));
    temporary.into_iter().chain(caches.map(|it| ("XDG_CACHE_HOME", it))).collect()
}

/// Deletes the private directories of sandboxes in a temporary directory whose supervisors have ended. What cannot be deleted
/// remains, as it belongs to another user.
pub fn delete_unused(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    let names =
        entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes()));
    for entry in names {
        let is_own = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == own_user());
        let lock = if is_own { lock_directory(&entry.path()) } else { None };
        if lock.is_some() {
            let _left = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks an existing directory until the result is dropped; none if another process has the lock.
fn lock_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    let locked = fstat(&directory).ok()?;
    let current = fs::symlink_metadata(path).ok()?;
    (locked.st_ino == current.ino() && locked.st_dev == current.dev()).then_some(directory)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_paths_below_are_linked() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        fs::create_dir_all(path("browsers/one")).unwrap();
        fs::write(path("browsers/one/file"), "text").unwrap();
        let rule = |path, access| PathRule { path, access };
        let rules = [
            rule(parent.path().into(), PathAccess::Temporary),
            rule(path("browsers"), PathAccess::ReadOnly),
            rule(path("browsers/one"), PathAccess::Writable),
            rule(path("missing"), PathAccess::ReadOnly),
        ];
        let private = PrivateDirectory::make_all(&rules).unwrap();
        let linked = private[0].path.join("browsers/one/file");
        assert_eq!(fs::read_to_string(linked).unwrap(), "text");
        assert!(!private[0].path.join("missing").exists());
        drop(private);
        assert!(path("browsers/one/file").exists(), "the target of a link was deleted");
    }

    #[test]
    fn directory_of_a_killed_supervisor_is_deleted_by_the_next_start() {
        let parent = tempfile::tempdir().unwrap();
        let rule = PathRule { path: parent.path().into(), access: PathAccess::Temporary };
        let left = parent.path().join(format!("{NAME_PREFIX}1-0"));
        fs::create_dir_all(left.join("below")).unwrap();
        let first = PrivateDirectory::make_all(std::slice::from_ref(&rule)).unwrap();
        assert!(!left.exists());
        let second = PrivateDirectory::make_all(&[rule]).unwrap();
        assert!(first[0].path.is_dir(), "a directory in use was deleted");
        assert_ne!(first[0].path, second[0].path);
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
