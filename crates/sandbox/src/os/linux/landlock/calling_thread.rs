//! What the supervisor reads from a thread that waits for the result of a call.

use super::listener::{CallListener, SupervisedCall};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The longest path that the kernel accepts, with its final zero.
const PATH_BYTES_MAX: usize = 4096;
/// Reads of memory end at pages, which a path may not cross into an unmapped one.
const PAGE_BYTES: u64 = 4096;
/// `PIDFD_THREAD` has the value of this flag.
const PIDFD_THREAD: u32 = libc::O_EXCL.cast_unsigned();

/// A thread whose call waits. Everything is copied or duplicated once: the process can change its
/// memory and its descriptors afterwards without an effect.
pub(super) struct CallingThread<'a> {
    listener: &'a CallListener,
    call: &'a SupervisedCall,
}

impl<'a> CallingThread<'a> {
    pub(super) fn new(listener: &'a CallListener, call: &'a SupervisedCall) -> CallingThread<'a> {
        CallingThread { listener, call }
    }

    /// A duplicate of a descriptor; it shares its state with the original.
    pub(super) fn duplicate_descriptor(&self, descriptor: u64) -> Result<OwnedFd, Errno> {
        let thread = Pid::from_raw(self.call.thread).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(thread, PidfdFlags::from_bits_retain(PIDFD_THREAD))?;
        self.confirm_waiting()?;
        pidfd_getfd(pidfd, to_int(descriptor), PidfdGetfdFlags::empty())
    }

    /// A copy of memory.
    pub(super) fn read_memory(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let memory = self.open_memory()?;
        let mut bytes = vec![0; length];
        memory.read_exact_at(&mut bytes, address).map_err(|_| Errno::FAULT)?;
        Ok(bytes)
    }

    /// A copy of a path, which ends with a zero.
    pub(super) fn read_path(&self, address: u64) -> Result<PathBuf, Errno> {
        let memory = self.open_memory()?;
        let mut bytes: Vec<u8> = Vec::new();
        while bytes.len() < PATH_BYTES_MAX {
            let start = address.checked_add(bytes.len() as u64).ok_or(Errno::FAULT)?;
            let in_page = usize::try_from(PAGE_BYTES - start % PAGE_BYTES).unwrap_or(1);
            let mut part = vec![0; in_page];
            memory.read_exact_at(&mut part, start).map_err(|_| Errno::FAULT)?;
            if let Some(end) = part.iter().position(|it| *it == 0) {
                bytes.extend_from_slice(&part[..end]);
                let is_short = bytes.len() < PATH_BYTES_MAX;
                let path = PathBuf::from(OsStr::from_bytes(&bytes));
                return if is_short { Ok(path) } else { Err(Errno::NAMETOOLONG) };
            }
            bytes.append(&mut part);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Opens what the process means with a path, without access to its content.
    pub(super) fn open_path(
        &self,
        directory: u64,
        path: &Path,
        follow: LastLink,
    ) -> Result<OwnedFd, Errno> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT);
        }
        if let Some(descriptor) = own_descriptor(path) {
            return self.duplicate_descriptor(descriptor);
        }
        let base = if path.is_absolute() {
            rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?
        } else if to_int(directory) == libc::AT_FDCWD {
            let link = format!("/proc/{}/cwd", self.call.thread);
            let base = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            self.confirm_waiting()?;
            base
        } else {
            self.duplicate_descriptor(directory)?
        };
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if follow == LastLink::NotFollowed {
            flags |= OFlags::NOFOLLOW;
        }
        // The links of `/proc/self` would lead to files of the supervisor.
        openat2(base, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
    }

    fn open_memory(&self) -> Result<File, Errno> {
        let memory = File::open(format!("/proc/{}/mem", self.call.thread));
        self.confirm_waiting()?;
        memory.map_err(|_| Errno::ACCESS)
    }

    /// To be called after a file of the thread was opened by the thread's id.
    fn confirm_waiting(&self) -> Result<(), Errno> {
        if self.listener.is_waiting(self.call) { Ok(()) } else { Err(Errno::SRCH) }
    }
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    Followed,
    NotFollowed,
}

/// The absolute path of an open file.
pub(super) fn path_of(file: &OwnedFd) -> Result<PathBuf, Errno> {
    std::fs::read_link(descriptor_path(file)).map_err(|_| Errno::ACCESS)
}

/// A path that means exactly this open file, for calls without a form for descriptors.
pub(super) fn descriptor_path(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Arguments of the type `int` are the lower half of a register.
#[expect(clippy::cast_possible_truncation, reason = "the kernel truncates them in this way")]
pub(super) fn to_int(argument: u64) -> i32 {
    (argument as u32).cast_signed()
}

/// The descriptor that a path of the form `/proc/self/fd/N` means.
fn own_descriptor(path: &Path) -> Option<u64> {
    let path = path.to_str()?;
    let number = path.strip_prefix("/proc/self/fd/").or_else(|| path.strip_prefix("/dev/fd/"))?;
    number.parse::<u32>().ok().map(u64::from)
}
