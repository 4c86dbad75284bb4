//! Real CLIs inside the profile `workspace`, with the network limited to the host of the model: each does a task with a
//! tool and a permission.

use super::{permission, rig::Rig, stage::Stage, talk};
use jackfield_e2e::app::readable_tree;
use std::time::Duration;

const BUBBLEWRAP: (&str, &str) =
    ("sandbox = \"workspace\"\nsandbox_layer = \"bubblewrap\"\n", "[sandbox.workspace]\n");
const LANDLOCK: (&str, &str) = (
    "sandbox = \"workspace\"\nsandbox_layer = \"landlock\"\n",
    "[sandbox.workspace]\nprotect_files = false\n",
);
/// The settings of Codex in these tests name the model server and the variable of its key.
const NEEDS: &str = "network = { hosts = [\"{model}\"] }\nenv = [\"FAKE_API_KEY\"]\n";

/// What was seen without a sandbox is in the table; inside, the cases only have to succeed.
fn work(rig: &str, (config, policy): (&str, &str)) {
    let policy = format!("{policy}{}{NEEDS}", readable_tree());
    let mut stage = Stage::with_config(Rig::named(rig), config, &policy);
    let log = stage.home.run(&["log", &stage.session, "--format", "json"], Duration::from_secs(20));
    let log = String::from_utf8(log.stdout).unwrap();
    assert!(log.contains(r#""sandbox":"workspace""#), "the agent runs without a sandbox: {log}");
    let seen = talk::tool(&mut stage);
    assert!(!seen.is_empty());
    let seen = permission::ask(&mut stage);
    assert!(!seen.is_empty());
    stage.end();
}

macro_rules! sandboxed {
    ($($(#[$attribute:meta])* $name:ident: $rig:literal $layer:ident;)*) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                work($rig, $layer);
            }
        )*
    };
}

sandboxed! {
    claude_works_in_bubblewrap: "claude" BUBBLEWRAP;
    claude_works_in_landlock: "claude" LANDLOCK;
    codex_works_in_bubblewrap: "codex_app_server" BUBBLEWRAP;
    codex_works_in_landlock: "codex_app_server" LANDLOCK;
    goose_works_in_bubblewrap: "goose" BUBBLEWRAP;
    goose_works_in_landlock: "goose" LANDLOCK;
    #[ignore = "nightly: three agents are enough for each change"]
    gemini_works_in_bubblewrap: "gemini_acp" BUBBLEWRAP;
    #[ignore = "nightly: three agents are enough for each change"]
    gemini_works_in_landlock: "gemini_acp" LANDLOCK;
}
