//! Receives the supervised system calls of a process, and answers them.
#![expect(unsafe_code, reason = "seccomp listeners have no safe interface")]

use rustix::io::Errno;
use seccompiler::sock_filter;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// One call that waits for its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct SupervisedCall {
    id: u64,
    /// The thread that made it.
    pub(super) thread: i32,
    pub(super) number: libc::c_long,
    pub(super) args: [u64; 6],
}

/// The supervisor's end of a filter.
#[derive(Debug)]
pub(super) struct CallListener {
    descriptor: OwnedFd,
}

// Values of <linux/seccomp.h>, which the libc crate does not have.
const NOTIF_RECV: libc::Ioctl = 0xc050_2100;
const NOTIF_SEND: libc::Ioctl = 0xc018_2101;
const NOTIF_ID_VALID: libc::Ioctl = 0x4008_2102;
const NOTIF_ADDFD: libc::Ioctl = 0x4018_2103;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`
const CONTINUE: u32 = 1;
const _: () = assert!(size_of::<libc::seccomp_notif>() == 0x50);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 0x18);
const _: () = assert!(size_of::<libc::seccomp_notif_addfd>() == 0x18);

/// Installs a filter for this thread and the program that it executes, and returns the listener. A
/// supervised call that the supervisor has received is interrupted only by the end of the process: it
/// would be performed twice otherwise.
///
/// To be called between fork and exec: it does not allocate.
pub(super) fn install_filter(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: `program` points to `length` instructions, which the kernel copies; both types have the
    // layout of `struct sock_filter`.
    let status = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    let descriptor = RawFd::try_from(status).map_err(|_| Errno::INVAL)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl CallListener {
    pub(super) fn new(descriptor: OwnedFd) -> CallListener {
        CallListener { descriptor }
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Waits for the next call; none if its process has ended meanwhile.
    pub(super) fn receive(&self) -> io::Result<Option<SupervisedCall>> {
        // SAFETY: the structure consists of numbers, and the kernel demands that all are zero.
        let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills a structure of the size that `NOTIF_RECV` contains.
        let status =
            unsafe { libc::ioctl(self.descriptor.as_raw_fd(), NOTIF_RECV, &raw mut notification) };
        if status < 0 {
            let error = io::Error::last_os_error();
            let is_over = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR));
            return if is_over { Ok(None) } else { Err(error) };
        }
        Ok(Some(SupervisedCall {
            id: notification.id,
            thread: notification.pid.cast_signed(),
            number: notification.data.nr.into(),
            args: notification.data.args,
        }))
    }

    /// Whether the call still waits, so that its thread id means this thread and no later one.
    pub(super) fn is_waiting(&self, call: &SupervisedCall) -> bool {
        // SAFETY: the kernel reads one number.
        let status =
            unsafe { libc::ioctl(self.descriptor.as_raw_fd(), NOTIF_ID_VALID, &raw const call.id) };
        status == 0
    }

    /// Ends a call with its result. It has no effect if the process has ended.
    pub(super) fn answer(&self, call: &SupervisedCall, result: Result<(), Errno>) {
        let error = result.err().map_or(0, |it| -it.raw_os_error());
        self.send(libc::seccomp_notif_resp { id: call.id, val: 0, error, flags: 0 });
    }

    /// Lets the process make the call itself, with the arguments and descriptors that it has then. Only for
    /// calls that are harmless with any arguments.
    pub(super) fn let_process_continue(&self, call: &SupervisedCall) {
        let flags = CONTINUE;
        self.send(libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags });
    }

    fn send(&self, mut response: libc::seccomp_notif_resp) {
        // SAFETY: the kernel reads a structure of the size that `NOTIF_SEND` contains.
        unsafe { libc::ioctl(self.descriptor.as_raw_fd(), NOTIF_SEND, &raw mut response) };
    }

    /// Ends a call whose result is a new descriptor of the process.
    pub(super) fn answer_descriptor(
        &self,
        call: &SupervisedCall,
        file: &OwnedFd,
        is_kept_on_exec: bool,
    ) {
        let newfd_flags = if is_kept_on_exec { 0 } else { libc::O_CLOEXEC.cast_unsigned() };
        let flags = u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).expect("the flag has 32 bits");
        let srcfd = file.as_raw_fd().cast_unsigned();
        let addition =
            libc::seccomp_notif_addfd { id: call.id, flags, srcfd, newfd: 0, newfd_flags };
        // SAFETY: the kernel reads a structure of the size that `NOTIF_ADDFD` contains.
        let status =
            unsafe { libc::ioctl(self.descriptor.as_raw_fd(), NOTIF_ADDFD, &raw const addition) };
        if status < 0 {
            self.answer(call, Err(Errno::MFILE));
        }
    }
}
