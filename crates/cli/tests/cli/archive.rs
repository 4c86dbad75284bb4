//! `sessions export`, `sessions import` and `bugreport`.

use crate::{
    fake_hub::{FakeHub, ReceivedMessages, attach_response, response},
    home::TestHome,
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

const SECRET: &str = "ghp_0123456789abcdefghij";

/// A hub with one session in which a secret is split over two messages.
fn hub() -> FakeHub {
    let said = |text: &str| {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let frame = json!({ "method": "session/update", "params": { "update": update } });
        json!({ "is": "said", "turn": 1, "frame": frame })
    };
    let (first, second) = SECRET.split_at(9);
    let log = attach_response(
        "s-7f3abcdefghi",
        &[
            &json!({ "is": "opened", "agent": "goose" }),
            &json!({ "is": "prompted", "turn": 1 }),
            &said(&format!("it is {first}")),
            &said(&format!("{second} and no more")),
            &json!({ "is": "ended", "turn": 1, "how": "stopped", "answer": null }),
        ],
    );
    FakeHub::new().on("_jackfield/attach", &log)
}

fn run_export(home: &TestHome, more: &[&str]) -> Vec<Value> {
    let outcome = home.run(&[&["sessions", "export", "7f3"][..], more].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn export_has_a_header_every_event_and_a_trailer() {
    let home = TestHome::new();
    hub().start(&home);
    for (flags, redacted) in [(&[][..], true), (&["--raw"], false)] {
        let lines = run_export(&home, flags);
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[0]["jackfield"], "session");
        assert_eq!(lines[0]["redacted"], redacted);
        assert_eq!(lines[0]["sessionId"], "s-7f3abcdefghi");
        let seqs: Vec<&Value> = lines[1..6].iter().map(|it| &it["seq"]).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5]);
        assert_eq!((&lines[6]["jackfield"], &lines[6]["events"]), (&json!("end"), &json!(5)));
    }
}

#[test]
fn secret_split_over_messages_is_hidden_unless_raw() {
    let home = TestHome::new();
    hub().start(&home);
    let text = |lines: &[Value]| {
        let content = |it: &Value| it.pointer("/frame/params/update/content/text").cloned();
        let texts = lines.iter().filter_map(content);
        texts.map(|it| it.as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!(text(&run_export(&home, &[])), "it is ghp_*** and no more");
    assert_eq!(text(&run_export(&home, &["--raw"])), format!("it is {SECRET} and no more"));
}

#[test]
fn exported_file_is_readable_only_by_its_owner() {
    let home = TestHome::new();
    hub().start(&home);
    let file = home.path().join("project/x.ndjson");
    fs::write(&file, "older").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let outcome = home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]);
    insta::assert_snapshot!("export_file", outcome.to_snapshot());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let nowhere = home.run(&["sessions", "export", "7f3", "-o", "no/such/folder/x.ndjson"]);
    insta::assert_snapshot!("export_nowhere", nowhere.to_snapshot());
    insta::assert_snapshot!(
        "export_unknown",
        home.run(&["sessions", "export", "zzz"]).to_snapshot()
    );
}

#[test]
fn incomplete_export_is_removed() {
    let home = TestHome::new();
    let mut log =
        attach_response("s-7f3abcdefghi", &[&json!({ "is": "opened" }), &json!({ "is": "x" })]);
    log.remove(0);
    FakeHub::new().on("_jackfield/attach", &log).start(&home);
    let outcome = home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]);
    insta::assert_snapshot!("export_gap", outcome.to_snapshot());
    assert!(!home.path().join("project/x.ndjson").exists());
}

