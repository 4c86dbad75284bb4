//! `install.sh` with an empty home and a mirror on loopback.

use super::{
    assert_is_installed, find_package, list_tree, make_packages, platform, print, succeed,
};
use jackfield_e2e::{app::in_tree, home::finish};
use jackfield_test_support::file_server::FileServer;
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

const BOUND: Duration = Duration::from_mins(1);

/// A home directory, and a folder of downloads.
struct Installation {
    home: tempfile::TempDir,
    downloads: tempfile::TempDir,
    server: FileServer,
}

impl Installation {
    fn new(downloads: tempfile::TempDir) -> Installation {
        let server = FileServer::start(downloads.path());
        Installation { home: tempfile::tempdir().unwrap(), downloads, server }
    }

    /// A release whose program is a script that only prints this version.
    fn of_small_release(version: &str) -> Installation {
        let downloads = tempfile::tempdir().unwrap();
        write_release(downloads.path(), version, &["share/doc/jackfield/README.md"]);
        Installation::new(downloads)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.arg(in_tree("packages/install.sh")).args(args).env_clear();
        command.env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin");
        command.env("TMPDIR", self.home.path());
        command.env("JACKFIELD_BASE_URL", self.server.url());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        finish(self.command(args), BOUND)
    }

    fn refuse(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{}", print(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    fn assert_is_empty(&self) {
        assert_eq!(list_tree(self.home.path()), [].into());
    }
}

/// Writes the archive of this platform and its checksum.
fn write_release(folder: &Path, version: &str, files: &[&str]) {
    let name = format!("jackfield-{}", platform());
    let work = tempfile::tempdir().unwrap();
    let program = work.path().join(&name).join("bin/jackfield");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("#!/bin/sh\necho jackfield {version}\n")).unwrap();
    for file in files {
        let file = work.path().join(&name).join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text\n").unwrap();
    }
    let script = format!(
        "chmod +x {name}/bin/jackfield && tar -czf \"$1/{name}.tar.gz\" {name} && \
         cd \"$1\" && shasum -a 256 {name}.tar.gz >SHA256SUMS"
    );
    let mut pack = Command::new("sh");
    pack.args(["-c", &script, "sh"]).arg(folder).current_dir(work.path());
    succeed(pack);
}

#[test]
fn script_installs_the_archive_into_an_empty_home_and_removes_all_of_it() {
    let installation = Installation::new(make_packages(&["archive", "index"]));
    let archive = format!("jackfield-{}.tar.gz", platform());
    assert!(installation.downloads.path().join(archive).is_file());

    let output = installation.run(&["--version", env!("CARGO_PKG_VERSION")]);
    assert!(output.status.success(), "{}", print(&output));
    let text = print(&output);
    assert!(text.contains("export PATH=\"$HOME/.local/bin:$PATH\""), "{text}");
    let prefix = installation.home.path().join(".local");
    assert_is_installed(&prefix, "");
    assert!(prefix.join("share/zsh/site-functions/_jackfield").is_file());
    if cfg!(target_os = "linux") {
        let unit = fs::read_to_string(prefix.join("share/systemd/user/jackfield.service")).unwrap();
        assert!(unit.contains("\nExecStart=\"%h/.local/bin/jackfield\" serve\n"), "{unit}");
    }

    let output = installation.run(&["--uninstall"]);
    assert!(output.status.success(), "{}", print(&output));
    installation.assert_is_empty();
}

#[test]
fn wrong_checksum_and_wrong_version_install_nothing() {
    let installation = Installation::of_small_release("0.2.0");
    let wrong = installation.refuse(&["--version", "0.3.0"]);
    assert!(wrong.contains("has version 0.2.0, not 0.3.0"), "{wrong}");
    installation.assert_is_empty();

    let archive = find_package(installation.downloads.path(), ".tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    bytes.push(0);
    fs::write(&archive, bytes).unwrap();
    let wrong = installation.refuse(&[]);
    assert!(wrong.contains("nothing was installed"), "{wrong}");
    installation.assert_is_empty();

    fs::write(installation.downloads.path().join("SHA256SUMS"), "").unwrap();
    let wrong = installation.refuse(&[]);
    assert!(wrong.contains("has no package for"), "{wrong}");
    fs::remove_file(archive).unwrap();
    let wrong = installation.refuse(&[]);
    assert!(wrong.contains("failed to download"), "{wrong}");
    installation.assert_is_empty();
}

#[test]
fn update_removes_old_files_and_keeps_files_of_the_user() {
    let installation = Installation::of_small_release("0.2.0");
    let prefix = installation.home.path().join(".local");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::write(prefix.join("bin/other"), "mine").unwrap();
    let before = list_tree(installation.home.path());
    assert!(installation.run(&[]).status.success());

    let files = ["share/man/man1/jackfield.1"];
    write_release(installation.downloads.path(), "0.3.0", &files);
    let output = installation.run(&[]);
    assert!(print(&output).contains("installed jackfield 0.3.0"), "{}", print(&output));
    assert!(prefix.join(files[0]).is_file());
    assert!(!prefix.join("share/doc/jackfield/README.md").exists());

    assert!(installation.run(&["--uninstall"]).status.success());
    assert_eq!(list_tree(installation.home.path()), before);
    let wrong = installation.refuse(&["--uninstall"]);
    assert!(wrong.contains("nothing was installed by this script"), "{wrong}");
}

#[test]
fn program_that_the_script_did_not_install_is_not_replaced() {
    let installation = Installation::of_small_release("0.2.0");
    let program = installation.home.path().join(".local/bin/jackfield");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "mine").unwrap();
    let before = list_tree(installation.home.path());
    let wrong = installation.refuse(&[]);
    assert!(wrong.contains("this script did not install it"), "{wrong}");
    assert_eq!(list_tree(installation.home.path()), before);
    assert_eq!(fs::read_to_string(program).unwrap(), "mine");
}

/// macOS has `shasum` instead of `sha256sum`; small Linux systems have `wget` instead of `curl`.
#[test]
fn script_uses_wget_and_shasum_if_curl_and_sha256sum_are_missing() {
    let installation = Installation::of_small_release("0.2.0");
    let tools = tempfile::tempdir().unwrap();
    let names = "sh uname mktemp rm wget shasum tar gzip find sort touch cp chmod mv grep cat \
                 dirname mkdir sed";
    for name in names.split_whitespace() {
        let folder = ["/usr/bin", "/bin"].into_iter().map(Path::new);
        let program = folder.map(|it| it.join(name)).find(|it| it.exists());
        symlink(program.unwrap_or_else(|| panic!("install {name}")), tools.path().join(name))
            .unwrap();
    }
    let mut command = installation.command(&[]);
    command.env("PATH", tools.path());
    let text = succeed(command);
    assert!(text.contains("installed jackfield 0.2.0"), "{text}");
}
