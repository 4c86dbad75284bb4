//! Reads, writes and removes text files for agents. It runs off the event loop, because a disk may
//! be slow.

use crate::confined_path::{ConfinedPath, refuse_path};
use jackfield_protocol::Fault;
use rustix::{
    fs::{Access, AtFlags, Mode, OFlags},
    io::Errno,
};
use serde::Deserialize;
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

/// The most text in one response: half of the longest frame, because JSON escapes lengthen text.
const READ_BYTES_MAX: usize = 8 << 20;
/// The most bytes that are read to reach a line. That takes about a second; larger files are logs,
/// which agents do not read by line number.
const SEARCH_BYTES_MAX: usize = 512 << 20;

/// The parameters of `fs/read_text_file`.
#[derive(Debug, Deserialize)]
pub struct ReadFileRequest {
    pub path: PathBuf,
    /// The first line to read, counted from 1.
    pub line: Option<u64>,
    /// The number of lines to read.
    pub limit: Option<u64>,
}

/// The parameters of `fs/write_text_file`.
#[derive(Debug, Deserialize)]
pub struct WriteFileRequest {
    pub path: PathBuf,
    pub content: String,
}

/// Removes a file. ACP has no such method; only Jackfield's own agent uses it.
#[derive(Debug)]
pub struct RemoveFileRequest {
    pub path: PathBuf,
}

impl ReadFileRequest {
    pub fn execute(&self, dirs: &[PathBuf]) -> Result<String, Fault> {
        self.execute_at(&ConfinedPath::resolve(&self.path, dirs)?)
    }

    /// Reads a path that was resolved before.
    pub fn execute_at(&self, target: &ConfinedPath) -> Result<String, Fault> {
        if !target.missing_components.is_empty() {
            return Err(target.to_fault(Errno::NOENT));
        }
        // Opening a named pipe without `NONBLOCK` would wait for a writer.
        let file = File::from(target.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        let bytes = match file.metadata() {
            Ok(metadata) => {
                require_regular_file(target, metadata.is_dir(), metadata.is_file())?;
                self.read_lines(target, file, metadata.len())?
            }
            Err(error) => return Err(io_fault(target, &error)),
        };
        String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let why = format!("is not UTF-8 text: byte {offset} of the requested range is invalid");
            refuse_path(&target.requested, &why)
        })
    }

    fn read_lines(&self, target: &ConfinedPath, file: File, length: u64) -> Result<Vec<u8>, Fault> {
        let reads_whole_file = self.line.is_none() && self.limit.is_none();
        if reads_whole_file && u64::try_from(READ_BYTES_MAX).is_ok_and(|max| max < length) {
            return Err(answer_too_large(target));
        }
        let first_line = self.line.unwrap_or(1).max(1);
        let end_line = self.limit.map_or(u64::MAX, |it| first_line.saturating_add(it));
        let mut reader = BufReader::with_capacity(1 << 16, file.take(SEARCH_BYTES_MAX as u64 + 1));
        let (mut selected, mut line, mut searched) = (Vec::new(), 1, 0);
        while line < end_line {
            let buffer = reader.fill_buf().map_err(|error| io_fault(target, &error))?;
            if buffer.is_empty() {
                break;
            }
            let mut consumed = 0;
            for part in buffer.split_inclusive(|byte| *byte == b'\n') {
                if end_line <= line {
                    break;
                }
                if first_line <= line {
                    selected.extend_from_slice(part);
                }
                consumed += part.len();
                line += u64::from(part.ends_with(b"\n"));
            }
            reader.consume(consumed);
            searched += consumed;
            if READ_BYTES_MAX < selected.len() {
                return Err(answer_too_large(target));
            }
            if SEARCH_BYTES_MAX < searched {
                let why =
                    format!("has no line {first_line} within its first {SEARCH_BYTES_MAX} bytes");
                return Err(refuse_path(&target.requested, &why));
            }
        }
        Ok(selected)
    }
}

