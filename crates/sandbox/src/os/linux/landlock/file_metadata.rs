//! Changes of the mode, the owner and the times of a file.
//!
//! Landlock does not limit them: without a supervisor a process could make keys of the user readable for
//! other users, or files outside its folder unusable.

use super::calling_thread::{CallingThread, LastLink, descriptor_path, to_int};
use super::listener::SupervisedCall;
use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid, chmodat, chownat, utimensat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// A call whose arguments have been copied.
#[derive(Debug)]
pub(super) struct MetadataCall {
    /// The file, open without access to its content.
    pub(super) target: OwnedFd,
    change: MetadataChange,
}

#[derive(Debug)]
enum MetadataChange {
    Mode(u32),
    Owner { user: u32, group: u32 },
    Times(Timestamps),
}

/// Where a call has its arguments.
enum TargetForm {
    Descriptor,
    /// A path at index 0, relative to the current directory.
    Path(LastLink),
    /// A descriptor, a path, and flags at an index.
    DirectoryAndPath {
        flags: Option<usize>,
    },
}

impl MetadataCall {
    pub(super) fn read(
        thread: &CallingThread<'_>,
        call: &SupervisedCall,
    ) -> Result<MetadataCall, Errno> {
        let (form, change) = read_change(thread, call)?;
        let args = call.args;
        let current = i64::from(libc::AT_FDCWD).cast_unsigned();
        let target = match form {
            TargetForm::Descriptor => thread.duplicate_descriptor(args[0])?,
            TargetForm::Path(link) => {
                thread.open_path(current, &thread.read_path(args[0])?, link)?
            }
            TargetForm::DirectoryAndPath { flags } => {
                let flags = flags.map_or(0, |index| to_int(call.args[index]));
                open_at(thread, args, flags)?
            }
        };
        Ok(MetadataCall { target, change })
    }

    /// Performs the change with exactly the file that was examined.
    pub(super) fn perform(&self) -> Result<(), Errno> {
        // An empty path with a descriptor means the descriptor, also for a symbolic link.
        let itself = AtFlags::EMPTY_PATH;
        match &self.change {
            MetadataChange::Mode(mode) => {
                let path = descriptor_path(&self.target);
                chmodat(CWD, path, Mode::from_raw_mode(*mode), AtFlags::empty())
            }
            MetadataChange::Owner { user, group } => {
                let user = (*user != u32::MAX).then(|| Uid::from_raw(*user));
                let group = (*group != u32::MAX).then(|| Gid::from_raw(*group));
                chownat(&self.target, "", user, group, itself)
            }
            MetadataChange::Times(times) => utimensat(&self.target, "", times, itself),
        }
    }
}

fn read_change(
    thread: &CallingThread<'_>,
    call: &SupervisedCall,
) -> Result<(TargetForm, MetadataChange), Errno> {
    let int = |index: usize| to_int(call.args[index]).cast_unsigned();
    let owner = |index| MetadataChange::Owner { user: int(index), group: int(index + 1) };
    Ok(match call.number {
        libc::SYS_fchmod => (TargetForm::Descriptor, MetadataChange::Mode(int(1))),
        libc::SYS_fchmodat => {
            (TargetForm::DirectoryAndPath { flags: None }, MetadataChange::Mode(int(2)))
        }
        libc::SYS_fchmodat2 => {
            (TargetForm::DirectoryAndPath { flags: Some(3) }, MetadataChange::Mode(int(2)))
        }
        libc::SYS_fchown => (TargetForm::Descriptor, owner(1)),
        libc::SYS_fchownat => (TargetForm::DirectoryAndPath { flags: Some(4) }, owner(2)),
        libc::SYS_utimensat => (
            TargetForm::DirectoryAndPath { flags: Some(3) },
            MetadataChange::Times(read_times(thread, call.args[2])?),
        ),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (TargetForm::Path(LastLink::Followed), MetadataChange::Mode(int(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (TargetForm::Path(LastLink::Followed), owner(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (TargetForm::Path(LastLink::NotFollowed), owner(1)),
        _ => return Err(Errno::NOSYS),
    })
}

/// `args` are a directory and a path, which may be missing.
fn open_at(thread: &CallingThread<'_>, args: [u64; 6], flags: i32) -> Result<OwnedFd, Errno> {
    if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    // `futimens` passes no path.
    if args[1] == 0 {
        return thread.duplicate_descriptor(args[0]);
    }
    let path = thread.read_path(args[1])?;
    if path.as_os_str().is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return thread.duplicate_descriptor(args[0]);
    }
    let is_followed = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let link = if is_followed { LastLink::Followed } else { LastLink::NotFollowed };
    thread.open_path(args[0], &path, link)
}

/// Without times both are the current one.
fn read_times(thread: &CallingThread<'_>, address: u64) -> Result<Timestamps, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    if address == 0 {
        return Ok(Timestamps { last_access: now, last_modification: now });
    }
    let bytes = thread.read_memory(address, 32)?;
    let number = |index: usize| {
        let bytes = bytes.get(index * 8..).and_then(|it| it.first_chunk::<8>());
        bytes.map_or(0, |it| i64::from_ne_bytes(*it))
    };
    Ok(Timestamps {
        last_access: Timespec { tv_sec: number(0), tv_nsec: number(1) },
        last_modification: Timespec { tv_sec: number(2), tv_nsec: number(3) },
    })
}
