//! Starts the package registry of `package_registry.py`, and gives a home the real npm and Python.

use crate::home::TestHome;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running registry. It ends when it is dropped.
pub(crate) struct PackageRegistry {
    child: Child,
    dir: TempDir,
}

impl PackageRegistry {
    /// Starts a registry, and configures npm and pip of this home to use it, as a user would.
    pub(crate) fn start(home: &TestHome) -> PackageRegistry {
        let dir = tempfile::Builder::new().prefix("jf-registry").tempdir().unwrap();
        let python = add_package_managers(home);
        let script =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/package_registry.py");
        fs::write(dir.path().join("latest"), "1.0.0").unwrap();
        let mut child = Command::new(&python)
            .arg(script)
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = format!("http://127.0.0.1:{}", port.trim());
        fs::write(home.path().join(".npmrc"), format!("registry={address}\nfetch-retries=0\n"))
            .unwrap();
        fs::create_dir(home.path().join(".pip")).unwrap();
        let pip = format!("[global]\nindex-url = {address}/simple\ntrusted-host = 127.0.0.1\n");
        fs::write(home.path().join(".pip/pip.conf"), pip).unwrap();
        PackageRegistry { child, dir }
    }

    /// An ACP registry of agents that are archives.
    pub(crate) fn acp_registry(&self) -> PathBuf {
        self.dir.path().join("registry.json")
    }

    /// The folder of the registry, which no agent may write into.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The version of `fake-agent` that npm installs if no version is named.
    pub(crate) fn set_latest(&self, version: &str) {
        fs::write(self.dir.path().join("latest"), version).unwrap();
    }

    /// Archives are requested, and not sent before [`PackageRegistry::release`].
    pub(crate) fn hold(&self) {
        fs::write(self.dir.path().join("hold"), "").unwrap();
    }

    pub(crate) fn has_request(&self) -> bool {
        self.dir.path().join("requested").exists()
    }

    pub(crate) fn release(&self) {
        fs::remove_file(self.dir.path().join("hold")).unwrap();
    }
}

impl Drop for PackageRegistry {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ended = stdin.flush();
        }
        let _ended = self.child.wait();
    }
}

/// Puts npm and Python of this machine on PATH, and returns the path of Python.
pub(crate) fn add_package_managers(home: &TestHome) -> String {
    let python = std::env::var("JACKFIELD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let python = find_real_program(&python, "import sys; print(sys.executable)", "-c");
    let node = find_real_program("node", "process.stdout.write(process.execPath)", "-e");
    let npm = find_on_path("npm");
    let shell = "/bin/sh".to_owned();
    for (name, path) in [("node", &node), ("npm", &npm), ("python3", &python), ("sh", &shell)] {
        home.write_program(name, &format!("exec '{path}' \"$@\""));
    }
    python
}

/// The program itself, not a shim of a version manager.
fn find_real_program(name: &str, code: &str, flag: &str) -> String {
    let output = Command::new(name).args([flag, code]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn find_on_path(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
    found.unwrap_or_else(|| panic!("{name} is on PATH")).to_str().unwrap().to_owned()
}