impl WriteFileRequest {
    /// Replaces the file atomically: a concurrent reader sees either the old text or the new text.
    pub fn execute(&self, dirs: &[PathBuf]) -> Result<(), Fault> {
        self.execute_at(&ConfinedPath::resolve(&self.path, dirs)?)
    }

    /// Writes to a path that was resolved before.
    pub fn execute_at(&self, target: &ConfinedPath) -> Result<(), Fault> {
        let (parent, name) = target.open_parent()?;
        let fault = |errno| target.to_fault(errno);
        let mode = match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let file_type = rustix::fs::FileType::from_raw_mode(stat.st_mode);
                require_regular_file(target, file_type.is_dir(), file_type.is_file())?;
                let access =
                    rustix::fs::accessat(&parent, &name, Access::WRITE_OK, AtFlags::empty());
                if access.is_err() {
                    return Err(refuse_path(&target.requested, "is read-only"));
                }
                Some(Mode::from_raw_mode(stat.st_mode))
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(fault(errno)),
        };
        // The replaced file may be more private than a new one, so its replacement starts private.
        let initial_mode = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let temporary = TemporaryFile::create(&parent, initial_mode).map_err(fault)?;
        temporary.write(self.content.as_bytes(), mode).map_err(|error| io_fault(target, &error))?;
        temporary.rename_to(&name).map_err(fault)
    }
}

impl RemoveFileRequest {
    pub fn execute(&self, dirs: &[PathBuf]) -> Result<(), Fault> {
        let target = ConfinedPath::resolve(&self.path, dirs)?;
        if !target.missing_components.is_empty() {
            return Err(target.to_fault(Errno::NOENT));
        }
        let (parent, name) = target.open_parent()?;
        let fault = |errno| target.to_fault(errno);
        let stat = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(fault)?;
        let file_type = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        require_regular_file(&target, file_type.is_dir(), file_type.is_file())?;
        rustix::fs::unlinkat(&parent, &name, AtFlags::empty()).map_err(fault)
    }
}

/// Holds the new text under a temporary name until it is complete. Removed on drop unless renamed.
struct TemporaryFile<'a> {
    parent: &'a OwnedFd,
    name: OsString,
    file: File,
    is_renamed: bool,
}

impl TemporaryFile<'_> {
    fn create(parent: &OwnedFd, mode: Mode) -> Result<TemporaryFile<'_>, Errno> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".jackfield-{}-{count}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;

        let opened = rustix::fs::openat(parent, &name, flags, mode)?;
        let file = File::from(opened);
        Ok(TemporaryFile { parent, name, file, is_renamed: false })
    }

    fn write(&self, text: &[u8], mode: Option<Mode>) -> io::Result<()> {
        (&self.file).write_all(text)?;
        // Where all files have one mode, as on a drive of Windows in WSL, setting it may not be permitted.
        let own_mode = Mode::from_raw_mode(rustix::fs::fstat(&self.file)?.st_mode);
        if let Some(mode) = mode.filter(|it| *it != own_mode) {
            rustix::fs::fchmod(&self.file, mode)?;
        }
        Ok(())
    }

    fn rename_to(mut self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::renameat(self.parent, &self.name, self.parent, name)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_renamed {
            // A failure leaves the file behind; nothing else can be done here.
            let _result = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
        }
    }
}

fn require_regular_file(target: &ConfinedPath, is_dir: bool, is_file: bool) -> Result<(), Fault> {
    match (is_dir, is_file) {
        (true, _) => Err(refuse_path(&target.requested, "is a directory")),
        (_, false) => Err(refuse_path(&target.requested, "is not a regular file")),
        _ => Ok(()),
    }
}

fn answer_too_large(target: &ConfinedPath) -> Fault {
    let mib = READ_BYTES_MAX >> 20;
    let why = format!("has more than {mib} MiB, the limit of one response: use `line` and `limit`");
    refuse_path(&target.requested, &why)
}

