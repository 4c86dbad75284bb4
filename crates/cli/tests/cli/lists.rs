//! `jackfield` without a command, `ps`, `sessions` and `cancel`.

use crate::{
    fake_hub::{FakeHub, attach_response, session_row},
    home::TestHome,
};
use serde_json::{Value, json};

fn rows() -> Vec<Value> {
    let mut older = session_row("s-7f4abcdefghi", "codex", "asks", "write\ttests\nfor it");
    older["updatedAt"] = json!("2026-11-15T08:29:00.000Z");
    let mut oldest = session_row("s-b20abcdefghi", "goose", "asleep", "");
    oldest["updatedAt"] = json!("2026-11-14T08:29:00.000Z");
    oldest["pid"] = Value::Null;
    oldest["title"] = Value::Null;
    vec![oldest, older, session_row("s-7f3abcdefghi", "goose", "working", "fix the parser")]
}

fn home() -> TestHome {
    let home = TestHome::new();
    FakeHub::new().with_sessions(&rows()).start(&home);
    home
}

#[test]
fn ps_lists_running_sessions() {
    let home = home();
    insta::assert_snapshot!("ps", home.run(&["ps"]).to_snapshot());
    insta::assert_snapshot!("ps_quiet", home.run(&["ps", "--format", "quiet"]).to_snapshot());
    insta::assert_snapshot!("ps_json", home.run(&["ps", "--format", "json"]).to_snapshot());
}

