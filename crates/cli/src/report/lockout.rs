//! A daemon that has the lock of the state directory and cannot be used: why, and the way out.

use super::Failure;

const FORCE: &str =
    "`jackfield daemon stop --force` ends it; what it acknowledged is in the journal";

/// Why the daemon cannot be reached or ended.
pub(super) fn cause(failure: &Failure) -> String {
    match failure {
        Failure::NoSocket { lock, elsewhere, seconds, .. } => {
            let lock = lock.display();
            match elsewhere {
                Some(path) => format!(
                    "it has the lock `{lock}` and listens on `{}`, where it did not answer within \
                     {seconds} s",
                    path.display()
                ),
                None => format!(
                    "it has the lock `{lock}`, and its socket did not come back within {seconds} s"
                ),
            }
        }
        Failure::UnknownHolder { pid: Some(pid), .. } => format!(
            "process {pid}, which the file names, does not have it: it has ended, or it runs in \
             another container or on another machine"
        ),
        Failure::UnknownHolder { .. } => "the file names no process".to_owned(),
        Failure::NotEnded { seconds, .. } => format!(
            "it still has its lock {seconds} s after SIGKILL: it waits in the kernel, as for a disk or \
             a network file system that does not answer"
        ),
        _ => String::new(),
    }
}

/// The way out; `None` for other failures.
pub(super) fn hint(failure: &Failure) -> Option<String> {
    Some(match failure {
        Failure::Silent { pid: Some(_), .. } => FORCE.to_owned(),
        Failure::NoSocket { elsewhere: Some(path), .. } => {
            let folder = path.parent().unwrap_or(path).display();
            format!(
                "set `JACKFIELD_RUNTIME_DIR={folder}` where this directory can be seen; {FORCE}"
            )
        }
        Failure::NoSocket { log, .. } => {
            format!("it may be starting still: its log is `{}`; {FORCE}", log.display())
        }
        Failure::UnknownHolder { lock, .. } => {
            format!("`fuser -v {}` names the process; end it where it runs", lock.display())
        }
        Failure::NotEnded { .. } => {
            "repair the file system that it waits for, or restart the machine".to_owned()
        }
        _ => return None,
    })
}
