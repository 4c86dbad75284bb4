//! A journal that something else has written into: what cannot be read is said, and the rest works.

use jackfield_e2e::Home;
use serde_json::json;
use std::{fs, time::Duration};

#[test]
fn who_loads_a_session_with_a_damaged_record_is_told_and_nobody_waits() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let damaged = client.open(home.path());
    client.prompt(&damaged, "say a-word-that-will-be-altered");
    let whole = client.open(home.path());
    client.prompt(&whole, "say a-word-that-stays");
    drop(client);
    daemon.stop();
    alter(&home, b"a-word-that-will-be-altered", b"a-word-that-has-been-altered");

    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    let load = |id: &str| json!({ "sessionId": id, "cwd": home.path(), "mcpServers": [] });
    let answer = client.ask("session/load", &load(&damaged));
    let message = answer["error"]["message"].as_str().expect("an error");
    assert!(message.contains("damaged") && message.contains("checksum"), "{message}");
    client.result("session/load", &load(&whole));
    assert!(client.text().contains("a-word-that-stays"), "{}", client.text());

    let run = |args: &[&str]| home.run(args, Duration::from_secs(20));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let doctor = run(&["doctor", "journal"]);
    let told = format!("of {damaged} cannot be read: the checksum of the record does not match");
    assert!(text(&doctor.stdout).contains(&told), "{doctor:?}");
    let refused = run(&["sessions", "export", &damaged]);
    assert!(text(&refused.stderr).contains("export --skip-damaged"), "{refused:?}");
    let export = run(&["sessions", "export", &damaged, "--skip-damaged", "-o", "rest.ndjson"]);
    assert!(export.status.success(), "{export:?}");
    assert!(text(&export.stderr).contains("missing: the checksum of the record"), "{export:?}");
    let rest = fs::read_to_string(home.path().join("rest.ndjson")).unwrap();
    let is = |word: &str| rest.lines().any(|it| it.contains(&format!(r#""is":"{word}""#)));
    assert!(is("opened") && is("missing"), "{rest}");
    assert!(!rest.contains("a-word-that-has-been-altered"), "{rest}");
    let import = run(&["sessions", "import", "rest.ndjson"]);
    assert!(text(&import.stderr).contains("such a file cannot be imported"), "{import:?}");
    let markdown = run(&["sessions", "export", &damaged, "--skip-damaged", "--format", "markdown"]);
    assert!(text(&markdown.stdout).contains("is missing: the checksum"), "{markdown:?}");

    client.result("session/delete", &json!({ "sessionId": damaged }));
    drop(client);
    daemon.stop();
}

/// Writes other bytes over all that look like these, in the file of the journal.
fn alter(home: &Home, old: &[u8], new: &[u8]) {
    let path = home.path().join("state/journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let places = 0..bytes.len() - old.len();
    let found: Vec<usize> = places.filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!found.is_empty(), "it was written down");
    for at in found {
        bytes[at..at + old.len()].copy_from_slice(&new[..old.len()]);
    }
    fs::write(path, bytes).unwrap();
}
