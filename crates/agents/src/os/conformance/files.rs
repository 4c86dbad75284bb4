//! Descriptors: passed to another process, closed on exec, locked, and at the end of a socket.

use super::{TestProcess, run_in_single_thread, wait_for};
use crate::os::fd_passing::{receive_file, send_file};
use crate::os::{NO_SIGNAL, PeerPin, ProcessPin, SignalReader, holds_lock, suppress_sigpipe};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::send;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};

#[test]
fn sent_file_is_received_and_closes_on_exec() {
    let (sender, receiver) = UnixStream::pair().unwrap();
    let (mut read, write) = io::pipe().unwrap();
    send_file(&sender, &write).unwrap();
    drop(write);
    let received = receive_file(&receiver).unwrap();
    assert!(fcntl_getfd(&received).unwrap().contains(FdFlags::CLOEXEC));
    File::from(received).write_all(b"hello").unwrap();
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

#[test]
fn send_to_a_closed_socket_fails_without_a_signal() {
    let (socket, other) = UnixStream::pair().unwrap();
    suppress_sigpipe(&socket);
    drop(other);
    assert_eq!(send(&socket, b"x", NO_SIGNAL), Err(rustix::io::Errno::PIPE));
}

#[test]
fn descriptors_of_pins_and_signals_close_on_exec() {
    let child = TestProcess::sleeper();
    let pin = ProcessPin::open(child.pid()).unwrap();
    let signals = SignalReader::block().unwrap();
    assert!(fcntl_getfd(signals.as_fd()).unwrap().contains(FdFlags::CLOEXEC));
    assert!(pin.descriptor().is_none_or(|it| fcntl_getfd(it).unwrap().contains(FdFlags::CLOEXEC)));
}

#[test]
fn peer_of_a_socket_is_pinned_until_it_exits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let _client = UnixStream::connect(&path).unwrap();
    let (own, _) = listener.accept().unwrap();
    assert!(PeerPin::from_socket(own.as_fd()).is_alive());

    let is_connected = run_in_single_thread(|| UnixStream::connect(&path).is_ok());
    assert!(is_connected);
    let (accepted, _) = listener.accept().unwrap();
    let pin = PeerPin::from_socket(accepted.as_fd());
    assert!(!pin.is_alive() || !pin.notices_exit(), "the process that connected has exited");
}

#[test]
fn holder_of_a_lock_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let file = File::create(&path).unwrap();
    let own = std::process::id();
    assert!(!holds_lock(own, &path), "open and not locked");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(holds_lock(own, &path));
    let child = TestProcess::sleeper();
    wait_for("the exec, which closes the file", || (!holds_lock(child.pid(), &path)).then_some(()));
    drop(file);
    assert!(!holds_lock(own, &path));
}
