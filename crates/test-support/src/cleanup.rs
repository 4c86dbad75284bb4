//! Cleanup after a test, even if the test is killed and no destructor runs.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

/// A shell that waits for the end of this value or of this process, whichever comes first, and then runs its script. This
/// is the only cleanup path, so it also works for a killed test.
#[derive(Debug)]
pub(crate) struct CleanupShell {
    shell: Child,
}

impl CleanupShell {
    /// The script gets `word` as its first argument. It must end by itself.
    pub(crate) fn new(script: &str, word: impl AsRef<OsStr>) -> CleanupShell {
        // Nothing is written to the pipe: `read` returns when the last holder closes it.
        let script = format!("read -r nothing\n{script}");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg("sweeper").arg(word).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Its own process group, so that a signal to the group of the test does not kill it.
        let shell = command.process_group(0).spawn().expect("a shell starts");
        CleanupShell { shell }
    }
}

impl Drop for CleanupShell {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _status = self.shell.wait();
    }
}
