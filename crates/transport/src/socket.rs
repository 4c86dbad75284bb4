//! Creates unix sockets: in a private folder, with private permissions, and never in place of the
//! socket of a running daemon.

use crate::listen_error::BindError;
use crate::socket_path::{check_length, folder_of};
use crate::socket_system;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::net::sockopt::{self, Timeout};
use rustix::process::geteuid;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixSocket};

/// The number of clients that may wait while the loop is busy.
pub(crate) const BACKLOG: i32 = 1024;

/// The file of a socket that this process created. Dropping it removes the file, unless another
/// file now has its name.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode. The kernel does not reuse the inode while the socket is open.
    identity: (u64, u64),
}

/// What to do while another process changes names in the same folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderLock {
    Wait,
    /// Fail, because the caller must not block.
    Try,
}

/// The requirement on the folder of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderRequirement {
    /// It belongs to us, and other users have no access.
    Private,
    /// Other users cannot replace the socket, as in `/tmp`.
    Safe,
}

/// Listens on `path`. A socket of that name is replaced if no process listens on it.
pub(crate) fn bind(
    path: &Path,
    folder: FolderRequirement,
    folder_lock: FolderLock,
) -> Result<(UnixListener, SocketFile), BindError> {
    check_length(path)?;
    let failed =
        |attempted| move |source| BindError::Io { path: path.to_owned(), attempted, source };
    check_folder(folder_of(path), folder)?;
    // Two daemons that start at the same time must not both find the old socket stale.
    let _lock = lock_folder(folder_of(path), folder_lock).map_err(failed("claimed"))?;
    remove_stale(path)?;
    let socket = UnixSocket::new_stream().map_err(failed("created"))?;
    socket.bind(path).map_err(failed("bound"))?;
    let file = SocketFile::new(path).map_err(failed("found again"))?;
    // No client can connect before `listen`, regardless of the folder and the umask.
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed("made private"))?;
    let listener = socket.listen(BACKLOG.unsigned_abs()).map_err(failed("listened on"))?;
    Ok((listener, file))
}

/// Connects, and waits at most for `timeout` for room in the daemon's queue.
pub(crate) fn connect(path: &Path, timeout: Option<Duration>) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_system::create_stream_socket(timeout.is_none())?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, timeout)?;
    rustix::net::connect(&socket, &address)?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket)
}

pub(crate) fn our_uid() -> u32 {
    geteuid().as_raw()
}

fn check_folder(folder: &Path, wanted: FolderRequirement) -> Result<(), BindError> {
    let folder = folder.to_owned();
    let metadata = match fs::metadata(&folder) {
        Ok(metadata) => metadata,
        Err(source) => return Err(BindError::NoFolder { folder, source }),
    };
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if wanted == FolderRequirement::Safe {
        // In a sticky folder only the owner of a file can remove it.
        let (sticky, others_write) = (mode & 0o1000 != 0, mode & 0o022 != 0);
        let trusted = owner == our_uid() || owner == 0;
        let safe = trusted && (sticky || !others_write);
        return if safe { Ok(()) } else { Err(BindError::FolderNotSafe { folder, owner, mode }) };
    }
    if owner != our_uid() {
        return Err(BindError::FolderNotOurs { folder, owner });
    }
    if mode & 0o077 != 0 {
        return Err(BindError::FolderNotPrivate { folder, mode });
    }
    Ok(())
}

/// Locks the folder while names in it change. The lock ends with the descriptor.
fn lock_folder(folder: &Path, folder_lock: FolderLock) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    let operation = match folder_lock {
        FolderLock::Wait => FlockOperation::LockExclusive,
        FolderLock::Try => FlockOperation::NonBlockingLockExclusive,
    };
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, operation))?;
    Ok(folder)
}

/// Removes the socket file `path` if no process listens on it.
pub fn remove_stale_socket(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Io { path: path.to_owned(), attempted: "removed", source };
    match lock_folder(folder_of(path), FolderLock::Wait) {
        Ok(_lock) => remove_stale(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn remove_stale(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Io { path: path.to_owned(), attempted: "replaced", source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match connect(path, None).map_err(|it| Errno::from_io_error(&it)) {
        Err(Some(Errno::CONNREFUSED)) => fs::remove_file(path).map_err(failed),
        Err(Some(Errno::NOENT)) => Ok(()),
        // A full queue belongs to a daemon, and a socket without permission is not stale.
        Ok(_) | Err(_) => Err(BindError::InUse { path: path.to_owned() }),
    }
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<SocketFile> {
        let identity = identity(&fs::symlink_metadata(path)?);
        Ok(SocketFile { path: path.to_owned(), identity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still refers to this socket.
    pub(crate) fn is_in_place(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|it| identity(&it) == self.identity)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_in_place() {
            return;
        }
        let _lock = lock_folder(folder_of(&self.path), FolderLock::Wait);
        if self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
