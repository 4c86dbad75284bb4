//! Why an attempt did not work, and the results of calls of the C library.

use crate::probes::NOTHING_FOUND;
use rustix::fd::{FromRawFd as _, OwnedFd};
use std::io;

/// Why an attempt did not work.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// With the name of the error, or another sign of the refusal.
    Refused(String),
    /// It could not be made.
    Failed(String),
}

impl AttemptError {
    /// There is nothing to read.
    pub(super) fn nothing_found() -> AttemptError {
        AttemptError::Refused(NOTHING_FOUND.to_owned())
    }
}

impl From<io::Error> for AttemptError {
    fn from(error: io::Error) -> AttemptError {
        match error.raw_os_error() {
            Some(number) => {
                AttemptError::Refused(format!("{:?}", nix::errno::Errno::from_raw(number)))
            }
            None => AttemptError::Failed(error.to_string()),
        }
    }
}

pub(super) type AttemptResult = Result<(), AttemptError>;

/// The result of a call of the C library.
pub(super) fn check(status: impl Into<i64>) -> io::Result<i64> {
    let status = status.into();
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// The new descriptor that a call has returned.
#[expect(unsafe_code, reason = "a descriptor without an owner")]
pub(super) fn check_descriptor(status: impl Into<i64>) -> io::Result<OwnedFd> {
    let number = i32::try_from(check(status)?).map_err(io::Error::other)?;
    // SAFETY: the call has returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
