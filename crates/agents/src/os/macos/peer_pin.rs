//! The process at the other end of a unix socket. The kernel gives its pid only, so a process that
//! got the same pid between the connection and the lookup would be taken for it; that needs as many
//! new processes as there are pids.
#![expect(unsafe_code, reason = "no safe wrapper has this socket option")]

use crate::os::ProcessIdentity;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The level of options of local sockets, from `sys/un.h`.
const SOL_LOCAL: libc::c_int = 0;

/// A reference to a peer process.
pub(crate) struct PeerPin {
    /// `None` if it has exited.
    process: Option<ProcessIdentity>,
}

impl PeerPin {
    pub(crate) fn from_socket(socket: BorrowedFd<'_>) -> PeerPin {
        let mut pid: libc::pid_t = 0;
        let mut length = size_of_val(&pid).try_into().expect("four bytes");
        // SAFETY: the pointers are to `pid` and to its length, and both outlive the call.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                SOL_LOCAL,
                libc::LOCAL_PEERPID,
                (&raw mut pid).cast(),
                &raw mut length,
            )
        };
        let pid = u32::try_from(pid).ok().filter(|pid| status == 0 && *pid != 0);
        PeerPin { process: pid.and_then(ProcessIdentity::find) }
    }

    /// Whether the process is still alive, so that everything that was read for its pid until now
    /// was about it.
    pub(crate) fn is_alive(&self) -> bool {
        self.process.is_some_and(ProcessIdentity::is_alive)
    }

    /// Whether the exit of the process would be noticed.
    #[cfg(test)]
    #[expect(clippy::unused_self, reason = "other systems may not support it")]
    pub(crate) fn notices_exit(&self) -> bool {
        true
    }
}
