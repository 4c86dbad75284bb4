//! A daemon with tenants warns at its start that agents of tenants are not confined.

use super::{configure, token, write_tenants};
use jackfield_e2e::Home;
use std::{collections::BTreeMap, fs};

const WARNING: &str = "tenants do not confine agents";

/// Starts a daemon with these flags, stops it, and returns what stood on its stderr.
fn stderr_of(home: &Home, args: &[&str]) -> String {
    home.serve(args).stop();
    home.said()
}

fn tenants_file(home: &Home) -> String {
    configure(home);
    let tokens = BTreeMap::from([("acme", token(home, "acme"))]);
    write_tenants(home, &tokens, "").to_str().unwrap().to_owned()
}

#[test]
fn a_daemon_with_tenants_warns_once_in_its_log_on_stderr() {
    for volume in ["--quiet", "--verbose"] {
        let home = Home::new();
        let said = stderr_of(&home, &["--tenants", &tenants_file(&home), volume]);
        let lines: Vec<_> = said.lines().filter(|it| it.contains(WARNING)).collect();
        let [line] = lines[..] else { panic!("{volume}: not one warning: {said}") };
        assert!(line.contains(" WARN ") && line.contains("token of the operator"), "{line}");
    }
}

#[test]
fn a_daemon_whose_log_is_a_file_warns_there_and_on_stderr() {
    let home = Home::new();
    let file = home.path().join("daemon.log");
    let said = stderr_of(
        &home,
        &["--tenants", &tenants_file(&home), "--log", file.to_str().unwrap(), "--quiet"],
    );
    assert_eq!(said.matches(&format!("warning: {WARNING}")).count(), 1, "{said}");
    let log = fs::read_to_string(file).unwrap();
    assert_eq!(log.matches(&format!(" WARN {WARNING}")).count(), 1, "{log}");
}

#[test]
fn a_daemon_without_tenants_does_not_warn_about_them() {
    let home = Home::new();
    let said = stderr_of(&home, &[]);
    assert!(said.contains("daemon started") && !said.contains(WARNING), "{said}");
}