fn io_fault(target: &ConfinedPath, error: &io::Error) -> Fault {
    Fault::Internal { why: format!("`{}`: {error}", target.requested.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    fn read(path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        let dirs = [path.parent().unwrap().to_owned()];
        let request = ReadFileRequest { path: path.to_owned(), line, limit };
        request.execute(&dirs).map_err(|it| it.to_string())
    }

    fn write(path: &Path, root: &Path, content: &str) -> Result<(), String> {
        let request = WriteFileRequest { path: path.to_owned(), content: content.to_owned() };
        request.execute(&[root.to_owned()]).map_err(|it| it.to_string())
    }

    #[test]
    fn lines_are_counted_from_one_and_limited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "one\ntwo\nthree").unwrap();
        let read = |line, limit| read(&path, line, limit).unwrap();
        assert_eq!(read(None, None), "one\ntwo\nthree");
        assert_eq!(read(Some(2), None), "two\nthree");
        assert_eq!(read(Some(1), Some(1)), "one\n");
        assert_eq!(read(Some(3), Some(9)), "three");
        assert_eq!((read(Some(4), None), read(None, Some(0))), (String::new(), String::new()));
        assert_eq!(read(Some(0), Some(2)), "one\ntwo\n");
    }

    #[test]
    fn binary_special_and_oversized_files_are_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let why = |name: &str| read(&at(name), None, None).unwrap_err();
        fs::write(at("binary"), b"ab\xff").unwrap();
        assert!(why("binary").contains("byte 2"), "{}", why("binary"));
        fs::create_dir(at("dir")).unwrap();
        assert!(why("dir").contains("is a directory"));
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.unwrap().success());
        assert!(why("pipe").contains("not a regular file"), "{}", why("pipe"));
        assert!(write(&at("pipe"), dir.path(), "x").unwrap_err().contains("not a regular file"));
        assert!(why("missing").contains("no file"), "{}", why("missing"));
        fs::write(at("big"), "x\n".repeat(READ_BYTES_MAX / 2 + 1)).unwrap();
        assert!(why("big").contains("`line` and `limit`"), "{}", why("big"));
        assert_eq!(read(&at("big"), Some(9), Some(2)).unwrap(), "x\nx\n");
        let all_lines = Some(READ_BYTES_MAX as u64);
        assert!(read(&at("big"), Some(1), all_lines).unwrap_err().contains("more than"));
    }

    #[test]
    fn write_replaces_the_text_and_keeps_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        write(&path, dir.path(), "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn remove_accepts_only_regular_files_inside_the_directories() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::write(work.join("a"), "").unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        let dirs = [work.clone()];
        let remove = |path| RemoveFileRequest { path }.execute(&dirs).map_err(|it| it.to_string());
        remove(work.join("a")).unwrap();
        assert!(!work.join("a").exists());
        assert!(remove(work.join("a")).unwrap_err().contains("no file"));
        assert!(remove(work.join("sub")).unwrap_err().contains("is a directory"));
        assert!(remove(work.join("../b")).unwrap_err().contains("outside"));
        assert!(dir.path().join("b").exists());
    }

    #[test]
    fn spaces_quotes_and_other_scripts_in_a_path_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("mnt/c/Users/Zoë O'Neil/Проект \u{2068}一\u{2069} 100%");
        fs::create_dir_all(&root).unwrap();
        let path = root.join("src dir/a \"b\" $HOME.txt");
        write(&path, &root, "one\n").unwrap();
        write(&path, &root, "two\n").unwrap();
        assert_eq!(read(&path, None, None).unwrap(), "two\n");
        let neighbor = dir.path().join("mnt/c/Users/Zoë");
        fs::create_dir_all(&neighbor).unwrap();
        assert!(write(&neighbor.join("x"), &root, "x").unwrap_err().contains("outside"));
        RemoveFileRequest { path: path.clone() }.execute(&[root]).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn write_creates_missing_directories_and_follows_links() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.txt");
        write(&path, dir.path(), "text").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, dir.path(), "through").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "through");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(write(dir.path(), dir.path(), "x").unwrap_err().contains("is a directory"));
        assert!(write(&path.join("d"), dir.path(), "x").unwrap_err().contains("not a directory"));
    }
}
