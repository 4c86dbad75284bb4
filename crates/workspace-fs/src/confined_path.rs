//! Paths that are confined to a session's directories.
//!
//! Symbolic links are resolved first, and the result is checked. The file is then opened without
//! following any link, so a link that is swapped in after the check cannot lead outside.

use jackfield_protocol::Fault;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

/// How a directory is opened to reach files in it.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A path that was resolved to a location inside `root`. Its last components may not exist yet.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfinedPath {
    /// One of the session's directories, without links.
    root: PathBuf,
    /// The part below `root` that exists, without links.
    relative: PathBuf,
    /// The components behind it that do not exist yet.
    pub missing_components: Vec<OsString>,
    /// The path as the request named it.
    pub requested: PathBuf,
}

impl ConfinedPath {
    /// Resolves a path, or returns why it may not be used. The error reveals nothing about files
    /// outside `dirs`.
    pub fn resolve(path: &Path, dirs: &[PathBuf]) -> Result<ConfinedPath, Fault> {
        if !path.is_absolute() {
            return Err(refuse_path(path, "is not absolute: ACP requires absolute paths"));
        }
        let (existing, missing_components) = split_existing(path)?;
        let roots = dirs.iter().filter_map(|it| fs::canonicalize(it).ok());
        for root in roots {
            if let Ok(relative) = existing.strip_prefix(&root) {
                let (relative, requested) = (relative.to_owned(), path.to_owned());
                return Ok(ConfinedPath { root, relative, missing_components, requested });
            }
        }
        let dirs: Vec<String> = dirs.iter().map(|it| format!("`{}`", it.display())).collect();
        let dirs = dirs.join(", ");
        let why = format!(
            "leads outside the session's directories ({dirs}): use a path inside them, or open the \
             session with `additionalDirectories`"
        );
        Err(refuse_path(path, &why))
    }

    /// The existing part as an absolute path, for callers that cannot use a file descriptor.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.relative)
    }

    /// The whole path, of which the end may not exist yet.
    pub fn full_path(&self) -> PathBuf {
        self.missing_components.iter().fold(self.path(), |path, name| path.join(name))
    }

    /// Opens the existing part without following links.
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Fault> {
        open_beneath(&self.root, &self.relative, flags).map_err(|errno| self.to_fault(errno))
    }

    /// Opens the parent directory of the file and returns it with the file's name. Creates missing
    /// directories.
    pub fn open_parent(&self) -> Result<(OwnedFd, OsString), Fault> {
        let Some((name, dirs)) = self.missing_components.split_last() else {
            let (Some(parent), Some(name)) = (self.relative.parent(), self.relative.file_name())
            else {
                return Err(refuse_path(&self.requested, "is a directory"));
            };
            let parent = open_beneath(&self.root, parent, DIRECTORY);
            return Ok((parent.map_err(|errno| self.to_fault(errno))?, name.to_owned()));
        };
        let mut parent = self.open(DIRECTORY)?;
        for dir in dirs {
            parent = create_dir(&parent, dir).map_err(|errno| self.to_fault(errno))?;
        }
        Ok((parent, name.clone()))
    }

    /// Converts an error of an operation on this path into the error of the request.
    pub fn to_fault(&self, errno: Errno) -> Fault {
        let requested = self.requested.display();
        match errno {
            Errno::NOENT => Fault::FileNotFound { path: requested.to_string() },
            // `resolve` had removed all links, so one was added since.
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => {
                refuse_path(&self.requested, "changed while it was opened: retry")
            }
            Errno::NOTDIR => {
                refuse_path(&self.requested, "leads through a file that is not a directory")
            }
            Errno::NXIO => refuse_path(&self.requested, "is not a regular file"),
            _ => Fault::Internal { why: format!("`{requested}`: {}", io::Error::from(errno)) },
        }
    }
}

/// The error of a request whose path may not be used.
pub fn refuse_path(path: &Path, why: &str) -> Fault {
    Fault::InvalidParams { why: format!("`{}` {why}", path.display()) }
}

