//! The log file with a size limit: when it is full, its content moves to a second file.

use jackfield_private_files as private_files;
use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Seek as _, Write},
    path::{Path, PathBuf},
};

/// The log and its predecessor take up to twice this.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// A file that log lines are appended to. Other writers may append, too: the stderr of a background
/// daemon is the same file, which is why it is emptied and not replaced.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    bytes_max: u64,
}

/// Empties a full log before something else is appended to it.
pub fn limit_log(path: &Path) -> io::Result<()> {
    LogFile::open(path)?.rotate_if_full()
}

impl LogFile {
    pub(crate) fn open(path: &Path) -> io::Result<LogFile> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        let file = private_files::open_file(path, &mut options)?;
        Ok(LogFile { path: path.to_owned(), file, bytes_max: LOG_BYTES_MAX })
    }

    /// A device or a pipe is never full.
    fn is_full(&self) -> io::Result<bool> {
        let metadata = self.file.metadata()?;
        Ok(metadata.is_file() && self.bytes_max <= metadata.len())
    }

    fn rotate_if_full(&mut self) -> io::Result<()> {
        if !self.is_full()? {
            return Ok(());
        }
        let mut old = OsString::from(&self.path);
        old.push(".old");
        let mut old = private_files::create_file(old.as_ref())?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut old)?;
        self.file.set_len(0)
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A log that cannot be moved, for example on a full disk, is better than no log.
        let _ignored = self.rotate_if_full();
        self.file.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::MetadataExt as _};

    #[test]
    fn full_log_moves_to_a_second_file_and_other_writers_stay_with_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("daemon.log"), dir.path().join("daemon.log.old"));
        let mut other = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut log = LogFile { bytes_max: 100, ..LogFile::open(&path).unwrap() };
        let line = |number: u32| format!("line {number:04}\n").into_bytes();
        for number in 0..95 {
            log.write_all(&line(number)).unwrap();
        }
        other.write_all(b"a panic\n").unwrap();
        let (now, before) = (fs::read_to_string(&path).unwrap(), fs::read_to_string(&old).unwrap());
        assert_eq!(now, "line 0090\nline 0091\nline 0092\nline 0093\nline 0094\na panic\n");
        assert!(before.starts_with("line 0080\n") && before.ends_with("line 0089\n"), "{before}");
        assert_eq!(fs::metadata(&old).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "one old file is kept");
    }

    #[test]
    fn device_is_written_to_without_a_limit() {
        let mut log = LogFile { bytes_max: 0, ..LogFile::open(Path::new("/dev/null")).unwrap() };
        log.write_all(b"line\n").unwrap();
        assert!(!Path::new("/dev/null.old").exists());
    }
}
