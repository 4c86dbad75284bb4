//! Giving an open file to another process over a socket.
//!
//! The daemon starts the guard without a step between fork and exec (that keeps starting cheap
//! however big the daemon is), so only descriptors 0, 1 and 2 travel by inheritance. 0 is the
//! socket between daemon and guard, 1 and 2 belong to the agent, and the agent's 0 comes this way.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// A message needs at least one byte to carry a file.
const CARRIER: [u8; 1] = *b"f";

pub(crate) fn send(socket: impl AsFd, file: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(&CARRIER)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = CARRIER;
    recvmsg(socket, &mut [IoSliceMut::new(&mut carrier)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.flatten().next().ok_or_else(|| io::Error::other("no file came over the socket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_sent_is_the_file_received() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut read, write) = io::pipe().unwrap();
        send(&ours, &write).unwrap();
        drop(write);
        std::fs::File::from(receive(&theirs).unwrap()).write_all(b"hello").unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_socket_that_closed_carries_nothing() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(receive(&theirs).is_err());
    }
}
