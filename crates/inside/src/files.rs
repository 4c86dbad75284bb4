//! Reading and writing text files for agents. Runs beside the loop: a file may be slow.

use crate::place::{Place, refused};
use jackfield_wire::Fault;
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

/// What one answer may hold: half of the longest frame, because escapes make text longer.
const READ_BYTES_MAX: usize = 8 << 20;
/// How much is read in search of a line: a second's work, and no agent reads logs by line number.
const SEARCH_BYTES_MAX: usize = 512 << 20;

/// `fs/read_text_file`.
#[derive(Debug, Deserialize)]
pub struct ReadFile {
    pub path: PathBuf,
    /// From 1.
    pub line: Option<u64>,
    pub limit: Option<u64>,
}

/// `fs/write_text_file`.
#[derive(Debug, Deserialize)]
pub struct WriteFile {
    pub path: PathBuf,
    pub content: String,
}

/// No method of the protocol: only our own agent removes files.
#[derive(Debug)]
pub struct RemoveFile {
    pub path: PathBuf,
}

impl ReadFile {
    pub fn run(&self, dirs: &[PathBuf]) -> Result<String, Fault> {
        let place = Place::find(&self.path, dirs)?;
        if !place.missing.is_empty() {
            return Err(place.fault(Errno::NOENT));
        }
        // Without waiting: to open a pipe waits for its other end.
        let file = File::from(place.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        let bytes = match file.metadata() {
            Ok(meta) => {
                is_file(&place, meta.is_dir(), meta.is_file())?;
                self.read(&place, file, meta.len())?
            }
            Err(error) => return Err(failed(&place, &error)),
        };
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let why = format!("is no text in UTF-8: byte {at} of what was asked for is not");
            refused(&place.shown, &why)
        })
    }

    fn read(&self, place: &Place, file: File, length: u64) -> Result<Vec<u8>, Fault> {
        let whole = self.line.is_none() && self.limit.is_none();
        if whole && u64::try_from(READ_BYTES_MAX).is_ok_and(|max| max < length) {
            return Err(too_big(place));
        }
        let from = self.line.unwrap_or(1).max(1);
        let past = self.limit.map_or(u64::MAX, |it| from.saturating_add(it));
        let mut reader = BufReader::with_capacity(1 << 16, file.take(SEARCH_BYTES_MAX as u64 + 1));
        let (mut kept, mut line, mut searched) = (Vec::new(), 1, 0);
        while line < past {
            let piece = reader.fill_buf().map_err(|error| failed(place, &error))?;
            if piece.is_empty() {
                break;
            }
            let mut used = 0;
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                if past <= line {
                    break;
                }
                if from <= line {
                    kept.extend_from_slice(part);
                }
                used += part.len();
                line += u64::from(part.ends_with(b"\n"));
            }
            reader.consume(used);
            searched += used;
            if READ_BYTES_MAX < kept.len() {
                return Err(too_big(place));
            }
            if SEARCH_BYTES_MAX < searched {
                let why = format!("has no line {from} within its first {SEARCH_BYTES_MAX} bytes");
                return Err(refused(&place.shown, &why));
            }
        }
        Ok(kept)
    }
}

impl WriteFile {
    /// All or nothing: whoever reads meanwhile sees the old text or the new one.
    pub fn run(&self, dirs: &[PathBuf]) -> Result<(), Fault> {
        let place = Place::find(&self.path, dirs)?;
        let (parent, name) = place.open_parent()?;
        let fault = |errno| place.fault(errno);
        let mode = match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let file = rustix::fs::FileType::from_raw_mode(stat.st_mode);
                is_file(&place, file.is_dir(), file.is_file())?;
                let access =
                    rustix::fs::accessat(&parent, &name, Access::WRITE_OK, AtFlags::empty());
                if access.is_err() {
                    return Err(refused(&place.shown, "is read-only"));
                }
                Some(Mode::from_raw_mode(stat.st_mode))
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(fault(errno)),
        };
        let draft = Draft::new(&parent, mode.is_some()).map_err(fault)?;
        draft.write(self.content.as_bytes(), mode).map_err(|error| failed(&place, &error))?;
        draft.become_file(&name).map_err(fault)
    }
}

