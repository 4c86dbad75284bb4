//! Real agents from the real registries: installed with a network, started without one.

use crate::{home::TestHome, package_registry::add_package_managers};
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Variables with which the package managers of this machine reach their registries.
const PASSED: &[&str] = &["PIP_", "npm_config_", "NPM_CONFIG_", "NODE_EXTRA_CA_CERTS", "SSL_CERT_"];

/// Adds the variables of this process that lead to the registries.
fn with_registries(mut command: Command) -> Command {
    let is_passed = |name: &str| {
        PASSED.iter().any(|it| name.starts_with(it)) || name.to_lowercase().ends_with("_proxy")
    };
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    command.envs(all.filter(|(name, _)| is_passed(name)));
    command
}

/// The version is one whose dependencies are known to be in the registries: a mirror may have the newest package before
/// its dependencies.
fn check_agent(agent: &str, version: &str) {
    let home = TestHome::new();
    add_package_managers(&home);
    let named = format!("{agent}@{version}");
    let install = with_registries(home.command(&["agents", "install", &named, "--yes"]));
    let outcome = run(&home, install);
    assert_eq!(outcome.0, 0, "{}", outcome.1);

    // In a network namespace that has loopback only.
    let show = home.command(&["agents", "show", agent, "--probe", "--format", "json"]);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut offline = Command::new(repository.join("scripts/without-network.sh"));
    offline.arg(show.get_program()).args(show.get_args()).env_clear();
    for (name, value) in show.get_envs() {
        offline.env(name, value.unwrap_or_default());
    }
    let path = std::env::join_paths([
        home.path().join("bin").as_path(),
        Path::new("/usr/sbin"),
        Path::new("/sbin"),
        Path::new("/usr/bin"),
        Path::new("/bin"),
    ]);
    offline.env("PATH", path.unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (code, printed) = run(&home, offline);
    assert_eq!(code, 0, "{printed}");
    let shown: Value = serde_json::from_str(&printed).unwrap();
    let shown = &shown["agent"];
    assert_eq!(shown["program"]["via"], "installed", "{shown}");
    assert_eq!(shown["acp"], "works", "{shown}");
    assert!(shown["installed"]["packages"][0]["integrity"].is_string(), "{shown}");
}

/// The exit code, and stdout or else stderr.
fn run(home: &TestHome, mut command: Command) -> (i32, String) {
    let outcome = home.outcome("", &command.output().unwrap());
    (outcome.code, if outcome.stdout.starts_with('{') { outcome.stdout } else { outcome.stderr })
}

#[test]
#[ignore = "nightly: downloads a real agent"]
fn agent_of_npm_starts_without_a_network() {
    check_agent("gemini", "0.61.0");
}

#[test]
#[ignore = "nightly: downloads a real agent"]
fn agent_of_pypi_starts_without_a_network() {
    check_agent("vibe", "3.0.2");
}
