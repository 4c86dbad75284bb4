//! The packages for Debian and for distributions with RPM, installed by `dpkg` and `rpm`.

use super::{
    assert_is_installed, find_package, list_tree, machine::EmptyMachine, make_packages, succeed,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What package managers write about their own work.
const RECORDS: [&str; 4] = ["var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache"];

fn list_without_records(root: &Path) -> BTreeSet<PathBuf> {
    let mut tree = list_tree(root);
    tree.retain(|path| !RECORDS.iter().any(|it| path.starts_with(it)));
    tree
}

fn assert_unit_starts_the_program(root: &Path) {
    let unit = fs::read_to_string(root.join("usr/lib/systemd/user/jackfield.service")).unwrap();
    assert!(unit.contains("\nExecStart=/usr/bin/jackfield serve\n"), "{unit}");
    assert!(root.join("usr/lib/systemd/user/jackfield.socket").is_file());
}

#[test]
#[ignore = "nightly: compresses the program, and copies a Debian system"]
fn deb_is_installed_on_an_empty_debian_and_purged_without_leftovers() {
    let Some(machine) = EmptyMachine::new() else { return };
    let packages = make_packages(&["deb"]);
    let package = find_package(packages.path(), ".deb");
    let before = list_without_records(&machine.root());
    machine.copy_in(&package, "/var/cache");
    machine.run_as_root("dpkg --install /var/cache/jackfield*.deb");
    assert_is_installed(&machine.root().join("usr"), ".gz");
    assert_unit_starts_the_program(&machine.root());
    assert!(machine.root().join("usr/share/zsh/vendor-completions/_jackfield").is_file());
    let version = machine.run_as_root("jackfield --version");
    assert_eq!(version.trim(), format!("jackfield {}", env!("CARGO_PKG_VERSION")));
    machine.run_as_root("dpkg --purge jackfield");
    assert_eq!(list_without_records(&machine.root()), before);
}

#[test]
#[ignore = "nightly: compresses the program"]
fn rpm_is_installed_into_an_empty_root_and_removed_without_leftovers() {
    let packages = make_packages(&["rpm"]);
    let package = find_package(packages.path(), ".rpm");
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // An empty root lacks the C library that the package requires; the program runs with that of this machine.
    let rpm = |args: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm"]).args(args);
        succeed(rpm)
    };
    rpm(&["--initdb"]);
    // The package `filesystem` of a distribution owns these.
    let shared = "bin lib/systemd/user share/man/man1 share/doc share/zsh/site-functions \
                  share/bash-completion/completions share/fish/vendor_completions.d";
    for directory in shared.split_whitespace() {
        fs::create_dir_all(root.join("usr").join(directory)).unwrap();
    }
    let before = list_without_records(root);
    rpm(&["--install", "--nodeps", package.to_str().unwrap()]);
    assert_is_installed(&root.join("usr"), ".gz");
    assert_unit_starts_the_program(root);
    assert!(root.join("usr/share/zsh/site-functions/_jackfield").is_file());
    let required = rpm(&["--query", "--requires", "jackfield"]);
    assert!(required.contains("libc.so.6"), "{required}");
    rpm(&["--erase", "jackfield"]);
    assert_eq!(list_without_records(root), before);
}
