//! Errors of the system that say nothing about a program that was to be started: there are no more file descriptors,
//! processes or memory.

use rustix::io::Errno;
use std::io;

/// What is used up, and the way out; nothing for any other error.
pub(crate) fn describe_shortage(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(
            "the daemon has as many files open as it may: raise the limit (`ulimit -Hn`, or `LimitNOFILE=` of its \
             unit) and start it again, or close connections and sessions",
        ),
        Errno::NFILE => Some(
            "the system has as many files open as it may: raise `fs.file-max`, or end other programs",
        ),
        Errno::AGAIN => Some(
            "no more processes may be started: raise the limit (`ulimit -u`, or `TasksMax=` of the unit), or end \
             other programs",
        ),
        Errno::NOMEM => {
            Some("there is not enough memory: end other programs, or close sessions, and try again")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_has_a_way_out_and_a_missing_program_is_none() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM] {
            let way_out = describe_shortage(&errno.into()).unwrap();
            assert!(way_out.contains("raise") || way_out.contains("end other"), "{way_out}");
        }
        assert_eq!(describe_shortage(&Errno::NOENT.into()), None);
        assert_eq!(describe_shortage(&io::Error::other("no")), None);
    }
}
