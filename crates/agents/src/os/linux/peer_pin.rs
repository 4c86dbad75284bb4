//! The process at the other end of a unix socket, pinned so that a reused pid is noticed.
#![expect(unsafe_code, reason = "no safe wrapper has this socket option yet")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// A reference to a peer process.
pub(crate) enum PeerPin {
    Held(OwnedFd),
    /// The process that connected has exited.
    ExitedChild,
    /// The kernel is older than Linux 6.5 and provides only the pid.
    Unsupported,
}

impl PeerPin {
    pub(crate) fn from_socket(socket: BorrowedFd<'_>) -> PeerPin {
        let mut pin: libc::c_int = -1;
        let mut length = size_of_val(&pin).try_into().expect("four bytes");
        // SAFETY: the pointers are to `pin` and to its length, and both outlive the call.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERPIDFD,
                (&raw mut pin).cast(),
                &raw mut length,
            )
        };
        if status == 0 {
            // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
            return PeerPin::Held(unsafe { OwnedFd::from_raw_fd(pin) });
        }
        match Errno::from_io_error(&std::io::Error::last_os_error()) {
            Some(Errno::NOPROTOOPT | Errno::OPNOTSUPP | Errno::NOSYS) => PeerPin::Unsupported,
            _ => PeerPin::ExitedChild,
        }
    }

    /// Whether the process is still alive, so that everything that was read for its pid until now
    /// was about it. Always true if the kernel does not support pins.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            PeerPin::Unsupported => true,
            PeerPin::ExitedChild => false,
            PeerPin::Held(pin) => {
                let mut pins = [PollFd::new(pin, PollFlags::IN)];
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                // A pidfd becomes readable when its process has exited.
                poll(&mut pins, Some(&now)) == Ok(0)
            }
        }
    }

    /// Whether the exit of the process would be noticed.
    #[cfg(test)]
    pub(crate) fn notices_exit(&self) -> bool {
        !matches!(self, PeerPin::Unsupported)
    }
}
