//! `jackfield`, `ps`, `sessions`, `cancel`: what there is.

use crate::{
    fake_hub::{FakeHub, log_of, row},
    home::Home,
};
use serde_json::{Value, json};

fn rows() -> Vec<Value> {
    let mut older = row("s-7f4abcdefghi", "codex", "asks", "write\ttests\nfor it");
    older["updatedAt"] = json!("2026-11-15T08:29:00.000Z");
    let mut oldest = row("s-b20abcdefghi", "goose", "asleep", "");
    oldest["updatedAt"] = json!("2026-11-14T08:29:00.000Z");
    oldest["pid"] = Value::Null;
    oldest["title"] = Value::Null;
    vec![oldest, older, row("s-7f3abcdefghi", "goose", "working", "fix the parser")]
}

fn home() -> Home {
    let home = Home::new();
    FakeHub::new().rows(&rows()).start(&home);
    home
}

#[test]
fn ps_lists_what_is_running() {
    let home = home();
    insta::assert_snapshot!("ps", home.run(&["ps"]).told());
    insta::assert_snapshot!("ps_quiet", home.run(&["ps", "--format", "quiet"]).told());
    insta::assert_snapshot!("ps_json", home.run(&["ps", "--format", "json"]).told());
}

#[test]
fn ps_starts_no_daemon() {
    let home = Home::new();
    insta::assert_snapshot!("ps_without_daemon", home.run(&["ps"]).told());
    let json = home.run(&["ps", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["sessions"], json!([]));
    assert!(!home.socket().exists());
}

#[test]
fn sessions_are_listed_the_latest_first() {
    let home = home();
    insta::assert_snapshot!("sessions_list", home.run(&["sessions", "list"]).told());
    let quiet = home.run(&["sessions", "list", "--format", "quiet"]);
    insta::assert_snapshot!("sessions_list_quiet", quiet.told());
    let json: Value =
        serde_json::from_str(&home.run(&["sessions", "list", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["sessions"][0], rows()[2], "rows are as the hub tells them");
}

#[test]
fn no_sessions_is_no_error() {
    let home = Home::new();
    FakeHub::new().rows(&[]).start(&home);
    insta::assert_snapshot!("sessions_none", home.run(&["sessions", "list"]).told());
}

#[test]
fn one_session_is_shown_with_what_its_turns_used() {
    let home = Home::new();
    let answer = json!({
        "stopReason": "end_turn",
        "usage": { "inputTokens": 900, "outputTokens": 100, "totalTokens": 1000 },
    });
    let update = json!({
        "sessionUpdate": "usage_update", "used": 1200, "size": 200_000,
        "cost": { "amount": 0.0421, "currency": "USD" },
    });
    let log = log_of(
        "s-7f4abcdefghi",
        &[
            &json!({ "is": "prompted", "turn": 1 }),
            &json!({ "is": "ended", "turn": 1, "how": "stopped", "answer": answer }),
            &json!({ "is": "prompted", "turn": 2 }),
            &json!({ "is": "said", "turn": 2, "frame": { "params": { "update": update } } }),
        ],
    );
    FakeHub::new().rows(&rows()).on("_jackfield/attach", &log).start(&home);
    insta::assert_snapshot!("sessions_show", home.run(&["sessions", "show", "7f4"]).told());
    let json = home.run(&["sessions", "show", "7f4", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["session"], rows()[1]);
    assert_eq!(json["usage"]["sum"]["tokens"]["total"], 1000);
    assert_eq!(json["usage"]["turns"][1]["tokens"]["total"], Value::Null);
    assert_eq!(json["usage"]["sum"]["cost"]["amount"], 0.0421);
}

#[test]
fn sessions_are_closed_and_removed() {
    let home = Home::new();
    let heard = FakeHub::new().rows(&rows()).start(&home);
    insta::assert_snapshot!("sessions_close", home.run(&["sessions", "close", "7f3"]).told());
    insta::assert_snapshot!("sessions_rm", home.run(&["sessions", "rm", "b20", "--yes"]).told());
    assert_eq!(heard.all("session/close")[0]["params"]["sessionId"], "s-7f3abcdefghi");
    assert_eq!(heard.all("session/delete")[0]["params"]["sessionId"], "s-b20abcdefghi");
}

#[test]
fn old_sessions_that_nobody_uses_are_removed_when_that_is_meant() {
    let home = Home::new();
    let mut rows = rows();
    rows.push(row("s-c31abcdefghi", "goose", "idle", "someone looks at it"));
    for row in &mut rows {
        row["clients"] = json!(0);
        row["updatedAt"] = json!("2020-01-01T00:00:00.000Z");
    }
    rows[3]["clients"] = json!(1);
    let heard = FakeHub::new().rows(&rows).start(&home);
    insta::assert_snapshot!("prune_dry", home.run(&["sessions", "prune", "--dry-run"]).told());
    insta::assert_snapshot!("prune_unasked", home.run(&["sessions", "prune"]).told());
    let age = home.run(&["sessions", "prune", "--older-than", "1y"]);
    insta::assert_snapshot!("prune_age", age.told());
    let kept = home.run(&["sessions", "prune", "--keep", "4", "--yes"]);
    insta::assert_snapshot!("prune_keep", kept.told());
    assert!(heard.all("session/delete").is_empty());
    insta::assert_snapshot!("prune_yes", home.run(&["sessions", "prune", "--yes"]).told());
    let removed = heard.all("session/delete");
    assert_eq!(removed.len(), 1, "never one that works, asks or has a client");
    assert_eq!(removed[0]["params"]["sessionId"], "s-b20abcdefghi");
}

#[test]
fn a_running_turn_is_cancelled_and_an_idle_session_left_alone() {
    let home = Home::new();
    let heard = FakeHub::new().rows(&rows()).start(&home);
    insta::assert_snapshot!("cancel", home.run(&["cancel", "7f3"]).told());
    insta::assert_snapshot!("cancel_idle", home.run(&["cancel", "b20"]).told());
    let cancelled = &heard.all("session/cancel")[0];
    assert_eq!(cancelled["params"]["sessionId"], "s-7f3abcdefghi");
    assert_eq!(cancelled.get("id"), None, "it is a notification");
}

#[test]
fn alone_it_says_what_is_running_and_what_to_do_next() {
    insta::assert_snapshot!("status", home().run(&[]).told());
    insta::assert_snapshot!("status_without_daemon", Home::new().run(&[]).told());
    for (name, rows) in [("status_asleep", vec![rows()[0].clone()]), ("status_empty", vec![])] {
        let home = Home::new();
        FakeHub::new().rows(&rows).start(&home);
        insta::assert_snapshot!(name, home.run(&[]).told());
    }
}

#[test]
fn color_is_only_there_when_it_is_wanted() {
    let home = home();
    assert!(!home.run(&["ps"]).stdout.contains('\u{1b}'));
    assert!(home.run(&["ps", "--color", "always"]).stdout.contains('\u{1b}'));
}

#[test]
fn ps_says_what_a_quiet_session_waits_for() {
    let home = Home::new();
    let mut quiet = row("s-7f3abcdefghi", "goose", "quiet", "fix the parser");
    let doing = "no output for 9 min; shell command `npm test` running 9 min 12 s; process alive";
    quiet["doing"] = json!(doing);
    FakeHub::new().rows(&[quiet]).start(&home);
    for args in [&["ps"][..], &["sessions", "show", "s-7f3"]] {
        let told = home.run(args).stdout;
        assert!(told.contains("quiet") && told.contains(doing), "{told}");
    }
}
