//! The process at the other end of a unix socket, pinned so that its number stays its own.
#![expect(unsafe_code, reason = "no safe wrapper has this socket option yet")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// What the kernel gives to hold a peer process by.
pub(crate) enum PeerPin {
    Held(OwnedFd),
    /// The process that connected has ended.
    Ended,
    /// The kernel is older than Linux 6.5: there is only the number.
    Unsupported,
}

impl PeerPin {
    pub(crate) fn of(socket: BorrowedFd<'_>) -> PeerPin {
        let mut pin: libc::c_int = -1;
        let mut length = size_of_val(&pin).try_into().expect("four bytes");
        // SAFETY: the pointers are to `pin` and to its length, and both outlive the call.
        let answered = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERPIDFD,
                (&raw mut pin).cast(),
                &raw mut length,
            )
        };
        if answered == 0 {
            // SAFETY: the kernel has just opened it for us, closed on exec, and nobody else has it.
            return PeerPin::Held(unsafe { OwnedFd::from_raw_fd(pin) });
        }
        match Errno::from_io_error(&std::io::Error::last_os_error()) {
            Some(Errno::NOPROTOOPT | Errno::OPNOTSUPP | Errno::NOSYS) => PeerPin::Unsupported,
            _ => PeerPin::Ended,
        }
    }

    /// Whether the process has not ended, so that everything read under its number until now was
    /// about it. Always true where the kernel gives no pin.
    pub(crate) fn holds(&self) -> bool {
        match self {
            PeerPin::Unsupported => true,
            PeerPin::Ended => false,
            PeerPin::Held(pin) => {
                let mut pins = [PollFd::new(pin, PollFlags::IN)];
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                // A pidfd can be read when its process has ended.
                poll(&mut pins, Some(&now)) == Ok(0)
            }
        }
    }
}
