//! The terminal interface as users meet it: the real binary in a terminal of tmux, a real daemon, the fake agent.

mod citizen;
mod figures;
mod hostile;
mod inline;
mod multiplexer;
mod pane;
mod work;

use jackfield_e2e::Home;
use std::{fs, time::Duration};

const COMMAND_MAX: Duration = Duration::from_secs(30);

/// A home whose default agent is the fake one.
fn home_with_agent() -> Home {
    let home = Home::new();
    let state = home.path().join("agent").to_string_lossy().into_owned();
    let argv = home.fake_agent(&["--state", &state]);
    configure_agent(&home, &argv);
    home
}

/// Makes a command the default agent.
fn configure_agent(home: &Home, argv: &[String]) {
    fs::create_dir_all(home.path().join("config")).unwrap();
    let argv = serde_json::to_string(argv).unwrap();
    let config = format!("default_agent = \"fake\"\n[agents.fake]\ncommand = {argv}\n");
    fs::write(home.path().join("config/config.toml"), config).unwrap();
}

/// Runs a command that must succeed, and returns its stdout.
fn run(home: &Home, args: &[&str]) -> String {
    let output = home.run(args, COMMAND_MAX);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {text}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
