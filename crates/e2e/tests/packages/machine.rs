//! A copy of the minimal Debian system that `scripts/install-package-tools.sh` makes, entered by `chroot`.

use super::{BOUND, succeed};
use jackfield_e2e::{app::in_tree, home::finish};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Processes in it end with the script that started them: each script has namespaces of its own for processes and mounts.
pub(super) struct EmptyMachine {
    folder: tempfile::TempDir,
}

/// The user of scripts without root.
pub(super) const USER: &str = "1000:1000";
pub(super) const USER_HOME: &str = "/home/user";

const ENTER: &str = r#"
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/tmp" || exit 1
chmod 1777 "$1/tmp"
root=$1 user=$2 home=$3 script=$4
exec chroot --userspec="$user" "$root" /usr/bin/env -i HOME="$home" \
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin /bin/sh -ec "cd; $script"
"#;

impl EmptyMachine {
    /// Returns `None`, and prints so, if it lacks permission.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported")]
    pub(super) fn new() -> Option<EmptyMachine> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: entering another root directory needs root");
            return None;
        }
        let image = in_tree("target/tools/empty-machine");
        assert!(image.is_dir(), "run scripts/install-package-tools.sh");
        let folder = tempfile::Builder::new().prefix("jf-machine-").tempdir().unwrap();
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--reflink=auto"]).arg(image).arg(folder.path().join("root"));
        succeed(copy);
        let machine = EmptyMachine { folder };
        machine.run_as_root(&format!("mkdir -p {USER_HOME} && chown {USER} {USER_HOME}"));
        Some(machine)
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Copies a file into a directory of the machine.
    pub(super) fn copy_in(&self, file: &Path, directory: &str) {
        let directory = self.root().join(directory.trim_start_matches('/'));
        fs::copy(file, directory.join(file.file_name().unwrap())).unwrap();
    }

    /// The stdout of a script, which must succeed.
    pub(super) fn run_as_root(&self, script: &str) -> String {
        succeed(self.command("0:0", "/root", script))
    }

    pub(super) fn run_as_user(&self, script: &str) -> Output {
        finish(self.command(USER, USER_HOME, script), BOUND)
    }

    fn command(&self, user: &str, home: &str, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh"]);
        command.arg(self.root()).args([user, home, script]);
        command
    }
}
