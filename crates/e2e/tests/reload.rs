//! SIGHUP: `config.toml` is read again, and a running daemon changes what it can.

use jackfield_e2e::{Home, client::PATIENCE, wait_for};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

fn configure(home: &Home, text: &str) {
    fs::create_dir_all(home.path().join("config")).unwrap();
    fs::write(home.path().join("config/config.toml"), text).unwrap();
}

/// What the daemon wrote to its log after `from` bytes, once it contains `wanted`.
fn logged(home: &Home, from: usize, wanted: &str) -> String {
    wait_for(wanted, PATIENCE, || {
        let said = home.said()[from..].to_owned();
        said.contains(wanted).then_some(said)
    })
}

#[test]
fn hangup_applies_what_can_change_and_names_what_needs_a_restart() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let open = json!({ "cwd": home.path(), "mcpServers": [] });
    let refused = client.ask("session/new", &open);
    assert!(refused["error"].is_object(), "no agent is named or configured: {refused}");

    let command = serde_json::to_string(&home.fake_agent(&[])).unwrap();
    let valid = format!(
        "default_agent = \"configured\"\ndurability = \"power\"\n[sessions]\nmax_live = 7\n\
         [agents.configured]\ncommand = {command}\n"
    );
    configure(&home, &valid);
    let from = home.said().len();
    daemon.signal(Signal::HUP);
    let said = logged(&home, from, "need a restart");
    assert!(said.contains("reloaded the configuration"), "{said}");
    assert!(said.contains("default_agent, agents, sessions"), "{said}");
    assert!(said.contains("durability"), "{said}");
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");

    configure(&home, "default_agent = \"gone\"\nagnets = 1\n");
    let from = home.said().len();
    daemon.signal(Signal::HUP);
    let said = logged(&home, from, "keeping the old one");
    assert!(said.contains("agnets"), "the mistake is named: {said}");
    let session = client.open(home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
}
