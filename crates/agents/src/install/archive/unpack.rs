//! Unpacks a `.tar.gz` into an empty folder, and nothing anywhere else, whatever the archive contains.
//!
//! **Invariant:** every file and link is created below the folder, through real directories: a path with `..`, an absolute
//! path, and a path that leads through a link of the archive are refused.
//!
//! **Invariant:** every link leads to a place below the folder. `..` is accepted only at the beginning of its target, so
//! that no other link can change what it means.

use super::tar_reader::{EntryKind, TarEntry, TarReader, invalid};
use flate2::read::MultiGzDecoder;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Write as _},
    os::unix::fs::{OpenOptionsExt as _, symlink},
    path::{Component, Path, PathBuf},
};

/// How much an archive may contain.
#[derive(Clone, Copy)]
pub(super) struct UnpackLimits {
    pub(super) bytes_max: u64,
    pub(super) entries_max: u64,
}

/// The largest agents have some hundred megabytes and some ten thousand files.
pub(super) const UNPACK_LIMITS: UnpackLimits =
    UnpackLimits { bytes_max: 2 << 30, entries_max: 100_000 };

/// Unpacks an archive into a folder, which must be empty.
pub(super) fn unpack_archive(
    archive: &Path,
    folder: &Path,
    limits: UnpackLimits,
) -> io::Result<()> {
    let mut tar = TarReader::new(MultiGzDecoder::new(BufReader::new(File::open(archive)?)));
    let (mut bytes, mut entries) = (0_u64, 0);
    while let Some(entry) = tar.next_entry()? {
        entries += 1;
        // The sizes are added before anything is written.
        bytes = bytes.saturating_add(entry.size);
        if limits.bytes_max < bytes || limits.entries_max < entries {
            let UnpackLimits { bytes_max, entries_max } = limits;
            return Err(invalid(format!(
                "it has more than {bytes_max} bytes or {entries_max} files"
            )));
        }
        create_entry(folder, &entry, &mut tar)?;
    }
    Ok(())
}

fn create_entry<R: io::Read>(
    folder: &Path,
    entry: &TarEntry,
    tar: &mut TarReader<R>,
) -> io::Result<()> {
    let refused = |reason: &str| invalid(format!("`{}` {reason}", entry.path.escape_debug()));
    let mut names = list_names(&entry.path).ok_or_else(|| refused("leaves its folder"))?;
    // `./` is the folder itself.
    let Some(name) = names.pop() else { return Ok(()) };
    let parent = create_directories(folder, &names).map_err(|_| refused("has no directory"))?;
    let path = parent.join(&name);
    match &entry.kind {
        EntryKind::Directory => {
            create_directories(&parent, std::slice::from_ref(&name))
                .map_err(|_| refused("is there twice"))?;
        }
        EntryKind::File => {
            let mode = if entry.is_executable { 0o755 } else { 0o644 };
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(mode).open(&path);
            let mut file = file.map_err(|error| with_path(&error, &entry.path))?;
            tar.copy_content(&mut file)?;
            file.flush()?;
        }
        EntryKind::Symlink(target) => {
            if !is_inside(target, names.len()) {
                return Err(refused("is a link that leaves its folder"));
            }
            symlink(target, &path).map_err(|error| with_path(&error, &entry.path))?;
        }
        EntryKind::Other => {
            return Err(refused("is neither a file, a directory nor a symbolic link"));
        }
    }
    Ok(())
}

/// The names in a path; `None` if it is absolute or has `..`.
fn list_names(path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}

/// Creates the directories one below the other. Fails if one of them is there and is something else, such as a link.
fn create_directories(folder: &Path, names: &[String]) -> io::Result<PathBuf> {
    let mut path = folder.to_owned();
    for name in names {
        path.push(name);
        match fs::symlink_metadata(&path) {
            Ok(it) if it.is_dir() => {}
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&path)?,
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Whether the target of a link that is `depth` directories below the folder is in the folder.
fn is_inside(target: &str, depth: usize) -> bool {
    let (mut ups, mut has_name) = (0, false);
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir if has_name => return false,
            Component::ParentDir => ups += 1,
            Component::Normal(_) => has_name = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    !target.is_empty() && ups <= depth
}

fn with_path(error: &io::Error, path: &str) -> io::Error {
    io::Error::new(error.kind(), format!("failed to create `{}`: {error}", path.escape_debug()))
}
