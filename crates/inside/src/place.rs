//! Paths inside a session's directories: links are followed first, and only then is looked where they
//! led. What is opened is what was looked at, even if somebody swaps a link in between.

use jackfield_wire::Fault;
use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};
use std::{
    ffi::OsString,
    fs, io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Component, Path, PathBuf},
};

/// Where a path leads: inside `root`, to `below`, and from there to what is not there yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// One of the session's directories, without links.
    root: PathBuf,
    /// What exists below it, without links.
    below: PathBuf,
    pub missing: Vec<OsString>,
    /// As it was asked for.
    pub shown: PathBuf,
}

impl Place {
    /// Finds a path, or says why it may not be used. Nothing is told about what lies outside.
    pub fn find(path: &Path, dirs: &[PathBuf]) -> Result<Place, Fault> {
        if !path.is_absolute() {
            return Err(refused(path, "is not absolute: the protocol wants absolute paths"));
        }
        let (found, missing) = existing(path)?;
        let roots = dirs.iter().filter_map(|it| fs::canonicalize(it).ok());
        for root in roots {
            if let Ok(below) = found.strip_prefix(&root) {
                let (below, shown) = (below.to_owned(), path.to_owned());
                return Ok(Place { root, below, missing, shown });
            }
        }
        let dirs: Vec<String> = dirs.iter().map(|it| format!("`{}`", it.display())).collect();
        let dirs = dirs.join(", ");
        let why = format!(
            "leads outside the session's directories ({dirs}): use a path inside them, or open the \
             session with `additionalDirectories`"
        );
        Err(refused(path, &why))
    }

    /// The whole path, for those who cannot be given a descriptor.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Opens what exists. No link is followed any more.
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Fault> {
        open_below(&self.root, &self.below, flags).map_err(|errno| self.fault(errno))
    }

    /// Opens the directory in which the file is or will be, making it if need be, and names the file.
    pub fn open_parent(&self) -> Result<(OwnedFd, OsString), Fault> {
        let directory = OFlags::PATH | OFlags::DIRECTORY;
        let Some((name, dirs)) = self.missing.split_last() else {
            let (Some(parent), Some(name)) = (self.below.parent(), self.below.file_name()) else {
                return Err(refused(&self.shown, "is a directory"));
            };
            let parent = open_below(&self.root, parent, directory);
            return Ok((parent.map_err(|errno| self.fault(errno))?, name.to_owned()));
        };
        let mut parent = self.open(directory)?;
        for dir in dirs {
            parent = make_dir(&parent, dir).map_err(|errno| self.fault(errno))?;
        }
        Ok((parent, name.clone()))
    }

    pub fn fault(&self, errno: Errno) -> Fault {
        let shown = self.shown.display();
        match errno {
            Errno::NOENT => Fault::FileNotFound { path: shown.to_string() },
            // There was no link a moment ago.
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => {
                refused(&self.shown, "was changed while it was opened: ask again")
            }
            Errno::NOTDIR => refused(&self.shown, "leads through a file that is no directory"),
            Errno::NXIO => refused(&self.shown, "is no regular file"),
            _ => Fault::Internal { why: format!("`{shown}`: {}", io::Error::from(errno)) },
        }
    }
}

pub fn refused(path: &Path, why: &str) -> Fault {
    Fault::InvalidParams { why: format!("`{}` {why}", path.display()) }
}

/// The part of a path that exists, without links, and the names behind it.
fn existing(path: &Path) -> Result<(PathBuf, Vec<OsString>), Fault> {
    let mut missing = Vec::new();
    let mut left = path;
    loop {
        match fs::canonicalize(left) {
            Ok(found) => {
                missing.reverse();
                return Ok((found, missing));
            }
            Err(error) if is_missing(&error) => {
                if left.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
                    return Err(refused(path, "is a link to nothing, or goes through one"));
                }
                let (Some(Component::Normal(name)), Some(parent)) =
                    (left.components().next_back(), left.parent())
                else {
                    return Err(refused(path, "goes up from a directory that does not exist"));
                };
                missing.push(name.to_owned());
                left = parent;
            }
            Err(error) => {
                let why = format!("`{}`: {error}", path.display());
                return Err(Fault::Internal { why });
            }
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn open_below(root: &Path, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let anchor = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let anchor = rustix::fs::open(root, anchor, Mode::empty())?;
    let inside = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let strict = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&anchor, inside, flags, Mode::empty(), strict) {
        // An old kernel, or a sandbox that does not know the call: open, and look where we are.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened = rustix::fs::openat(&anchor, inside, flags, Mode::empty())?;
            let at = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
            let is_it = at.is_ok_and(|at| at == root.join(below));
            if is_it { Ok(opened) } else { Err(Errno::XDEV) }
        }
        opened => opened,
    }
}

/// Makes a directory and opens it; one that somebody else has made meanwhile is as good.
fn make_dir(parent: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn find(path: &Path, dirs: &[&Path]) -> Result<Place, String> {
        let dirs: Vec<PathBuf> = dirs.iter().map(|it| it.to_path_buf()).collect();
        Place::find(path, &dirs).map_err(|it| it.to_string())
    }

    #[test]
    fn a_path_is_judged_by_where_it_leads_and_not_by_how_it_looks() {
        let world = tempfile::tempdir().unwrap();
        let (work, other) = (world.path().join("work"), world.path().join("other"));
        fs::create_dir_all(work.join("a")).unwrap();
        fs::create_dir_all(&other).unwrap();
        symlink(&other, work.join("out")).unwrap();
        symlink(work.join("a"), work.join("in")).unwrap();
        symlink(work.join("nowhere"), work.join("dangling")).unwrap();
        let work = work.as_path();
        assert!(find(&work.join("a"), &[work]).is_ok());
        assert!(find(&work.join("in/new"), &[work]).is_ok_and(|it| it.below == Path::new("a")));
        assert!(find(&work.join("a/../a"), &[work]).is_ok());
        for outside in ["../other", "out", "out/new", "../missing", "a/../../other"] {
            let why = find(&work.join(outside), &[work]).unwrap_err();
            assert!(why.contains("outside the session's directories"), "{outside}: {why}");
        }
        assert!(find(&work.join("out"), &[work, &other]).is_ok());
        assert!(find(Path::new("a"), &[work]).unwrap_err().contains("absolute"));
        assert!(find(&work.join("dangling"), &[work]).unwrap_err().contains("link to nothing"));
        assert!(find(&work.join("no/../../x"), &[work]).unwrap_err().contains("goes up"));
    }

    #[test]
    fn a_directory_whose_name_only_begins_like_ours_is_outside() {
        let world = tempfile::tempdir().unwrap();
        let (work, twin) = (world.path().join("work"), world.path().join("work2"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&twin).unwrap();
        assert!(find(&twin, &[&work]).unwrap_err().contains("outside"));
    }

    #[test]
    fn a_directory_that_becomes_a_link_after_it_was_looked_at_is_not_followed() {
        let world = tempfile::tempdir().unwrap();
        let (work, other) = (world.path().join("work"), world.path().join("other"));
        fs::create_dir_all(work.join("a")).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(work.join("a/file"), "inside").unwrap();
        fs::write(other.join("file"), "outside").unwrap();
        let place = find(&work.join("a/file"), &[&work]).unwrap();
        fs::rename(work.join("a"), work.join("b")).unwrap();
        symlink(&other, work.join("a")).unwrap();
        let why = place.open(OFlags::RDONLY).unwrap_err().to_string();
        assert!(why.contains("changed while it was opened"), "{why}");
        assert!(place.open_parent().is_err());
    }
}
