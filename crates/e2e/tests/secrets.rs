//! Secrets that were said in a session: the conversation has them, and nothing that is listed,
//! logged, shown, exported or reported does, unless somebody asks for the raw log.

use jackfield_e2e::{Home, wait_for};
use serde_json::json;
use std::{fs, time::Duration};

const BOUND: Duration = Duration::from_secs(20);
/// One pasted by the user, one said by the agent in pieces, one printed on stderr.
const PASTED: &str = "sk-ant-api03-PastedByTheUser0123456789";
const SAID: &str = "ghp_SaidInPieces0123456789abcdefghij";
const PRINTED: &str = "AKIAPRINTED012345678";

fn output(home: &Home, args: &[&str]) -> String {
    let it = home.run(args, BOUND);
    let text = [&it.stdout[..], &it.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(it.status.success(), "{args:?}: {text}");
    text
}

/// What betrays a secret, even in part.
fn assert_clean(what: &str, text: &str) {
    for part in ["PastedByTheUser", "SaidInPieces", "0123456789", "PRINTED0"] {
        assert!(!text.contains(part), "{what} has `{part}`: {text}");
    }
}

/// Each view, which must say something, and no secret.
fn assert_views(home: &Home, views: &[&[&str]]) {
    for args in views {
        let text = output(home, args);
        assert!(!text.trim().is_empty(), "{args:?} says nothing");
        assert_clean(&args.join(" "), &text);
    }
}

/// A raw export: everything as it was said.
fn assert_whole(raw: &str) {
    assert!(raw.contains(PASTED) && raw.contains(&format!("push with {SAID}")), "{raw}");
    let pieces: Vec<char> = format!("the token is {SAID} and").chars().collect();
    for piece in pieces.chunks_exact(3) {
        let piece = json!({ "text": piece.iter().collect::<String>() }).to_string();
        assert!(raw.contains(piece.trim_matches(['{', '}'])), "{piece}: {raw}");
    }
}

/// A daemon as users have it: in the background, with its log where `bugreport` finds it.
fn start_detached(home: &Home) {
    let verbose = ("JACKFIELD_VERBOSE", "1");
    let started = home.command(&["daemon", "start"]).envs([verbose]).output().unwrap();
    assert!(started.status.success(), "{started:?}");
}

#[test]
fn no_view_of_a_session_shows_a_secret_and_the_raw_export_has_them_all() {
    let home = Home::new();
    start_detached(&home);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    let prompt = format!(
        "my key is {PASTED}\nsplit 3 the token is {SAID} and that is all\nstderr key {PRINTED}\n\
         raw no frame but {PRINTED}\ntitle about {PASTED}\nask-about push with {SAID}"
    );
    let request = client.send_prompt(&id, &prompt);
    client.until("the ask", |it| it["method"] == "session/request_permission");
    let asked = output(&home, &["asks"]);
    assert!(asked.contains("push with ghp_***"), "{asked}");
    assert_views(
        &home,
        &[
            &["asks"],
            &["asks", "--format", "json"],
            &["ps"],
            &["ps", "--format", "json"],
            &["policy", "explain", &id],
            &["policy", "explain", &id, "--format", "json"],
            &["answer", &id, "allow"],
        ],
    );
    client.answer(request);
    assert!(client.text().contains(SAID), "the conversation is what was said: {}", client.text());
    // An agent that dies leaves its last words in the log.
    let died = client.send_prompt(&id, &format!("stderr key {PRINTED}\ndie"));
    client.answer(died);

    let file = home.path().join("report.txt");
    let report = file.to_str().unwrap();
    assert_views(
        &home,
        &[
            &["sessions", "list"],
            &["sessions", "list", "--format", "json"],
            &["sessions", "show", &id],
            &["sessions", "show", &id, "--format", "json"],
            &["log", &id],
            &["log", &id, "--format", "quiet"],
            &["log", &id, "-v"],
            &["log", &id, "--view", "events"],
            &["log", &id, "--view", "envelopes"],
            &["sessions", "export", &id],
            &["sessions", "export", &id, "--format", "markdown"],
            &["bugreport", &id, "-o", report],
        ],
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("## events") && text.contains("ghp_***"), "{text}");
    assert!(text.contains("session opened"), "it has the daemon's lines: {text}");
    assert_clean("the report", &text);
    let shown = output(&home, &["log", &id]);
    assert!(shown.contains("the token is ghp_*** and that is all"), "{shown}");
    assert!(shown.contains("key AKIA***"), "{shown}");
    let markdown = output(&home, &["sessions", "export", &id, "--format", "markdown"]);
    assert!(markdown.contains("the token is ghp_*** and that is all"), "{markdown}");
    assert!(markdown.contains("`push with ghp_***`: asked (allow-once, by "), "{markdown}");

    assert_whole(&output(&home, &["sessions", "export", &id, "--raw"]));
    drop(client);
    output(&home, &["daemon", "stop"]);
    let log = fs::read_to_string(home.path().join("state/daemon.log")).unwrap();
    assert!(log.contains("session opened") && log.contains(&id), "{log}");
    assert!(log.contains("agent ended") && log.contains("no frame but AKIA***"), "{log}");
    assert_clean("the daemon's log", &log);
}

/// The events of an export, with the session's id taken out.
fn events(export: &str, id: &str) -> Vec<String> {
    let is_event = |it: &&str| it.starts_with("{\"seq\":");
    export.lines().filter(is_event).map(|it| it.replace(id, "s-?")).collect()
}

#[test]
fn what_is_exported_raw_and_imported_is_exported_the_same_again() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&["--usage", "current"]));
    let id = client.open(home.path());
    client.prompt(&id, "tool");
    client.prompt(&id, &format!("split 2 say {SAID}\nplan\nthink"));
    client.prompt(&id, "burst 3000");
    let file = home.path().join("session.ndjson");
    let path = file.to_str().unwrap();
    output(&home, &["sessions", "export", &id, "--raw", "-o", path]);
    let first = fs::read_to_string(&file).unwrap();

    // The id is taken, so it gets another.
    let copy = home.run(&["sessions", "import", path], BOUND);
    assert!(copy.status.success(), "{}", String::from_utf8_lossy(&copy.stderr));
    let copy = String::from_utf8(copy.stdout).unwrap().trim().to_owned();
    assert_ne!(copy, id);
    let second = output(&home, &["sessions", "export", &copy, "--raw"]);
    let (first_events, second_events) = (events(&first, &id), events(&second, &copy));
    assert!(3000 < first_events.len());
    assert_eq!(second_events[..first_events.len()], first_events);
    assert_eq!(second_events.len(), first_events.len() + 1, "and that it was imported");

    // The same by the same name once that is free, after a restart too.
    output(&home, &["sessions", "rm", &id, "--yes"]);
    let again = output(&home, &["sessions", "import", path, "--name", "brought back"]);
    assert!(again.contains(&format!("under its own id {id}")), "{again}");
    drop(client);
    daemon.stop();
    let daemon = home.serve(&[]);
    let shown = output(&home, &["sessions", "show", &id]);
    assert!(shown.contains("brought back") && shown.contains("asleep"), "{shown}");
    assert!(shown.contains("sum") && shown.contains("300"), "usage came with it: {shown}");
    daemon.stop();
}

