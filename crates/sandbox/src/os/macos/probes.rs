//! Probes need means of Linux; here they are refused.

use crate::probes::OutsideTargets;
use std::{ffi::OsString, io, path::Path, process::ExitCode};

pub fn main(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

/// It cannot be made on this system.
pub struct OutsideFixture {
    pub targets: OutsideTargets,
}

impl OutsideFixture {
    pub fn start(
        _program: &Path,
        _folder: &Path,
        _secret_file: &Path,
        _secret: &str,
    ) -> io::Result<OutsideFixture> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the probes exist for Linux only"))
    }
}
