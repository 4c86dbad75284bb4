//! Commands of ours and commands in terminals of a client: both alike, as far as a model sees.

use crate::tool::{
    Grant, Offers,
    world::{World, in_world, until},
};
use agent_client_protocol::v1::schema::{ToolCallContent, ToolKind};
use serde_json::json;
use std::{fs, time::Duration};

const TERMINAL: Offers = Offers { read: false, write: false, terminal: true };

#[tokio::test]
async fn a_command_tells_what_it_printed_and_how_it_ended() {
    for offers in [Offers::default(), TERMINAL] {
        in_world(offers, async |world| {
            fs::create_dir(world.at("sub")).unwrap();
            let args = json!({ "cmd": "echo out; echo err >&2; pwd; exit 3", "cwd": "sub" });
            let job = world.prepare("shell", args).await.unwrap();
            let line = "echo out; echo err >&2; pwd; exit 3";
            assert_eq!((job.title.as_str(), job.kind), (line, ToolKind::Execute));
            assert_eq!(job.input, json!({ "command": line, "cwd": "sub" }), "what will be run");
            assert_eq!(job.grant, Grant::Ask(format!("shell in sub: {line}")));
            let outcome = world.run(job).await;
            let sub = fs::canonicalize(world.at("sub")).unwrap();
            assert!(outcome.failed);
            assert_eq!(outcome.text, format!("out\nerr\n{}\n[exit status 3]", sub.display()));
            assert_eq!(outcome.raw.unwrap()["exitCode"], 3);
            let good = world.call("shell", json!({ "command": "true" })).await;
            assert_eq!(
                (good.failed, good.text.as_str()),
                (false, "[it printed nothing; exit status 0]")
            );
            world.nothing_is_left().await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_command_has_no_input_to_wait_for() {
    in_world(Offers::default(), async |world| {
        let outcome = world.call("shell", json!({ "command": "cat; echo done" })).await;
        assert_eq!(outcome.text, "done\n[exit status 0]");
    })
    .await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_its_tree() {
    for offers in [Offers::default(), TERMINAL] {
        in_world(offers, async |world| {
            let line = "echo begun; sleep 600 & sleep 600";
            let outcome = world.call("shell", json!({ "command": line, "timeout": "1" })).await;
            assert!(outcome.failed && outcome.text.starts_with("begun\n"), "{outcome:?}");
            assert!(outcome.text.contains("had not ended after 1 s"), "{}", outcome.text);
            assert_eq!(outcome.raw.unwrap()["timedOut"], true);
            world.nothing_is_left().await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_command_that_is_cancelled_leaves_nothing_behind() {
    for offers in [Offers::default(), TERMINAL] {
        in_world(offers, async |world| {
            let line = "sleep 600 & echo $! > pid; echo begun; sleep 600";
            let job = world.prepare("shell", json!({ "command": line })).await.unwrap();
            let began = until(|| world.at("pid").exists());
            tokio::select! {
                outcome = world.run(job) => panic!("it ended: {outcome:?}"),
                () = began => {}
            }
            world.nothing_is_left().await;
            let pid = fs::read_to_string(world.at("pid")).unwrap();
            let process = format!("/proc/{}", pid.trim());
            until(|| !fs::exists(&process).unwrap()).await;
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_printed_is_shown_while_it_runs() {
    in_world(Offers::default(), async |world| {
        let line = "echo one; until test -e go; do sleep 0.05; done; echo two";
        let job = world.prepare("shell", json!({ "command": line })).await.unwrap();
        let shown = |text: &str| world.shown().iter().any(|it| it.contains(text));
        let (outcome, ()) = tokio::join!(world.run(job), async {
            until(|| shown("one")).await;
            fs::write(world.at("go"), "").unwrap();
        });
        assert_eq!(outcome.text, "one\ntwo\n[exit status 0]");
    })
    .await;
}

#[tokio::test]
async fn a_terminal_of_the_client_is_shown_and_given_back() {
    in_world(TERMINAL, async |world| {
        let outcome = world.call("shell", json!({ "command": "echo hi" })).await;
        let [ToolCallContent::Terminal(terminal)] = outcome.content.as_slice() else {
            panic!("{outcome:?}")
        };
        let id = terminal.terminal_id.to_string();
        assert!(world.shown().iter().any(|it| it.contains(&id)));
        until(|| world.client.heard().last().is_some_and(|it| it == "release")).await;
        let heard = world.client.heard();
        assert_eq!(heard, ["create echo hi", "wait", "output", "kill", "release"]);
    })
    .await;
}

#[tokio::test]
async fn a_terminal_that_comes_too_late_is_given_back() {
    in_world(TERMINAL, async |world: World| {
        let job = world.prepare("shell", json!({ "command": "sleep 600" })).await.unwrap();
        let hurry = Duration::ZERO;
        assert!(tokio::time::timeout(hurry, world.run(job)).await.is_err());
        until(|| world.client.heard().last().is_some_and(|it| it == "release")).await;
        world.nothing_is_left().await;
    })
    .await;
}

#[tokio::test]
async fn a_place_outside_and_an_empty_line_are_refused() {
    in_world(Offers::default(), async |world| {
        for args in [
            json!({ "command": " " }),
            json!({ "command": "ls", "cwd": ".." }),
            json!({ "command": "ls", "cwd": "missing" }),
        ] {
            assert!(world.call("shell", args.clone()).await.failed, "{args}");
        }
    })
    .await;
}