#[test]
fn ps_starts_no_daemon() {
    let home = TestHome::new();
    insta::assert_snapshot!("ps_without_daemon", home.run(&["ps"]).to_snapshot());
    let json = home.run(&["ps", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["sessions"], json!([]));
    assert!(!home.socket().exists());
}

#[test]
fn sessions_are_listed_the_latest_first() {
    let home = home();
    insta::assert_snapshot!("sessions_list", home.run(&["sessions", "list"]).to_snapshot());
    let quiet = home.run(&["sessions", "list", "--format", "quiet"]);
    insta::assert_snapshot!("sessions_list_quiet", quiet.to_snapshot());
    let json: Value =
        serde_json::from_str(&home.run(&["sessions", "list", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["sessions"][0], rows()[2], "rows are printed unchanged");
}

#[test]
fn empty_list_of_sessions_succeeds() {
    let home = TestHome::new();
    FakeHub::new().with_sessions(&[]).start(&home);
    insta::assert_snapshot!("sessions_none", home.run(&["sessions", "list"]).to_snapshot());
}

#[test]
fn show_prints_one_session_with_its_usage() {
    let home = TestHome::new();
    let answer = json!({
        "stopReason": "end_turn",
        "usage": { "inputTokens": 900, "outputTokens": 100, "totalTokens": 1000 },
    });
    let update = json!({
        "sessionUpdate": "usage_update", "used": 1200, "size": 200_000,
        "cost": { "amount": 0.0421, "currency": "USD" },
    });
    let log = attach_response(
        "s-7f4abcdefghi",
        &[
            &json!({ "is": "prompted", "turn": 1 }),
            &json!({ "is": "ended", "turn": 1, "how": "stopped", "answer": answer }),
            &json!({ "is": "prompted", "turn": 2 }),
            &json!({ "is": "said", "turn": 2, "frame": { "params": { "update": update } } }),
        ],
    );
    FakeHub::new().with_sessions(&rows()).on("_jackfield/attach", &log).start(&home);
    insta::assert_snapshot!("sessions_show", home.run(&["sessions", "show", "7f4"]).to_snapshot());
    let json = home.run(&["sessions", "show", "7f4", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["session"], rows()[1]);
    assert_eq!(json["usage"]["sum"]["tokens"]["total"], 1000);
    assert_eq!(json["usage"]["turns"][1]["tokens"]["total"], Value::Null);
    assert_eq!(json["usage"]["sum"]["cost"]["amount"], 0.0421);
}

#[test]
fn sessions_are_closed_and_removed() {
    let home = TestHome::new();
    let received = FakeHub::new().with_sessions(&rows()).start(&home);
    insta::assert_snapshot!(
        "sessions_close",
        home.run(&["sessions", "close", "7f3"]).to_snapshot()
    );
    insta::assert_snapshot!(
        "sessions_rm",
        home.run(&["sessions", "rm", "b20", "--yes"]).to_snapshot()
    );
    assert_eq!(received.with_method("session/close")[0]["params"]["sessionId"], "s-7f3abcdefghi");
    assert_eq!(received.with_method("session/delete")[0]["params"]["sessionId"], "s-b20abcdefghi");
}

#[test]
fn prune_removes_old_unused_sessions_after_confirmation() {
    let home = TestHome::new();
    let mut rows = rows();
    rows.push(session_row("s-c31abcdefghi", "goose", "idle", "someone looks at it"));
    for row in &mut rows {
        row["clients"] = json!(0);
        row["updatedAt"] = json!("2020-01-01T00:00:00.000Z");
    }
    rows[3]["clients"] = json!(1);
    let received = FakeHub::new().with_sessions(&rows).start(&home);
    insta::assert_snapshot!(
        "prune_dry",
        home.run(&["sessions", "prune", "--dry-run"]).to_snapshot()
    );
    insta::assert_snapshot!("prune_unasked", home.run(&["sessions", "prune"]).to_snapshot());
    let age = home.run(&["sessions", "prune", "--older-than", "1y"]);
    insta::assert_snapshot!("prune_age", age.to_snapshot());
    let kept = home.run(&["sessions", "prune", "--keep", "4", "--yes"]);
    insta::assert_snapshot!("prune_keep", kept.to_snapshot());
    assert!(received.with_method("session/delete").is_empty());
    insta::assert_snapshot!("prune_yes", home.run(&["sessions", "prune", "--yes"]).to_snapshot());
    let removed = received.with_method("session/delete");
    assert_eq!(removed.len(), 1, "sessions in use are never removed");
    assert_eq!(removed[0]["params"]["sessionId"], "s-b20abcdefghi");
}

#[test]
fn cancel_reports_whether_a_turn_was_running() {
    let home = TestHome::new();
    let received = FakeHub::new().with_sessions(&rows()).start(&home);
    insta::assert_snapshot!("cancel", home.run(&["cancel", "7f3"]).to_snapshot());
    insta::assert_snapshot!("cancel_idle", home.run(&["cancel", "b20"]).to_snapshot());
    let canceled = &received.with_method("session/cancel")[0];
    assert_eq!(canceled["params"]["sessionId"], "s-7f3abcdefghi");
    assert_eq!(canceled.get("id"), None, "cancel is a notification");
    for (session, is_canceled) in [("7f3", true), ("b20", false)] {
        let outcome = home.run(&["cancel", session, "--format", "json"]);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((outcome.code, &document["canceled"]), (0, &json!(is_canceled)));
    }
    for (state, expected) in [
        ("quiet", "canceling the turn of s-1abcdefghij"),
        ("waiting", "canceling the turn of s-1abcdefghij"),
        ("stalled", "canceling the turn of s-1abcdefghij, if one runs"),
        ("idle", "s-1abcdefghij has no running turn"),
    ] {
        let home = TestHome::new();
        let row = session_row("s-1abcdefghij", "goose", state, "");
        FakeHub::new().with_sessions(&[row]).start(&home);
        let outcome = home.run(&["cancel", "1abc"]);
        assert_eq!((outcome.stderr.trim(), outcome.code), (expected, 0), "{state}");
    }
}

#[test]
fn command_without_arguments_shows_status_and_next_command() {
    insta::assert_snapshot!("status", home().run(&[]).to_snapshot());
    insta::assert_snapshot!("status_without_daemon", TestHome::new().run(&[]).to_snapshot());
    for (name, rows) in [("status_asleep", vec![rows()[0].clone()]), ("status_empty", vec![])] {
        let home = TestHome::new();
        FakeHub::new().with_sessions(&rows).start(&home);
        insta::assert_snapshot!(name, home.run(&[]).to_snapshot());
    }
}

#[test]
fn color_is_used_only_on_request() {
    let home = home();
    assert!(!home.run(&["ps"]).stdout.contains('\u{1b}'));
    assert!(home.run(&["ps", "--color", "always"]).stdout.contains('\u{1b}'));
}

#[test]
fn ps_shows_what_a_quiet_session_waits_for() {
    let home = TestHome::new();
    let mut quiet = session_row("s-7f3abcdefghi", "goose", "quiet", "fix the parser");
    let doing = "no output for 9 min; shell command `npm test` running 9 min 12 s; process alive";
    quiet["doing"] = json!(doing);
    FakeHub::new().with_sessions(&[quiet]).start(&home);
    for args in [&["ps"][..], &["sessions", "show", "s-7f3"]] {
        let printed = home.run(args).stdout;
        assert!(printed.contains("quiet") && printed.contains(doing), "{printed}");
    }
}
