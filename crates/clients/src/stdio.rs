//! Stdin and stdout of this process as a connection.
//!
//! `O_NONBLOCK` belongs to the open file, not to the descriptor: setting it on our stdin sets it
//! for the shell and whoever else was given the same pipe or terminal, and their reads begin to
//! fail. So it is never set on what we were given. A pipe is opened a second time through `/proc`,
//! which makes an open file of our own. What cannot be opened twice (a socket, a terminal, a file,
//! a pipe of another user) is copied by two blocking threads, at the price of one more hop.

use crate::relay::relay;
use crate::stream::{Carrier, Stream, pair};
use rustix::fs::FileType;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::thread;
use tokio::net::unix::pipe;

/// The connection over stdin and stdout. To be made once.
pub(crate) fn stream() -> io::Result<Stream> {
    let (input, output) = (io::stdin(), io::stdout());
    match reopened(input.as_fd(), output.as_fd()) {
        Some(stream) => Ok(stream),
        None => relayed(input, output),
    }
}

fn reopened(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Option<Stream> {
    let receiver = pipe::OpenOptions::new().open_receiver(name_of(input)?).ok()?;
    let sender = pipe::OpenOptions::new().open_sender(name_of(output)?).ok()?;
    Some(Carrier::Pipes(receiver, sender).into())
}

/// A name under which a pipe can be opened again.
fn name_of(fd: BorrowedFd<'_>) -> Option<String> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let is_pipe = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    is_pipe.then(|| format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The threads end with the connection; the one that reads ends with its input.
fn relayed<I, O>(input: I, output: O) -> io::Result<Stream>
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + Sync + 'static,
{
    let (ours, theirs) = pair()?;
    thread::Builder::new()
        .name("stdio".to_owned())
        .spawn(move || relay(input, output, theirs.into()))?;
    Ok(ours)
}
