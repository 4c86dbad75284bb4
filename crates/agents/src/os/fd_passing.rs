//! Passes an open file to another process over a socket.
//!
//! The daemon runs no code between fork and exec of the guard, which keeps the start cheap even if
//! the daemon is large. The guard therefore inherits only descriptors 0, 1 and 2: 0 is the socket
//! between daemon and guard, 1 and 2 belong to the agent, and the agent's stdin is passed this way.

use super::{NO_SIGNAL, system};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg,
    sendmsg,
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
    sendmsg(socket, &[IoSlice::new(&CARRIER)], &mut control, NO_SIGNAL)?;
    Ok(())
}

/// Receives a file, which closes on exec.
pub(crate) fn receive_file(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carrier = CARRIER;
    recvmsg(socket, &mut [IoSliceMut::new(&mut carrier)], &mut control, system::RECEIVE_FILE)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    let file = file.ok_or_else(|| io::Error::other("received no file over the socket"))?;
    // For systems that cannot set it while they receive.
    fcntl_setfd(&file, FdFlags::CLOEXEC)?;
    Ok(file)
}
