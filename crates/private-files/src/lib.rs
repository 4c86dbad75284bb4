//! Files and directories that only their owner can use: modes 0600 and 0700, whatever the umask is.
//!
//! Everything that Jackfield keeps is created here. What an agent writes into a project is not.

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
const OTHERS: u32 = 0o077;

/// Creates a directory and its missing parents. Directories that exist stay as they are.
pub fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_dir(parent)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a directory, or takes away the access of others to one that exists. A link, or a directory
/// of another user, is refused.
pub fn claim_dir(path: &Path) -> io::Result<()> {
    create_dir(path)?;
    if !is_own_dir(path)? {
        let user = rustix::process::geteuid().as_raw();
        let why = format!("it is not a directory of user {user}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if path.symlink_metadata()?.mode() & OTHERS != 0 {
        fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// Whether a path is a directory, not a link to one, and belongs to this user.
pub fn is_own_dir(path: &Path) -> io::Result<bool> {
    let metadata = path.symlink_metadata()?;
    Ok(metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Opens a file with these options, and takes away the access of others. A device stays as it is.
pub fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(FILE_MODE).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.mode() & 0o7777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Takes away the access of others to a file that something else created.
pub fn close_file(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
}

/// Creates a file, or truncates the one that exists.
pub fn create_file(path: &Path) -> io::Result<File> {
    open_file(path, OpenOptions::new().write(true).create(true).truncate(true))
}

/// Writes a whole file. A reader may see half of it.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    create_file(path)?.write_all(content)
}

/// Replaces a file and creates its directory. A reader sees the old content or the new one.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        create_dir(dir)?;
    }
    let draft = path.with_added_extension(format!("new-{}", std::process::id()));
    let replaced = write_file(&draft, content).and_then(|()| fs::rename(&draft, path));
    if replaced.is_err() {
        // The first failure says more than one about the draft.
        let _left = fs::remove_file(&draft);
    }
    replaced
}

/// Creates an empty SQLite file, or takes away the access of others to one that exists. SQLite gives the
/// mode of the database to the files beside it, but not to those that an earlier process left.
pub fn prepare_database(path: &Path) -> io::Result<()> {
    open_file(path, OpenOptions::new().append(true).create(true))?;
    for suffix in ["-wal", "-shm"] {
        let mut beside = OsString::from(path);
        beside.push(suffix);
        match close_file(beside.as_ref()) {
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
    fn missing_parents_are_private_and_existing_directories_stay_as_they_are() {
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
        claim_dir(&outer).unwrap();
        assert_eq!(mode(&outer), 0o700);
    }

    #[test]
    fn link_and_file_are_refused_as_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (link, file) = (dir.path().join("link"), dir.path().join("file"));
        symlink(dir.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(claim_dir(&link).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(claim_dir(&file).is_err());
    }

    #[test]
    fn file_that_was_open_to_others_is_closed_when_it_is_written() {
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
    fn files_beside_a_database_are_closed_with_it() {
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
