//! Passes an open file to another process over a socket.
//!
//! The daemon runs no code between fork and exec of the guard, which keeps the start cheap even if
//! the daemon is large. The guard therefore inherits only descriptors 0, 1 and 2: 0 is the socket
//! between daemon and guard, 1 and 2 belong to the agent, and the agent's stdin is passed this way.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// A message needs at least one byte of data to carry a file.
const CARRIER: [u8; 1] = *b"f";

pub(crate) fn send_file(socket: impl AsFd, file: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(&CARRIER)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive_file(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = CARRIER;
    recvmsg(socket, &mut [IoSliceMut::new(&mut carrier)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.flatten().next().ok_or_else(|| io::Error::other("received no file over the socket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    #[test]
    fn sent_file_is_received() {
        let (sender, receiver) = UnixStream::pair().unwrap();
        let (mut read, write) = io::pipe().unwrap();
        send_file(&sender, &write).unwrap();
        drop(write);
        std::fs::File::from(receive_file(&receiver).unwrap()).write_all(b"hello").unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn closed_socket_delivers_no_file() {
        let (sender, receiver) = UnixStream::pair().unwrap();
        drop(sender);
        assert!(receive_file(&receiver).is_err());
    }
}
