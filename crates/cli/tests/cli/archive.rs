//! `sessions export`, `sessions import` and `bugreport`: a session in a file.

use crate::{
    fake_hub::{FakeHub, Heard, log_of, result},
    home::Home,
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

const SECRET: &str = "ghp_0123456789abcdefghij";

/// A hub with one session in which a secret was said in two pieces.
fn hub() -> FakeHub {
    let said = |text: &str| {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let frame = json!({ "method": "session/update", "params": { "update": update } });
        json!({ "is": "said", "turn": 1, "frame": frame })
    };
    let (first, second) = SECRET.split_at(9);
    let log = log_of(
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

fn exported(home: &Home, more: &[&str]) -> Vec<Value> {
    let did = home.run(&[&["sessions", "export", "7f3"][..], more].concat());
    assert_eq!(did.code, 0, "{}", did.stderr);
    did.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn an_export_has_a_header_every_event_and_an_end() {
    let home = Home::new();
    hub().start(&home);
    for (flags, redacted) in [(&[][..], true), (&["--raw"], false)] {
        let lines = exported(&home, flags);
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
fn what_is_split_over_messages_is_hidden_unless_it_is_wanted() {
    let home = Home::new();
    hub().start(&home);
    let text = |lines: &[Value]| {
        let content = |it: &Value| it.pointer("/frame/params/update/content/text").cloned();
        let texts = lines.iter().filter_map(content);
        texts.map(|it| it.as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!(text(&exported(&home, &[])), "it is ghp_*** and no more");
    assert_eq!(text(&exported(&home, &["--raw"])), format!("it is {SECRET} and no more"));
}

#[test]
fn an_exported_file_is_readable_by_its_owner_alone_whatever_was_there() {
    let home = Home::new();
    hub().start(&home);
    let file = home.path().join("project/x.ndjson");
    fs::write(&file, "older").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let did = home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]);
    insta::assert_snapshot!("export_file", did.told());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let nowhere = home.run(&["sessions", "export", "7f3", "-o", "no/such/folder/x.ndjson"]);
    insta::assert_snapshot!("export_nowhere", nowhere.told());
    insta::assert_snapshot!("export_unknown", home.run(&["sessions", "export", "zzz"]).told());
}

#[test]
fn half_an_export_is_not_left_behind() {
    let home = Home::new();
    let mut log = log_of("s-7f3abcdefghi", &[&json!({ "is": "opened" }), &json!({ "is": "x" })]);
    log.remove(0);
    FakeHub::new().on("_jackfield/attach", &log).start(&home);
    let did = home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]);
    insta::assert_snapshot!("export_gap", did.told());
    assert!(!home.path().join("project/x.ndjson").exists());
}

#[test]
fn an_export_as_markdown_is_for_people_and_hides_secrets_as_well() {
    let home = Home::new();
    hub().start(&home);
    let markdown = |more: &[&str]| {
        let args = ["sessions", "export", "7f3", "--format", "markdown"];
        let did = home.run(&[&args[..], more].concat());
        assert_eq!(did.code, 0, "{}", did.stderr);
        did
    };
    insta::assert_snapshot!("export_markdown", markdown(&[]).told());
    assert!(markdown(&["--raw"]).stdout.contains(&format!("it is {SECRET} and no more")));
    let text = markdown(&["-o", "x.md"]);
    assert_eq!(text.stdout, "");
    let file = fs::read_to_string(home.path().join("project/x.md")).unwrap();
    assert_eq!(file, markdown(&[]).stdout);
}

/// A home with `x.ndjson`, an export of the session, and a hub that takes imports.
fn importing() -> (Home, Heard) {
    let home = Home::new();
    let taken = result(&json!({ "sessionId": "s-other123456" }));
    let heard = hub().on("_jackfield/import", &[taken]).start(&home);
    assert_eq!(home.run(&["sessions", "export", "7f3", "-o", "x.ndjson"]).code, 0);
    (home, heard)
}

#[test]
fn an_import_is_sent_whole_and_says_its_name() {
    let (home, heard) = importing();
    let did = home.run(&["sessions", "import", "x.ndjson", "--name", "from\tthe laptop"]);
    insta::assert_snapshot!("import", did.told());
    let sent = heard.all("_jackfield/import");
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0]["params"], json!({ "from": "s-7f3abcdefghi" }));
    assert_eq!(sent[1]["params"]["lines"].as_array().unwrap().len(), 5);
    let end = json!({ "sessionId": "s-other123456", "end": true, "title": "from the laptop" });
    assert_eq!(sent[2]["params"], end);
}

#[test]
fn a_file_that_is_no_whole_session_is_refused_and_the_session_never_ended() {
    let (home, heard) = importing();
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
        insta::assert_snapshot!(name, home.run(&["sessions", "import", "x.ndjson"]).told());
    }
    let missing = home.run(&["sessions", "import", "nowhere.ndjson"]);
    insta::assert_snapshot!("import_missing", missing.told());
    let ended = |it: &Value| it["params"].get("end").is_some();
    assert!(!heard.all("_jackfield/import").iter().any(ended));
}

#[test]
fn a_bug_report_says_what_it_contains_and_can_leave_out_what_was_said() {
    let home = Home::new();
    hub().start(&home);
    home.config("[agents.x]\ncommand = [\"x\"]\n[agents.x.env]\nPLAIN = \"not-for-others\"\n");
    let did = home.run(&["bugreport", "7f3"]);
    insta::assert_snapshot!("bugreport", did.told());
    let file = home.path().join("project/jackfield-s-7f3abcdefghi.txt");
    let with = fs::read_to_string(&file).unwrap();
    assert!(with.contains("it is ghp_***") && with.contains("and no more"), "{with}");
    assert!(with.contains("PLAIN") && !with.contains("not-for-others"), "{with}");
    assert!(!with.contains("0123456789"), "{with}");
    assert_eq!(home.run(&["bugreport", "7f3", "--no-text", "-o", "short.txt"]).code, 0);
    let without = fs::read_to_string(home.path().join("project/short.txt")).unwrap();
    assert!(without.contains("bytes)") && !without.contains("and no more"), "{without}");
}
