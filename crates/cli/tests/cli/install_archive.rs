//! `jackfield agents install` of agents that are archives: imported from an ACP registry, downloaded from loopback.

use crate::{
    home::TestHome,
    install::{assert_no_escaped_file, folder, run, run_ok, shown, version_in_use, versions},
    package_registry::PackageRegistry,
};
use std::fs;

/// A home into which the ACP registry was imported, with curl on PATH.
fn home_with_archives() -> (TestHome, PackageRegistry) {
    let home = TestHome::new();
    let registry = PackageRegistry::start(&home);
    home.write_program("curl", "exec /usr/bin/curl \"$@\"");
    run_ok(&home, &["import", registry.acp_registry().to_str().unwrap()]);
    (home, registry)
}

/// Checksums, ports and the folder of the test differ between runs.
fn hide_numbers(text: &str) -> String {
    let hide = |word: &str| match word.split_once("sha256=") {
        Some((before, _)) => format!("{before}sha256=[…]"),
        None => match word.split_once("http://127.0.0.1:") {
            Some((before, rest)) => {
                let path = rest.split_once('/').map_or("", |it| it.1);
                format!("{before}http://127.0.0.1:[PORT]/{path}")
            }
            None => word.to_owned(),
        },
    };
    let lines = text.lines().map(|it| it.split(' ').map(hide).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn archive_of_a_registry_is_verified_unpacked_and_started_without_a_network() {
    let (home, registry) = home_with_archives();
    let installed = run_ok(&home, &["install", "demo", "--yes"]);
    insta::assert_snapshot!("installed_archive", hide_numbers(&installed.to_snapshot()));
    assert_eq!(versions(&home, "demo"), ["1.2.0"]);
    let agent = shown(&home, "demo");
    assert_eq!(agent["program"]["via"], "installed");
    assert_eq!(agent["acp"], "works");
    let package = &agent["installed"]["packages"][0];
    assert_eq!(package["source"], "archive");
    assert!(package["integrity"].as_str().unwrap().starts_with("sha256="), "{package}");
    assert!(!folder(&home, "demo/1.2.0/download.tar.gz").exists());
    assert_eq!(fs::read(folder(&home, "demo/1.2.0/files/top/bin/link")).unwrap(), b"x");

    drop(registry);
    fs::remove_file(home.path().join("bin/curl")).unwrap();
    let answer = home.run(&["run", "-a", "demo", "--format", "quiet", "hello"]);
    assert_eq!(answer.stdout, "answer of 1.2.0\n", "{answer:?}");
    let without_curl = run(&home, &["install", "through", "--yes"]);
    assert!(without_curl.stderr.contains("`curl` was not found"), "{without_curl:?}");
    run_ok(&home, &["remove", "demo", "--yes"]);
    assert!(!folder(&home, "demo").exists());
}

#[test]
fn archive_that_is_not_the_announced_one_or_hostile_is_refused() {
    let (home, registry) = home_with_archives();
    for (agent, expected) in [
        ("wrong-sum", "was not installed as announced"),
        ("escaping", "escaped-archive` leaves its folder"),
        ("absolute", "escaped-absolute` leaves its folder"),
        ("linked", "`top` is a link that leaves its folder"),
        ("through", "`other/escaped-through` has no directory"),
        ("huge", "it has more than 2147483648 bytes"),
        ("no-program", "have no usable program `demo`"),
    ] {
        let refused = run(&home, &["install", agent, "--yes"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
        assert_eq!(versions(&home, agent), Vec::<String>::new(), "{agent}");
        assert_eq!(version_in_use(&home, agent), None);
    }
    assert_no_escaped_file(&home);
    let escaped = |it: &fs::DirEntry| it.file_name().to_string_lossy().starts_with("escaped");
    assert!(!fs::read_dir(registry.dir()).unwrap().flatten().any(|it| escaped(&it)));
    for (agent, expected) in [
        ("no-sum", "Jackfield does not install `no-sum`"),
        ("demo@1.1.0", "has the archive of version 1.2.0, not of 1.1.0"),
    ] {
        let refused = run(&home, &["install", agent, "--yes"]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}
