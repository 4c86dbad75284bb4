//! An app that uses the client package: a folder with the package, and programs that run there and only know the URL of
//! the daemon and the token.

use crate::{Home, Web, home::finish};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

pub struct App {
    dir: PathBuf,
    mark: String,
    url: String,
    token: String,
}

impl App {
    /// An app of this home that uses this web server.
    pub fn new(home: &Home, web: &Web) -> App {
        let dir = home.path().join("app");
        fs::create_dir_all(dir.join("node_modules")).expect("a directory of the app");
        let url = format!("http://{}", web.address);
        App { dir, mark: home.mark().to_owned(), url, token: web.token.clone() }
    }

    /// Installs a package under this name, as `npm install` does.
    pub fn install(&self, name: &str, package: &Path) {
        let link = self.dir.join("node_modules").join(name);
        fs::create_dir_all(link.parent().expect("it has one")).expect("a directory for packages");
        symlink(package, link).expect("a package is installed once");
    }

    /// Writes a file of the app.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).expect("the app can be written");
    }

    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.dir).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("HOME", &self.dir).env("TMPDIR", &self.dir).env("E2E_MARK", &self.mark);
        command.env("JACKFIELD_URL", &self.url).env("JACKFIELD_TOKEN", &self.token);
        command
    }

    /// The stdout of a program that must succeed.
    pub fn say(&self, program: &str, args: &[&str], bound: Duration) -> String {
        said(&finish(self.command(program, args), bound))
    }
}

/// The stdout of a program that must have succeeded.
pub fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// The client package that `scripts/build-clients.sh` built from the current sources.
pub fn package() -> PathBuf {
    let [source, built] = ["clients/typescript", "target/clients/typescript"].map(in_tree);
    for file in fs::read_dir(source.join("src")).expect("the package has sources").flatten() {
        let copy = built.join("src").join(file.file_name());
        let same = fs::read(file.path()).ok() == fs::read(copy).ok();
        assert!(same, "the client package is missing or old: run scripts/build-clients.sh");
    }
    built
}

/// A path in the checkout.
pub fn in_tree(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::path::absolute(root.join(path)).expect("a working directory")
}

/// The line of a sandbox profile that makes the programs under test visible: in a checkout below `/tmp` they are hidden.
pub fn readable_tree() -> String {
    let root = in_tree("").canonicalize().expect("the tests run in the checkout");
    format!("read = [\"{}\"]\n", root.display())
}
