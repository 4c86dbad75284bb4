//! Creates files with mode 0600 and directories with mode 0700, independent of the umask.
//!
//! Jackfield creates all of its own files through this crate. Files that an agent writes into a
//! project do not pass through it.

use rustix::{
    fs::{FlockOperation, flock},
    io::retry_on_intr,
};
use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::Path,
};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const GROUP_AND_OTHERS: u32 = 0o077;

/// Creates a directory and its missing parents. Existing directories keep their mode. The error names the directory
/// that could not be created, or the file that is in its place.
pub fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_dir(parent)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)),
        // Another process created it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("`{}` is not a directory", path.display());
            Err(io::Error::new(io::ErrorKind::NotADirectory, message))
        }
        Err(error) => {
            let message = format!("cannot create `{}`: {error}", path.display());
            Err(io::Error::new(error.kind(), message))
        }
    }
}

/// Creates a directory, or removes the access of group and others from an existing one. Refuses a
/// symbolic link and a directory of another user.
pub fn ensure_private_dir(path: &Path) -> io::Result<()> {
    create_dir(path)?;
    if !is_own_dir(path)? {
        let user = rustix::process::geteuid().as_raw();
        let message = format!("it is not a directory of user {user}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if path.symlink_metadata()?.mode() & GROUP_AND_OTHERS != 0 {
        fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// Whether a path is a directory (not a symbolic link to one) that belongs to this user.
pub fn is_own_dir(path: &Path) -> io::Result<bool> {
    let metadata = path.symlink_metadata()?;
    Ok(metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Opens a file with these options and removes the access of group and others. A device keeps its
/// mode.
pub fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(FILE_MODE).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.mode() & 0o7777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Removes the access of group and others from a file that other code created.
pub fn restrict_file(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
}

/// Creates a file, or truncates an existing one.
pub fn create_file(path: &Path) -> io::Result<File> {
    open_file(path, OpenOptions::new().write(true).create(true).truncate(true))
}

/// Writes a whole file. The write is not atomic: a concurrent reader may see a part of it.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    create_file(path)?.write_all(content)
}

/// Replaces a file atomically and creates its directory. A reader sees the old content or the new
/// content.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        create_dir(dir)?;
    }
    let draft = path.with_added_extension(format!("new-{}", std::process::id()));
    let replaced = write_file(&draft, content).and_then(|()| fs::rename(&draft, path));
    if replaced.is_err() {
        // The first error is reported; an error while the draft is removed would hide the cause.
        let _ = fs::remove_file(&draft);
    }
    replaced
}

/// Waits until no other process changes the file, and keeps them waiting until the result is dropped. The lock is a file
/// beside it, since [`replace_file`] replaces the file itself.
pub fn lock_file(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        create_dir(dir)?;
    }
    let lock = path.with_extension("lock");
    let lock = open_file(&lock, OpenOptions::new().append(true).create(true))?;
    retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))?;
    Ok(lock)
}

/// Creates an empty SQLite file, or removes the access of group and others from an existing one.
/// SQLite creates the WAL and shared-memory files with the mode of the database, but does not
/// change the mode of files that an earlier process left behind.
pub fn prepare_database(path: &Path) -> io::Result<()> {
    open_file(path, OpenOptions::new().append(true).create(true))?;
    for suffix in ["-wal", "-shm"] {
        let mut companion = OsString::from(path);
        companion.push(suffix);
        match restrict_file(companion.as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn create_dir_makes_missing_parents_private_and_keeps_existing_modes() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (dir.path().join("outer"), dir.path().join("outer/a/b"));
        fs::create_dir(&outer).unwrap();
        fs::set_permissions(&outer, Permissions::from_mode(0o755)).unwrap();
        create_dir(&inner).unwrap();
        create_dir(&inner).unwrap();
        assert_eq!(
            [mode(&outer), mode(&dir.path().join("outer/a")), mode(&inner)],
            [0o755, 0o700, 0o700]
        );
        ensure_private_dir(&outer).unwrap();
        assert_eq!(mode(&outer), 0o700);
    }

    #[test]
    fn error_of_create_dir_names_the_file_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let expected = format!("`{}` is not a directory", file.display());
        for path in [file.clone(), file.join("a/b")] {
            let error = create_dir(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn ensure_private_dir_refuses_a_symbolic_link_and_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (link, file) = (dir.path().join("link"), dir.path().join("file"));
        symlink(dir.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(ensure_private_dir(&link).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(ensure_private_dir(&file).is_err());
    }

    #[test]
    fn writing_a_file_removes_the_access_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/file");
        replace_file(&path, b"one").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"one".to_vec()));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write_file(&path, b"2").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"2".to_vec()));
        assert_eq!(fs::read_dir(dir.path().join("deep")).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn prepare_database_removes_the_access_of_others_from_the_wal() {
        let dir = tempfile::tempdir().unwrap();
        let (database, wal) = (dir.path().join("a.db"), dir.path().join("a.db-wal"));
        for path in [&database, &wal] {
            fs::write(path, "kept").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        prepare_database(&database).unwrap();
        assert_eq!([mode(&database), mode(&wal)], [0o600; 2]);
        assert_eq!(fs::read(&database).unwrap(), b"kept");
    }
}