#[test]
fn a_file_that_was_cut_edited_or_is_foreign_is_refused_and_leaves_nothing() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    client.prompt(&id, "burst 20");
    let good = output(&home, &["sessions", "export", &id]);
    let good: Vec<&str> = good.lines().filter(|it| it.starts_with('{')).collect();
    let file = home.path().join("bad.ndjson");
    let edited = good.join("\n").replace("\"is\":\"ended\"", "\"is\":\"endod\"");
    let cases = [
        (good[..good.len() - 1].join("\n"), "the file is truncated"),
        (good[..5].join("\n"), "line 5: the file is truncated"),
        (edited, "the checksum does not match"),
        (good.join("\n").replace("end_turn", "odd_turn"), "the checksum does not match"),
        ("hello".to_owned(), "line 1: the file was not written by"),
        (String::new(), "line 1: the file is empty"),
    ];
    for (text, why) in cases {
        fs::write(&file, text).unwrap();
        let it = home.run(&["sessions", "import", file.to_str().unwrap()], BOUND);
        let told = String::from_utf8_lossy(&it.stderr).into_owned();
        assert_eq!(it.status.code(), Some(1), "{told}");
        assert!(told.contains(why) && told.contains("nothing of it was stored"), "{why}: {told}");
    }
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!(rows["sessions"].as_array().map(Vec::len), Some(1), "{rows}");
    drop(client);
    daemon.stop();
}

#[test]
fn an_import_that_the_daemons_end_cut_short_is_not_there_afterwards() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let opened = r#"{"at":1,"is":"opened","agent":"x","argv":[],"cwd":"/","params":{},"agentSession":"a","setup":null}"#;
    // It was imported before, where it comes from: that says nothing about this time.
    let earlier = r#"{"at":2,"is":"imported","from":"s-older"}"#;
    client.result("_jackfield/import", &json!({ "from": "s-half" }));
    let lines = json!({ "sessionId": "s-half", "lines": [opened, earlier] });
    client.result("_jackfield/import", &lines);
    daemon.kill_9();
    drop(client);
    for _ in 0..2 {
        let daemon = home.serve(&[]);
        let mut client = home.dial();
        client.hello();
        let rows = client.result("_jackfield/sessions", &json!({}));
        assert_eq!(rows["sessions"], json!([]));
        drop(client);
        daemon.stop();
    }
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    // The name is free again.
    let begun = client.result("_jackfield/import", &json!({ "from": "s-half" }));
    assert_eq!(begun["sessionId"], "s-half");
    client.result("_jackfield/import", &json!({ "sessionId": "s-half", "lines": [opened] }));
    client.result("_jackfield/import", &json!({ "sessionId": "s-half", "end": true }));
    wait_for("the session", BOUND, || {
        let rows = client.result("_jackfield/sessions", &json!({}));
        (rows["sessions"][0]["state"] == "asleep").then_some(())
    });
    drop(client);
    daemon.stop();
}

#[test]
fn old_sessions_are_removed_and_those_in_use_are_not() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let used = client.open(home.path());
    let mut other = home.dial();
    other.connect(&home.fake_agent(&[]));
    let left = other.open(home.path());
    other.prompt(&left, "hello");
    drop(other);
    let prune = |more: &[&str]| {
        let args = [&["sessions", "prune", "--older-than", "0s"][..], more].concat();
        home.run(&args, BOUND)
    };
    wait_for("the client to be gone", BOUND, || {
        let rows = client.result("_jackfield/sessions", &json!({}));
        let rows = rows["sessions"].as_array().cloned().unwrap_or_default();
        rows.iter().any(|it| it["sessionId"] == left.as_str() && it["clients"] == 0).then_some(())
    });
    let asked = prune(&[]);
    assert_eq!(asked.status.code(), Some(2), "nobody can be asked here");
    assert!(prune(&["--dry-run"]).status.success());
    assert!(prune(&["--keep", "2", "--yes"]).status.success());
    assert!(prune(&["--closed", "--yes"]).status.success());
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!(rows["sessions"].as_array().map(Vec::len), Some(2));
    assert!(prune(&["--yes"]).status.success());
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!(rows["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(rows["sessions"][0]["sessionId"], used.as_str());
    drop(client);
    daemon.stop();
}
