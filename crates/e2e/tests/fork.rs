//! A fork of a real session: its log is the source's up to an event, also after a kill.

use jackfield_e2e::{Client, Home};
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// The facts and words of a session, without its name.
fn log(home: &Home, id: &str) -> Vec<String> {
    let mut client: Client = home.dial();
    client.hello_aware();
    client.result("_jackfield/attach", &json!({ "sessionId": id, "after": 0 }));
    let of_session = client.heard.iter().filter(|it| it["params"]["sessionId"] == id);
    of_session.map(|it| it.to_string().replace(id, "SESSION")).collect()
}

fn seq(line: &str) -> u64 {
    let message: Value = serde_json::from_str(line).unwrap();
    let of_update = message.pointer("/params/_meta/jackfield/seq");
    of_update.or_else(|| message.pointer("/params/seq")).unwrap().as_u64().unwrap()
}

fn fork(home: &Home, args: &[&str]) -> String {
    let output = home.run(&[&["sessions", "fork"], args].concat(), PATIENCE);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_fork_has_the_log_of_its_source_up_to_an_event() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    // More than one slice of the copy.
    assert_eq!(client.prompt(&id, "burst 5000"), "end_turn");
    let source = log(&home, &id);
    let head = seq(source.last().unwrap());
    assert!(5000 < head);

    let whole = fork(&home, &[&id]);
    let half = fork(&home, &[&id, "--at", "2500"]);
    assert_ne!(whole, half);
    let check = |fork: &str, upto: u64, after: &[&str]| {
        let copied = log(&home, fork);
        let expected: Vec<&String> = source.iter().filter(|it| seq(it) <= upto).collect();
        assert_eq!(copied[..expected.len()].iter().collect::<Vec<_>>(), expected);
        let rest: Vec<Value> =
            copied[expected.len()..].iter().map(|it| serde_json::from_str(it).unwrap()).collect();
        let facts: Vec<&str> = rest.iter().map(|it| it["params"]["is"].as_str().unwrap()).collect();
        assert_eq!(facts, after);
        assert_eq!(rest[0]["params"]["from"], id.as_str());
        assert_eq!(rest[0]["params"]["seqThere"], upto);
    };
    check(&whole, head, &["forked"]);
    check(&half, 2500, &["forked", "ended"]);
    assert_eq!(log(&home, &id), source, "the source is as it was");
    assert_eq!(client.prompt(&id, "say on"), "end_turn");
    drop(client);
    daemon.kill_9();

    let daemon = home.serve(&[]);
    check(&whole, head, &["forked"]);
    check(&half, 2500, &["forked", "ended"]);
    let too_far = home.run(&["sessions", "fork", &half, "--at", "9999"], PATIENCE);
    assert_eq!(too_far.status.code(), Some(2), "{too_far:?}");
    daemon.stop();
}
