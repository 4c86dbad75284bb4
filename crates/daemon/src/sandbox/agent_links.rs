//! Symbolic links that agents may have created, also agents of other and of earlier sessions.
//!
//! A session in `project/inner` may be opened or restored after an agent with write access to `project` has replaced
//! `inner` by a link. The target of the link must not become a directory of the session.

use jackfield_private_files as private_files;
use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::ffi::OsStringExt as _,
    path::{Component, Path, PathBuf},
};

/// The kernel follows no more links, either.
const LINKS_MAX: usize = 40;

/// The directories that sandboxed agents could ever write to. They are kept in a file, one in each line.
#[derive(Debug)]
pub(super) struct WritableDirectories {
    file: PathBuf,
}

/// A link in a directory that agents can write to, which leads out of that directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AgentLink {
    pub(super) link: PathBuf,
    pub(super) directory: PathBuf,
}

impl WritableDirectories {
    pub(super) fn new(file: PathBuf) -> WritableDirectories {
        WritableDirectories { file }
    }

    /// Remembers directories without symbolic links.
    pub(super) fn add<'a>(&self, added: impl Iterator<Item = &'a Path>) -> io::Result<()> {
        let known = self.read()?;
        // A line end in a path would split it.
        let is_new = |it: &&Path| {
            let has_line_end = it.as_os_str().as_encoded_bytes().contains(&b'\n');
            !has_line_end && !known.iter().any(|known| it.starts_with(known))
        };
        let mut lines = Vec::new();
        for path in added.filter(is_new) {
            lines.extend_from_slice(path.as_os_str().as_encoded_bytes());
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(folder) = self.file.parent() {
            private_files::create_dir(folder)?;
        }
        let mut options = OpenOptions::new();
        private_files::open_file(&self.file, options.create(true).append(true))?.write_all(&lines)
    }

    /// The first link on a path that an agent may have created to lead out of the directory it could write to.
    pub(super) fn find_link(&self, path: &Path) -> io::Result<Option<AgentLink>> {
        let known = self.read()?;
        if known.is_empty() {
            return Ok(None);
        }
        for (link, target) in list_links(path)? {
            let is_inside = |it: &&PathBuf| link.starts_with(it) && !target.starts_with(it);
            if let Some(directory) = known.iter().find(is_inside) {
                return Ok(Some(AgentLink { directory: directory.clone(), link }));
            }
        }
        Ok(None)
    }

    fn read(&self) -> io::Result<BTreeSet<PathBuf>> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let lines = bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty());
        Ok(lines.map(|it| PathBuf::from(OsString::from_vec(it.to_vec()))).collect())
    }
}

/// The links that a path leads through, in this order, each with the place that it finally leads to. The directory of a
/// link is given without links.
fn list_links(path: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut links = Vec::new();
    let mut rest: VecDeque<OsString> = names(path).collect();
    let mut place = PathBuf::from("/");
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            place.pop();
            continue;
        }
        let next = place.join(name);
        if !fs::symlink_metadata(&next)?.is_symlink() {
            place = next;
            continue;
        }
        if LINKS_MAX <= links.len() {
            return Err(io::Error::other("too many symbolic links"));
        }
        let target = fs::read_link(&next)?;
        links.push((next.clone(), fs::canonicalize(&next)?));
        if target.is_absolute() {
            place = PathBuf::from("/");
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(name);
        }
    }
    Ok(links)
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn link_that_leads_out_of_a_directory_of_agents_is_found_on_every_way_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        for name in ["project/real", "secrets", "other"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        symlink(path("secrets"), path("project/inner")).unwrap();
        symlink("inner", path("project/chain")).unwrap();
        symlink("real", path("project/inside")).unwrap();
        symlink("../secrets", path("project/up")).unwrap();
        symlink(path("project/inner"), path("shortcut")).unwrap();
        symlink(path("secrets"), path("own")).unwrap();
        let directories = WritableDirectories::new(path("state/directories"));
        let find = |name: &str| directories.find_link(&path(name)).unwrap();
        assert_eq!(find("project/inner"), None, "no agent could write there");
        directories
            .add([path("project"), path("project/real")].iter().map(PathBuf::as_path))
            .unwrap();
        let found = |link: &str| Some(AgentLink { link: path(link), directory: path("project") });
        assert_eq!(find("project/inner"), found("project/inner"));
        assert_eq!(find("project/chain"), found("project/chain"));
        assert_eq!(find("project/up"), found("project/up"));
        assert_eq!(find("shortcut"), found("project/inner"));
        for harmless in ["project", "project/real", "project/inside", "own", "other"] {
            assert_eq!(find(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn directories_are_remembered_once_by_the_next_daemon_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("directories");
        for _ in 0..2 {
            let directories = WritableDirectories::new(file.clone());
            directories.add([Path::new("/a"), Path::new("/b")].into_iter()).unwrap();
            directories.add([Path::new("/a/inner")].into_iter()).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "/a\n/b\n");
    }
}