impl RemoveFile {
    pub fn run(&self, dirs: &[PathBuf]) -> Result<(), Fault> {
        let place = Place::find(&self.path, dirs)?;
        if !place.missing.is_empty() {
            return Err(place.fault(Errno::NOENT));
        }
        let (parent, name) = place.open_parent()?;
        let fault = |errno| place.fault(errno);
        let stat = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(fault)?;
        let file = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        is_file(&place, file.is_dir(), file.is_file())?;
        rustix::fs::unlinkat(&parent, &name, AtFlags::empty()).map_err(fault)
    }
}

/// The new text, under another name until it is whole.
struct Draft<'a> {
    parent: &'a OwnedFd,
    name: OsString,
    file: File,
    done: bool,
}

impl Draft<'_> {
    fn new(parent: &OwnedFd, replaces: bool) -> Result<Draft<'_>, Errno> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".jackfield-{}-{count}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // What replaces a file may be meant for fewer eyes than a new one.
        let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
        let file = File::from(rustix::fs::openat(parent, &name, flags, mode)?);
        Ok(Draft { parent, name, file, done: false })
    }

    fn write(&self, text: &[u8], mode: Option<Mode>) -> io::Result<()> {
        (&self.file).write_all(text)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&self.file, mode)?;
        }
        Ok(())
    }

    fn become_file(mut self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::renameat(self.parent, &self.name, self.parent, name)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.done {
            // There is nothing else to be done about it.
            let _left = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
        }
    }
}

fn is_file(place: &Place, is_dir: bool, is_file: bool) -> Result<(), Fault> {
    match (is_dir, is_file) {
        (true, _) => Err(refused(&place.shown, "is a directory")),
        (_, false) => Err(refused(&place.shown, "is no regular file")),
        _ => Ok(()),
    }
}

fn too_big(place: &Place) -> Fault {
    let mib = READ_BYTES_MAX >> 20;
    let why = format!("has more than {mib} MiB, the most in one answer: use `line` and `limit`");
    refused(&place.shown, &why)
}

fn failed(place: &Place, error: &io::Error) -> Fault {
    Fault::Internal { why: format!("`{}`: {error}", place.shown.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    fn read(path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        let dirs = [path.parent().unwrap().to_owned()];
        let request = ReadFile { path: path.to_owned(), line, limit };
        request.run(&dirs).map_err(|it| it.to_string())
    }

    fn write(path: &Path, root: &Path, content: &str) -> Result<(), String> {
        let request = WriteFile { path: path.to_owned(), content: content.to_owned() };
        request.run(&[root.to_owned()]).map_err(|it| it.to_string())
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
    fn what_is_no_text_file_of_a_fair_size_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let why = |name: &str| read(&at(name), None, None).unwrap_err();
        fs::write(at("binary"), b"ab\xff").unwrap();
        assert!(why("binary").contains("byte 2"), "{}", why("binary"));
        fs::create_dir(at("dir")).unwrap();
        assert!(why("dir").contains("is a directory"));
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
        assert!(why("pipe").contains("no regular file"), "{}", why("pipe"));
        assert!(write(&at("pipe"), dir.path(), "x").unwrap_err().contains("no regular file"));
        assert!(why("missing").contains("no file"), "{}", why("missing"));
        fs::write(at("big"), "x\n".repeat(READ_BYTES_MAX / 2 + 1)).unwrap();
        assert!(why("big").contains("`line` and `limit`"), "{}", why("big"));
        assert_eq!(read(&at("big"), Some(9), Some(2)).unwrap(), "x\nx\n");
        let half = Some(READ_BYTES_MAX as u64);
        assert!(read(&at("big"), Some(1), half).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_write_replaces_the_text_and_keeps_the_mode() {
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
    fn only_a_file_inside_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::write(work.join("a"), "").unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        let dirs = [work.clone()];
        let remove = |path| RemoveFile { path }.run(&dirs).map_err(|it| it.to_string());
        remove(work.join("a")).unwrap();
        assert!(!work.join("a").exists());
        assert!(remove(work.join("a")).unwrap_err().contains("no file"));
        assert!(remove(work.join("sub")).unwrap_err().contains("is a directory"));
        assert!(remove(work.join("../b")).unwrap_err().contains("outside"));
        assert!(dir.path().join("b").exists());
    }

    #[test]
    fn missing_directories_are_made_and_links_are_written_through() {
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
        assert!(write(&path.join("d"), dir.path(), "x").unwrap_err().contains("no directory"));
    }
}