#[test]
fn markdown_export_hides_secrets_unless_raw() {
    let home = TestHome::new();
    hub().start(&home);
    let markdown = |more: &[&str]| {
        let args = ["sessions", "export", "7f3", "--format", "markdown"];
        let outcome = home.run(&[&args[..], more].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome
    };
    insta::assert_snapshot!("export_markdown", markdown(&[]).to_snapshot());
    assert!(markdown(&["--raw"]).stdout.contains(&format!("it is {SECRET} and no more")));
    let text = markdown(&["-o", "x.md"]);
    assert_eq!(text.stdout, "");
    let file = fs::read_to_string(home.path().join("project/x.md")).unwrap();
    assert_eq!(file, markdown(&[]).stdout);
}

/// A home with `x.ndjson`, an export of the session, and a hub that accepts imports.
fn home_with_export() -> (TestHome, ReceivedMessages) {
    let home = TestHome::new();
    let taken = response(&json!({ "sessionId": "s-other123456" }));
    let received = hub().on("_jackfield/import", &[taken]).start(&home);
    assert_eq!(home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]).code, 0);
    (home, received)
}

#[test]
fn import_sends_all_events_and_prints_the_new_id() {
    let (home, received) = home_with_export();
    let outcome = home.run(&["sessions", "import", "x.ndjson", "--name", "from\tthe laptop"]);
    insta::assert_snapshot!("import", outcome.to_snapshot());
    let sent = received.with_method("_jackfield/import");
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0]["params"], json!({ "from": "s-7f3abcdefghi" }));
    assert_eq!(sent[1]["params"]["lines"].as_array().unwrap().len(), 5);
    let end = json!({ "sessionId": "s-other123456", "end": true, "title": "from the laptop" });
    assert_eq!(sent[2]["params"], end);
}

#[test]
fn invalid_file_is_rejected_and_the_import_is_not_completed() {
    let (home, received) = home_with_export();
    let path = home.path().join("project/x.ndjson");
    let whole = fs::read_to_string(&path).unwrap();
    let newer = whole.replace("\"version\":1", "\"version\":2");
    let cut = whole.split_inclusive('\n').take(4).collect::<String>();
    let cases = [
        ("import_foreign", "a letter\n".to_owned()),
        ("import_empty", String::new()),
        ("import_newer", newer),
        ("import_cut", cut),
        ("import_edited", whole.replace("and no more", "and even more")),
        ("import_longer", format!("{whole}more\n")),
    ];
    for (name, text) in cases {
        fs::write(&path, text).unwrap();
        insta::assert_snapshot!(name, home.run(&["sessions", "import", "x.ndjson"]).to_snapshot());
    }
    let missing = home.run(&["sessions", "import", "nowhere.ndjson"]);
    insta::assert_snapshot!("import_missing", missing.to_snapshot());
    let ended = |it: &Value| it["params"].get("end").is_some();
    assert!(!received.with_method("_jackfield/import").iter().any(ended));
}

#[test]
fn bug_report_lists_its_contents_and_can_omit_messages() {
    let home = TestHome::new();
    hub().start(&home);
    home.write_config(
        "[agents.x]\ncommand = [\"x\"]\n[agents.x.env]\nPLAIN = \"not-for-others\"\n",
    );
    let outcome = home.run(&["bugreport", "7f3"]);
    insta::assert_snapshot!("bugreport", outcome.to_snapshot());
    let file = home.path().join("project/jackfield-s-7f3abcdefghi.txt");
    let with = fs::read_to_string(&file).unwrap();
    let pid = with.lines().find_map(|it| it.split_once("daemon pid ")).unwrap().1;
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    assert!(with.contains("it is ghp_***") && with.contains("and no more"), "{with}");
    assert!(with.contains("PLAIN") && !with.contains("not-for-others"), "{with}");
    assert!(!with.contains("0123456789"), "{with}");
    assert_eq!(home.run(&["bugreport", "7f3", "--no-text", "-o", "short.txt"]).code, 0);
    let without = fs::read_to_string(home.path().join("project/short.txt")).unwrap();
    assert!(without.contains("bytes)") && !without.contains("and no more"), "{without}");
}
