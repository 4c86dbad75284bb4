//! Cleaning up after a test whatever becomes of it, also when it is killed and no destructor runs.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

/// A shell that waits for the end of this value, or of this process if that comes first, and runs its
/// script then. There is no second way to clean up: what works for a killed test is what always runs.
#[derive(Debug)]
pub(crate) struct Sweeper {
    shell: Child,
}

impl Sweeper {
    /// The script finds `word` as its first argument. It must end by itself.
    pub(crate) fn new(script: &str, word: impl AsRef<OsStr>) -> Sweeper {
        // Nothing is ever said to it: the line comes to an end with the last holder of the pipe.
        let script = format!("read -r nothing\n{script}");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg("sweeper").arg(word).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: who ends the group of the test must not end this.
        let shell = command.process_group(0).spawn().expect("a shell starts");
        Sweeper { shell }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ours = self.shell.wait();
    }
}