/// Splits a path into the part that exists, without links, and the components behind it.
fn split_existing(path: &Path) -> Result<(PathBuf, Vec<OsString>), Fault> {
    let mut missing = Vec::new();
    let mut candidate = path;
    loop {
        match fs::canonicalize(candidate) {
            Ok(existing) => {
                missing.reverse();
                return Ok((existing, missing));
            }
            Err(error) if is_not_found(&error) => {
                if candidate.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
                    return Err(refuse_path(path, "is or contains a dangling symbolic link"));
                }
                let (Some(Component::Normal(name)), Some(parent)) =
                    (candidate.components().next_back(), candidate.parent())
                else {
                    return Err(refuse_path(
                        path,
                        "has `..` after a directory that does not exist",
                    ));
                };
                missing.push(name.to_owned());
                candidate = parent;
            }
            Err(error) => {
                let why = format!("`{}`: {error}", path.display());
                return Err(Fault::Internal { why });
            }
        }
    }
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens one component after the other, so that no link is followed.
fn open_beneath(root: &Path, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut components: Vec<&OsStr> = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => components.push(name),
            Component::CurDir => {}
            // A resolved path has neither.
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        }
    }
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root_flags = DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(root, root_flags, Mode::empty())?;
    let Some((last, parents)) = components.split_last() else {
        return rustix::fs::openat(&directory, ".", flags, Mode::empty());
    };
    for name in parents {
        let parent_flags = root_flags | OFlags::NOFOLLOW;
        let opened = rustix::fs::openat(&directory, *name, parent_flags, Mode::empty());
        // It was a directory when the path was resolved, so it was replaced.
        directory = opened.map_err(|it| if it == Errno::NOTDIR { Errno::LOOP } else { it })?;
    }
    rustix::fs::openat(&directory, *last, flags, Mode::empty())
}

/// Creates a directory and opens it. A directory that another process has created meanwhile is
/// used.
fn create_dir(parent: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn resolve(path: &Path, dirs: &[&Path]) -> Result<ConfinedPath, String> {
        let dirs: Vec<PathBuf> = dirs.iter().map(|it| it.to_path_buf()).collect();
        ConfinedPath::resolve(path, &dirs).map_err(|it| it.to_string())
    }

    #[test]
    fn paths_are_checked_after_links_are_resolved() {
        let temporary = tempfile::tempdir().unwrap();
        let (work, other) = (temporary.path().join("work"), temporary.path().join("other"));
        fs::create_dir_all(work.join("a")).unwrap();
        fs::create_dir_all(&other).unwrap();
        symlink(&other, work.join("out")).unwrap();
        symlink(work.join("a"), work.join("in")).unwrap();
        symlink(work.join("nowhere"), work.join("dangling")).unwrap();
        let work = work.as_path();
        assert!(resolve(&work.join("a"), &[work]).is_ok());
        assert!(
            resolve(&work.join("in/new"), &[work]).is_ok_and(|it| it.relative == Path::new("a"))
        );
        assert!(resolve(&work.join("a/../a"), &[work]).is_ok());
        for outside in ["../other", "out", "out/new", "../missing", "a/../../other"] {
            let why = resolve(&work.join(outside), &[work]).unwrap_err();
            assert!(why.contains("outside the session's directories"), "{outside}: {why}");
        }
        assert!(resolve(&work.join("out"), &[work, &other]).is_ok());
        assert!(resolve(Path::new("a"), &[work]).unwrap_err().contains("absolute"));
        assert!(resolve(&work.join("dangling"), &[work]).unwrap_err().contains("dangling"));
        assert!(resolve(&work.join("no/../../x"), &[work]).unwrap_err().contains("`..` after"));
    }

    #[test]
    fn sibling_directory_with_the_same_name_prefix_is_outside() {
        let temporary = tempfile::tempdir().unwrap();
        let (work, sibling) = (temporary.path().join("work"), temporary.path().join("work2"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&sibling).unwrap();
        assert!(resolve(&sibling, &[&work]).unwrap_err().contains("outside"));
    }

    #[test]
    fn directory_replaced_by_a_link_after_resolution_is_not_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let (work, other) = (temporary.path().join("work"), temporary.path().join("other"));
        fs::create_dir_all(work.join("a")).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(work.join("a/file"), "inside").unwrap();
        fs::write(other.join("file"), "outside").unwrap();
        let target = resolve(&work.join("a/file"), &[&work]).unwrap();
        fs::rename(work.join("a"), work.join("b")).unwrap();
        symlink(&other, work.join("a")).unwrap();
        let why = target.open(OFlags::RDONLY).unwrap_err().to_string();
        assert!(why.contains("changed while it was opened"), "{why}");
        assert!(target.open_parent().is_err());
    }
}
