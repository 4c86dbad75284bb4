//! System errors that are not the fault of the program to be started: a lack of file descriptors,
//! processes or memory.

use rustix::io::Errno;
use std::io;

/// Which resource is exhausted, and how to resolve it; `None` for any other error.
pub(crate) fn describe_shortage(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(
            "the daemon has reached its limit of open files: raise the limit (`ulimit -Hn`, or \
             `LimitNOFILE=` of its unit) and restart it, or close connections and sessions",
        ),
        Errno::NFILE => Some(
            "the system has reached its limit of open files: raise `fs.file-max`, or end other \
             programs",
        ),
        Errno::AGAIN => Some(
            "the limit of processes is reached: raise it (`ulimit -u`, or `TasksMax=` of the \
             unit), or end other programs",
        ),
        Errno::NOMEM => {
            Some("memory is exhausted: end other programs or close sessions, and try again")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortage_has_a_hint_and_a_missing_program_is_not_a_shortage() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM] {
            let hint = describe_shortage(&errno.into()).unwrap();
            assert!(hint.contains("raise") || hint.contains("end other"), "{hint}");
        }
        assert_eq!(describe_shortage(&Errno::NOENT.into()), None);
        assert_eq!(describe_shortage(&io::Error::other("no")), None);
    }
}
