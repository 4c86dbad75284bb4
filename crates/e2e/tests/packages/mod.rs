//! Packages as users have them: made by `cargo xtask dist`, installed into an empty place, used, and removed.

mod first_answer;
mod install_script;
#[cfg(target_os = "linux")]
mod linux;
mod machine;
mod npm;

use jackfield_e2e::home::{binary, finish};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

const BOUND: Duration = Duration::from_mins(2);

/// What every package has below its prefix, besides the program.
const SHARED_FILES: [&str; 4] = [
    "share/bash-completion/completions/jackfield",
    "share/fish/vendor_completions.d/jackfield.fish",
    "share/doc/jackfield/README.md",
    "share/doc/jackfield/LICENSE-MIT",
];

/// Makes packages of these kinds from the program under test.
fn make_packages(kinds: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("jf-dist-").tempdir().unwrap();
    let mut xtask = Command::new(binary("xtask"));
    xtask.args(["dist", "--fast", "--binary"]).arg(binary("jackfield"));
    xtask.arg("--out").arg(folder.path());
    for kind in kinds {
        xtask.args(["--only", kind]);
    }
    succeed(xtask);
    folder
}

/// The platform in the name of an archive.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// The only file in a folder with this ending.
fn find_package(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut found = files.filter(|it| it.to_string_lossy().ends_with(ending));
    let package = found.next().unwrap_or_else(|| panic!("no file ends with {ending}"));
    assert_eq!(found.next(), None);
    package
}

fn succeed(command: Command) -> String {
    let output = finish(command, BOUND);
    assert!(output.status.success(), "{}\n{}", output.status, print(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn print(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{stdout}\n{stderr}")
}

/// All files and directories below a folder.
fn list_tree(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap().map(|it| it.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            found.insert(entry.path().strip_prefix(folder).unwrap().to_path_buf());
        }
    }
    found
}

/// Checks that the installed program runs, and that its files are where `man` and the shells search them.
fn assert_is_installed(prefix: &Path, man_page_ending: &str) {
    let mut version = Command::new(prefix.join("bin/jackfield"));
    version.arg("--version").env_clear();
    assert_eq!(succeed(version).trim(), format!("jackfield {}", env!("CARGO_PKG_VERSION")));
    for file in SHARED_FILES {
        assert!(prefix.join(file).is_file(), "{file} is missing");
    }
    for page in ["jackfield", "jackfield-run", "jackfield-sessions-rm"] {
        let page = prefix.join(format!("share/man/man1/{page}.1{man_page_ending}"));
        assert!(page.is_file(), "{} is missing", page.display());
    }
    assert_bash_completes(prefix);
}

/// The installed script completes a command with the installed program.
fn assert_bash_completes(prefix: &Path) {
    let script = "source \"$1\"; COMP_WORDS=(jackfield att) COMP_CWORD=1 COMP_TYPE=9\n\
                  _clap_complete_jackfield jackfield att; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).arg(prefix.join(SHARED_FILES[0])).env_clear();
    let path = [&prefix.join("bin"), Path::new("/usr/bin"), Path::new("/bin")];
    let path: Vec<&OsStr> = path.iter().map(|it| it.as_os_str()).collect();
    bash.env("PATH", path.join(OsStr::new(":"))).env("HOME", prefix);
    assert_eq!(succeed(bash).trim(), "attach");
}
