//! Copies bytes between a client's pipes and a daemon's socket without interpreting them.
//!
//! It uses two blocking threads: a message costs one read and one write, and neither direction
//! waits for the other.

use crate::dial::BlockingSocket;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The capacity of a pipe.
const BUFFER_BYTES: usize = 64 << 10;

/// How a relay ended.
#[derive(Debug)]
pub enum RelayEnd {
    /// The client closed its input, its answers were copied, and the daemon closed.
    Finished,
    /// The daemon closed or crashed while the client was connected.
    DaemonGone,
    /// The client no longer reads our output.
    ClientGone,
    /// Copying failed: the output is a file on a full disk, or no thread could be started.
    Failed(io::Error),
}

/// Copies `input` to the socket and the socket to `output` until the socket ends or the reader of
/// `output` is gone. When `input` ends, our sending side is closed, and the daemon's answers are
/// still copied.
///
/// May return while a thread still reads `input`: that thread ends with the process or its input.
pub fn relay_bytes<I, O>(input: I, output: O, socket: BlockingSocket) -> RelayEnd
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + Sync + 'static,
{
    let shared = Arc::new(RelayState {
        socket,
        output,
        input_ended: AtomicBool::new(false),
        client_gone: AtomicBool::new(false),
    });
    let up = Arc::clone(&shared);
    let spawned = thread::Builder::new().name("relay".to_owned()).spawn(move || up.copy_up(&input));
    let ended = match spawned {
        Ok(_) => shared.copy_down(),
        Err(error) => RelayEnd::Failed(error),
    };
    let _ = shared.socket.shutdown(Shutdown::Both);
    ended
}

struct RelayState<O> {
    socket: BlockingSocket,
    output: O,
    input_ended: AtomicBool,
    client_gone: AtomicBool,
}

impl<O: AsFd> RelayState<O> {
    fn copy_up(&self, input: &impl AsFd) {
        if let Err(RelayCopyError::Writing(_)) = copy_until_end(input.as_fd(), self.socket.as_fd())
        {
            // The daemon is gone, which the other direction reports.
            return;
        }
        self.input_ended.store(true, Ordering::Release);
        let _ = self.socket.shutdown(Shutdown::Write);
        // Detects an exited client now, not when the next update is written.
        if wait_for_reader_exit(self.output.as_fd(), self.socket.as_fd()) {
            self.client_gone.store(true, Ordering::Release);
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn copy_down(&self) -> RelayEnd {
        match copy_until_end(self.socket.as_fd(), self.output.as_fd()) {
            Err(RelayCopyError::Writing(Errno::PIPE | Errno::CONNRESET)) => RelayEnd::ClientGone,
            Err(RelayCopyError::Writing(error)) => RelayEnd::Failed(error.into()),
            _ if self.client_gone.load(Ordering::Acquire) => RelayEnd::ClientGone,
            Ok(()) if self.input_ended.load(Ordering::Acquire) => RelayEnd::Finished,
            Ok(()) | Err(RelayCopyError::Reading) => RelayEnd::DaemonGone,
        }
    }
}

enum RelayCopyError {
    Reading,
    Writing(Errno),
}

fn copy_until_end(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), RelayCopyError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = read_until_ready(from, &mut buffer).map_err(|_| RelayCopyError::Reading)?;
        if count == 0 {
            return Ok(());
        }
        write_until_ready(to, &buffer[..count]).map_err(RelayCopyError::Writing)?;
    }
}

/// Reads what is there, or waits for it; 0 at the end.
pub fn read_ready(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(read_until_ready(from, buffer)?)
}

/// Writes all bytes, and waits where the reader is slow.
pub fn write_all_ready(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    Ok(write_until_ready(to, bytes)?)
}

fn read_until_ready(from: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    retry_until_ready(from, PollFlags::IN, || rustix::io::read(from, &mut *buffer))
}

fn write_until_ready(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = retry_until_ready(to, PollFlags::OUT, || rustix::io::write(to, rest))?;
        rest = &rest[written..];
    }
    Ok(())
}

/// Repeats a call that would block. Another process may have made the file non-blocking, because
/// its flags are shared.
fn retry_until_ready(
    fd: BorrowedFd<'_>,
    want: PollFlags,
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(fd, want)];
                match rustix::event::poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            done => return done,
        }
    }
}

/// Waits until the reader of `output` is gone (`true`) or the socket has ended (`false`).
pub fn wait_for_reader_exit(output: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> bool {
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(socket, PollFlags::empty()),
            PollFd::from_borrowed_fd(output, PollFlags::empty()),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        if fds[0].revents().intersects(gone) {
            return false;
        }
        if fds[1].revents().intersects(gone) {
            return true;
        }
    }
}
