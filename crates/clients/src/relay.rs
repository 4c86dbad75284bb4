//! Copies bytes between a client's pipes and a daemon's socket, and understands none of them.
//!
//! Two blocking threads: a message costs one read and one write, and nothing waits for the other
//! direction.

use crate::dial::Socket;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;

/// How a relay ended.
#[derive(Debug)]
pub enum Ended {
    /// The client said all it had to say, heard the answers, and the daemon closed.
    Finished,
    /// The daemon closed, or died, while the client was there.
    DaemonGone,
    /// Nobody reads our output any more.
    ClientGone,
    /// We could not go on: the output is a file on a full disk, or there are no threads left.
    Failed(io::Error),
}

/// Copies `input` to the socket and the socket to `output` until the socket ends or nobody reads
/// `output`. When `input` ends the daemon is told so, and its answers are still copied.
///
/// Returns although a read of `input` may be under way: that thread ends with the process, or with
/// its input.
pub fn relay<I, O>(input: I, output: O, socket: Socket) -> Ended
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + Sync + 'static,
{
    let shared = Arc::new(Shared {
        socket,
        output,
        input_ended: AtomicBool::new(false),
        client_gone: AtomicBool::new(false),
    });
    let up = Arc::clone(&shared);
    let spawned = thread::Builder::new().name("relay".to_owned()).spawn(move || up.copy_up(&input));
    let ended = match spawned {
        Ok(_) => shared.copy_down(),
        Err(error) => Ended::Failed(error),
    };
    let _ = shared.socket.shutdown(Shutdown::Both);
    ended
}

struct Shared<O> {
    socket: Socket,
    output: O,
    input_ended: AtomicBool,
    client_gone: AtomicBool,
}

impl<O: AsFd> Shared<O> {
    fn copy_up(&self, input: &impl AsFd) {
        if let Err(Stopped::Writing(_)) = copy(input.as_fd(), self.socket.as_fd()) {
            // The daemon is gone: the other direction says so.
            return;
        }
        self.input_ended.store(true, Ordering::Release);
        let _ = self.socket.shutdown(Shutdown::Write);
        // A client that died is noticed now, not when its next update comes.
        if hung_up(self.output.as_fd(), self.socket.as_fd()) {
            self.client_gone.store(true, Ordering::Release);
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn copy_down(&self) -> Ended {
        match copy(self.socket.as_fd(), self.output.as_fd()) {
            Err(Stopped::Writing(Errno::PIPE | Errno::CONNRESET)) => Ended::ClientGone,
            Err(Stopped::Writing(error)) => Ended::Failed(error.into()),
            _ if self.client_gone.load(Ordering::Acquire) => Ended::ClientGone,
            Ok(()) if self.input_ended.load(Ordering::Acquire) => Ended::Finished,
            Ok(()) | Err(Stopped::Reading) => Ended::DaemonGone,
        }
    }
}

enum Stopped {
    Reading,
    Writing(Errno),
}

fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Stopped> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = patiently(from, PollFlags::IN, || rustix::io::read(from, &mut buffer[..]))
            .map_err(|_| Stopped::Reading)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let written = patiently(to, PollFlags::OUT, || rustix::io::write(to, rest))
                .map_err(Stopped::Writing)?;
            rest = &rest[written..];
        }
    }
}

/// Someone may have made the file non-blocking for us: its flags are shared.
fn patiently(
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

/// Waits until the reader of `output` has gone (true) or the socket is over (false).
fn hung_up(output: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> bool {
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
