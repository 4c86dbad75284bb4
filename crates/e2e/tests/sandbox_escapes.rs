//! Agents that try to leave their sandbox when a session is restored and when an MCP server is started. Each attempt
//! works without a sandbox.

use crate::sandbox::{ALL_WORK, BOUND, SandboxScene, TestedLayer, expected, lines};
use jackfield_e2e::{Client, wait_for};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The attempts of the agent's last start.
fn take_attempts(scene: &SandboxScene) -> String {
    let path = scene.work.join("attempts");
    let attempts = wait_for("the agent's attempts", BOUND, || {
        fs::read_to_string(&path).ok().filter(|it| it.contains("signal-daemon"))
    });
    fs::remove_file(&path).unwrap();
    attempts
}

/// Kills the daemon and starts another one.
fn restart_daemon(mut scene: SandboxScene) -> SandboxScene {
    scene.daemon.kill_9();
    wait_for("all processes to end", BOUND, || scene.home.alive(&[]).is_empty().then_some(()));
    scene.daemon = scene.home.serve(&[]);
    scene
}

/// A client that names no agent and no profile.
fn connect(scene: &SandboxScene) -> Client {
    let mut client = scene.home.dial();
    client.hello_aware();
    client
}

/// The answer to a prompt, for which the session is restored.
fn wake(client: &mut Client, session: &str, cwd: &Path) -> Value {
    let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    client.result("session/load", &params);
    let prompt = client.send_prompt(session, "hello");
    client.answer(prompt)
}

/// A session that is restored by another daemon, after its project got settings that would permit everything, and then
/// by the same daemon, after the agent has killed itself.
fn restored_session_makes_attempts(layer: TestedLayer, profile: &str) -> [String; 3] {
    let scene = SandboxScene::new(layer);
    let state = scene.work.join("agent-state");
    let flags = ["--state", state.to_str().unwrap()];
    let agent = scene.hostile_agent_with(&scene.attacks(), &flags);
    let mut client = scene.connect(&agent, profile);
    let session = client.open(&scene.work);
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    let first = take_attempts(&scene);
    drop(client);
    let everything = "[sandbox.workspace]\nwrite = [\"/\"]\nread = [\"~\"]\nnetwork = \"all\"\n";
    for name in [".jackfield.toml", "policy.toml"] {
        fs::write(scene.work.join(name), everything).unwrap();
    }
    let scene = restart_daemon(scene);
    let mut client = connect(&scene);
    let answer = wake(&mut client, &session, &scene.work);
    assert!(answer["error"].is_null(), "{answer}");
    let second = take_attempts(&scene);
    let turn = client.send_prompt(&session, "die KILL");
    client.answer(turn);
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    let third = take_attempts(&scene);
    scene.daemon.stop();
    [first, second, third]
}

#[test]
fn attempts_of_a_restored_agent_work_without_a_sandbox() {
    let [first, restored @ ..] = restored_session_makes_attempts(TestedLayer::Bubblewrap, "open");
    assert_eq!(lines(&first), ALL_WORK);
    for attempts in restored {
        // The daemon that the last attempt signals was killed.
        let (last, others) = (ALL_WORK.len() - 1, lines(&attempts));
        assert_eq!(others[..last], ALL_WORK[..last]);
    }
}

fn attempts_of_a_restored_agent_are_refused(layer: TestedLayer) {
    for attempts in restored_session_makes_attempts(layer, "workspace") {
        assert_eq!(lines(&attempts), expected(layer));
    }
}

#[test]
fn attempts_of_a_restored_agent_are_refused_by_bubblewrap() {
    attempts_of_a_restored_agent_are_refused(TestedLayer::Bubblewrap);
}

#[test]
fn attempts_of_a_restored_agent_are_refused_by_landlock() {
    attempts_of_a_restored_agent_are_refused(TestedLayer::Landlock);
}

/// The answer to a prompt after an agent of another session replaced the directory by a link, and whether the restored
/// agent could write to the target of the link.
fn wake_in_replaced_directory(profile: &str) -> (Value, bool) {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let inner = scene.work.join("inner");
    fs::create_dir(&inner).unwrap();
    let flags = ["--load", "success-for-missing", "--resume", "success-for-missing"];
    let agent = scene.hostile_agent_with(": > started", &flags);
    let mut client = scene.connect(&agent, profile);
    let session = client.open(&inner);
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    drop(client);
    let scene = restart_daemon(scene);
    let outside = scene.home.path().join("outside");
    let plant = format!("mv inner moved && ln -s '{}' inner", outside.display());
    fs::write(scene.work.join("plant.sh"), plant).unwrap();
    let mut other = scene.connect(&scene.home.fake_agent(&[]), profile);
    let planting = other.open(&scene.work);
    assert_eq!(other.prompt(&planting, "terminal sh plant.sh"), "end_turn");
    assert!(inner.is_symlink(), "{}", other.text());
    let mut client = connect(&scene);
    let answer = wake(&mut client, &session, &inner);
    scene.daemon.stop();
    (answer, outside.join("started").exists())
}

#[test]
fn directory_that_was_replaced_by_a_link_is_not_used_for_a_restored_session() {
    let (_, has_written) = wake_in_replaced_directory("open");
    assert!(has_written, "without a sandbox the agent starts in the target of the link");
    let (answer, has_written) = wake_in_replaced_directory("workspace");
    assert!(!has_written, "{answer}");
    assert!(answer["error"].to_string().contains("inner"), "{answer}");
}
