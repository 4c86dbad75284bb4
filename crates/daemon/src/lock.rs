//! The lock file of a state directory: ensures that at most one daemon runs, and identifies its
//! process. The first line is the pid of the daemon, the second one the path of its socket.

use crate::boot_error::BootError;
use jackfield_agents::{ProcessPin, Signal, holds_lock};
use jackfield_private_files as private_files;
use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, retry_on_intr},
};
use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::FileExt as _,
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// How long to wait for the lock. A child that a killed daemon was just starting holds it until it
/// executes its own program, and a command that checks the lock holds it for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A pid and a path; a longer file is not a lock file of Jackfield.
const FILE_BYTES_MAX: u64 = 8 * 1024;

/// The lock of a state directory. The system releases it when the process ends.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    _file: File,
}

impl DaemonLock {
    /// Acquires the lock, and writes the pid of this process and its socket.
    pub(crate) fn take(path: &Path, socket: &Path) -> Result<DaemonLock, BootError> {
        let unusable = |source| BootError::Lock { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = private_files::open_file(path, &mut options).map_err(unusable)?;
        let since = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if LOCK_TIMEOUT < since.elapsed() {
                let pid = find_holder(path).ok().flatten().and_then(|it| it.pid);
                return Err(BootError::AlreadyRuns { path: path.to_owned(), pid });
            }
            thread::sleep(LOCK_POLL_INTERVAL);
        }
        let mut content = format!("{}\n", std::process::id()).into_bytes();
        content.extend(socket.as_os_str().as_bytes());
        content.push(b'\n');
        // In this order a reader never sees an empty file.
        file.write_all_at(&content, 0).map_err(unusable)?;
        file.set_len(content.len() as u64).map_err(unusable)?;
        Ok(DaemonLock { _file: file })
    }
}

/// The daemon that holds the lock of a state directory, as the lock file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    lock: PathBuf,
    /// Not verified: see [`LockHolder::pin`].
    pub pid: Option<u32>,
    /// The socket it listens on; unknown for a daemon of an earlier version.
    pub socket: Option<PathBuf>,
}

/// The daemon that holds this lock; `None` if no process does.
pub fn find_holder(path: &Path) -> io::Result<Option<LockHolder>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Shared, so that concurrent commands do not take each other for a daemon.
    match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockShared)) {
        Ok(()) => return Ok(None),
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error.into()),
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    let mut lines = content.split(|it| *it == b'\n');
    let pid = lines.next().and_then(|it| str::from_utf8(it).ok()?.trim().parse().ok());
    let socket = lines.next().filter(|it| it.starts_with(b"/"));
    let socket = socket.map(|it| OsString::from_vec(it.to_vec()).into());
    Ok(Some(LockHolder { lock: path.to_owned(), pid, socket }))
}

impl LockHolder {
    /// The process of the daemon, if the process with the pid in the file holds the lock now. A
    /// process that only has the pid of an earlier daemon is never returned.
    pub fn pin(&self) -> Option<HolderProcess> {
        let pid = self.pid?;
        // Opened before the check, so that it refers to the process that is checked below.
        let pin = ProcessPin::open(pid)?;
        let process = HolderProcess { pid, pin, lock: self.lock.clone() };
        process.has_lock().then_some(process)
    }
}

/// A process that was verified to hold the lock.
#[derive(Debug)]
pub struct HolderProcess {
    pid: u32,
    pin: ProcessPin,
    lock: PathBuf,
}

impl HolderProcess {
    pub fn pid(&self) -> i32 {
        self.pid.cast_signed()
    }

    /// Whether it still holds the lock. A process that has ended does not.
    pub fn has_lock(&self) -> bool {
        holds_lock(self.pid, &self.lock)
    }

    /// Sends a signal; `false` if the process has ended or no longer holds the lock.
    pub fn signal(&self, signal: Signal) -> bool {
        (self.pin.is_certain() || self.has_lock()) && self.pin.signal(signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SOCKET: &str = "/run/jackfield/hub.sock";

    fn take(path: &Path) -> Result<DaemonLock, BootError> {
        DaemonLock::take(path, Path::new(SOCKET))
    }

    #[test]
    fn lock_that_is_released_soon_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = take(&path).unwrap();
        let error = take(&path).unwrap_err();
        assert!(
            matches!(error, BootError::AlreadyRuns { pid: Some(pid), .. } if pid == std::process::id())
        );
        let releaser = thread::spawn(move || {
            thread::sleep(LOCK_TIMEOUT / 10);
            drop(held);
        });
        take(&path).unwrap();
        releaser.join().unwrap();
    }

    #[test]
    fn holder_is_found_while_locked_and_reused_pid_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(find_holder(&path).unwrap(), None);
        let lock = take(&path).unwrap();
        let holder = find_holder(&path).unwrap().unwrap();
        assert_eq!(holder.pid, Some(std::process::id()));
        assert_eq!(holder.socket.as_deref(), Some(Path::new(SOCKET)));
        assert!(holder.pin().is_some());
        let parent = std::os::unix::process::parent_id();
        assert!(LockHolder { pid: Some(parent), ..holder.clone() }.pin().is_none());
        drop(lock);
        assert_eq!(find_holder(&path).unwrap(), None);
        // Open, and not locked.
        let _file = File::open(&path).unwrap();
        assert!(holder.pin().is_none());
    }

    #[test]
    fn file_of_an_earlier_version_has_a_pid_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _lock = take(&path).unwrap();
        fs::write(&path, "17\n").unwrap();
        let holder = find_holder(&path).unwrap().unwrap();
        assert_eq!((holder.pid, holder.socket), (Some(17), None));
    }
}
