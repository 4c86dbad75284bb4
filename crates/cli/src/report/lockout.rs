//! Causes and hints for a daemon that holds the lock of the state directory and does not respond.

use super::CommandError;

const FORCE_HINT: &str =
    "`jackfield daemon stop --force` kills it; acknowledged events are in the journal";

/// Why the daemon cannot be reached or stopped.
pub(super) fn describe_cause(error: &CommandError) -> String {
    match error {
        CommandError::NoSocket { lock, elsewhere, seconds, .. } => {
            let lock = lock.display();
            match elsewhere {
                Some(path) => format!(
                    "it holds the lock `{lock}` and listens on `{}`, where it did not answer within \
                     {seconds} s",
                    path.display()
                ),
                None => format!(
                    "it holds the lock `{lock}`, and its socket did not appear within {seconds} s"
                ),
            }
        }
        CommandError::UnknownLockHolder { pid: Some(pid), .. } => format!(
            "the file names process {pid}, which does not hold the lock: it has exited, or it runs in \
             another container or on another machine"
        ),
        CommandError::UnknownLockHolder { .. } => "the file does not name a process".to_owned(),
        CommandError::NotEnded { seconds, .. } => format!(
            "it still holds the lock {seconds} s after SIGKILL: it is blocked in the kernel, for example by a disk or \
             a network file system that does not answer"
        ),
        _ => String::new(),
    }
}

/// How to solve it; `None` for other errors.
pub(super) fn describe_solution(error: &CommandError) -> Option<String> {
    Some(match error {
        CommandError::NoReply { pid: Some(_), .. } => FORCE_HINT.to_owned(),
        CommandError::NoSocket { elsewhere: Some(path), .. } => {
            let folder = path.parent().unwrap_or(path).display();
            format!(
                "set `JACKFIELD_RUNTIME_DIR={folder}` if this directory is accessible; {FORCE_HINT}"
            )
        }
        CommandError::NoSocket { log, .. } => {
            format!("it may still be starting: its log is `{}`; {FORCE_HINT}", log.display())
        }
        CommandError::UnknownLockHolder { lock, .. } => {
            format!("`fuser -v {}` names the process; stop it where it runs", lock.display())
        }
        CommandError::NotEnded { .. } => {
            "repair the file system that blocks it, or restart the machine".to_owned()
        }
        _ => return None,
    })
}
