//! Answers about hosts that apply to all agents with a profile: given in a session, listed, explained and removed.

use crate::sandbox::{BOUND, SandboxScene, TestedLayer, fetch};
use serde_json::{Value, json};
use std::fs;

/// What a command prints as JSON.
fn print(scene: &SandboxScene, args: &[&str]) -> Value {
    let printed = scene.home.run(&[args, &["--format", "json"]].concat(), BOUND);
    assert!(printed.status.success(), "{printed:?}");
    serde_json::from_slice(&printed.stdout).unwrap()
}

#[test]
fn answer_always_applies_to_other_sessions_until_it_is_forgotten() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let mut client = scene.connect(&scene.home.fake_agent(&[]), "workspace");
    let first = client.open(&scene.work);
    // The name does not exist: an allowed connection fails at the name server.
    let (asks, allowed) = fetch(&scene, &mut client, &first, "allow-host-always");
    assert!(asks == 1 && allowed.contains("502"), "{asks} {allowed}");
    let second = client.open(&scene.work);
    let (asks, allowed) = fetch(&scene, &mut client, &second, "refuse-connection");
    assert!(asks == 0 && allowed.contains("502"), "{asks} {allowed}");

    let listed = print(&scene, &["sandbox", "hosts"]);
    let answer = &listed["hosts"][0];
    assert_eq!(answer["host"], "unknown.invalid");
    assert_eq!(
        [&answer["port"], &answer["allowed"], &answer["profile"], &answer["session"]],
        [&json!(80), &json!(true), &json!("workspace"), &json!(first)]
    );
    let explained = print(&scene, &["sandbox", "explain", &second, "unknown.invalid:80"]);
    let why = explained["explained"][0]["why"].as_str().unwrap();
    assert!(why.contains("you answered so"), "{why}");

    // A rule of the user wins over the answer.
    let policy = scene.home.path().join("config/policy.toml");
    fs::write(&policy, "[[rule]]\ndo = \"deny\"\nkind = \"fetch\"\n").unwrap();
    let (asks, denied) = fetch(&scene, &mut client, &first, "allow-connection");
    assert!(asks == 0 && denied.contains("403"), "{asks} {denied}");
    fs::write(&policy, "").unwrap();

    let forgotten = scene.home.run(&["sandbox", "forget", "unknown.invalid"], BOUND);
    assert!(forgotten.status.success(), "{forgotten:?}");
    let (asks, refused) = fetch(&scene, &mut client, &first, "refuse-host-always");
    assert!(asks == 1 && refused.contains("403"), "{asks} {refused}");
    let (asks, refused) = fetch(&scene, &mut client, &second, "allow-connection");
    assert!(asks == 0 && refused.contains("403"), "{asks} {refused}");
    let unknown = scene.home.run(&["sandbox", "forget", "other.invalid"], BOUND);
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(message.contains("no answer about `other.invalid`"), "{message}");
    scene.daemon.stop();
}
