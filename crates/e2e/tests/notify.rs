//! People are told by a command of theirs or a web hook, and nobody waits for either.

use jackfield_e2e::{Client, Daemon, Home, wait_for};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(20);

/// A home whose configuration ends with these lines.
fn home(config: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path().join("config")).unwrap();
    fs::write(home.path().join("config/config.toml"), config).unwrap();
    home
}

fn script(home: &Home, text: &str) -> PathBuf {
    let path = home.path().join("hook.sh");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

fn start(home: &Home) -> (Daemon, Client, String) {
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let session = client.open(home.path());
    (daemon, client, session)
}

#[test]
fn a_command_hears_of_asks_of_ends_and_of_failures_and_not_of_cancelled_turns() {
    let home = home("");
    let told = home.path().join("told");
    let hook = script(
        &home,
        &format!(
            "{{ printf '%s %s %s ' \"$JACKFIELD_EVENT\" \"$JACKFIELD_SESSION\" \"$1\"; cat; }} >> {0}.part.$$\n\
         env | grep -c JACKFIELD_TOKEN >> {0}.token\nmv {0}.part.$$ {0}.$JACKFIELD_EVENT.$$",
            told.display()
        ),
    );
    let config = format!("[notify]\ncommand = [{:?}, \"word\"]\n", hook.display().to_string());
    fs::write(home.path().join("config/config.toml"), config).unwrap();
    let (daemon, mut client, session) = start(&home);
    let heard = |event: &str, count: usize| -> Vec<(String, Value)> {
        let lines = wait_for(event, BOUND, || {
            let files = fs::read_dir(home.path()).unwrap().flatten();
            let prefix = format!("told.{event}.");
            let mine = files.filter(|it| it.file_name().to_string_lossy().starts_with(&prefix));
            let lines: Vec<String> =
                mine.map(|it| fs::read_to_string(it.path()).unwrap()).collect();
            (count <= lines.len()).then_some(lines)
        });
        assert_eq!(lines.len(), count, "{lines:?}");
        let split = |it: &String| {
            let at = it.find('{').unwrap();
            (it[..at].to_owned(), serde_json::from_str(&it[at..]).unwrap())
        };
        lines.iter().map(split).collect()
    };

    let id = client.send_prompt(&session, "ask");
    let asked = client.until("the ask", |it| it["method"] == "session/request_permission");
    let (words, json) = heard("needs_you", 1).remove(0);
    assert_eq!(words, format!("needs_you {session} word "));
    assert_eq!((&json["ask"], &json["what"]), (&json!(1), &json!("touch a file")));
    assert_eq!((&json["agent"], &json["title"]), (&json!("fake"), &json!("ask")));
    assert_eq!(json["cwd"], json!(home.path()));
    assert_eq!(json["sessionId"], json!(session));
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } });
    client.respond(&asked, &yes);
    client.answer(id);
    let (_, json) = heard("done", 1).remove(0);
    assert_eq!((&json["turn"], &json["outcome"]), (&json!(1), &json!("end_turn")));

    let id = client.send_prompt(&session, "hang");
    client.notify("session/cancel", &json!({ "sessionId": session }));
    client.answer(id);
    let id = client.send_prompt(&session, "error -32000 no model");
    client.answer(id);
    let (_, json) = heard("failed", 1).remove(0);
    assert_eq!((&json["turn"], &json["outcome"]), (&json!(3), &json!("failed")));
    heard("done", 1);
    drop(client);
    daemon.stop();
    let token = fs::read_to_string(home.path().join("told.token")).unwrap();
    assert!(token.lines().all(|it| it == "0"), "{token}");
}

#[test]
fn a_command_that_hangs_delays_nobody_and_is_ended() {
    let home = home("");
    let hook = script(&home, "sleep 600 & exec sleep 601");
    let config =
        format!("[notify]\ncommand = [{:?}]\non = [\"done\"]\n", hook.display().to_string());
    fs::write(home.path().join("config/config.toml"), config).unwrap();
    let (daemon, mut client, session) = start(&home);
    let before = home.alive(&[]);
    let begin = Instant::now();
    for _ in 0..10 {
        assert_eq!(client.prompt(&session, "hello"), "end_turn");
    }
    assert!(begin.elapsed() < Duration::from_secs(8), "a turn waited for the hook");
    // Four at once, each a guard and two that sleep.
    wait_for("the hooks", BOUND, || (12 <= home.alive(&before).len()).then_some(()));
    assert!(home.alive(&before).len() <= 12);
    let first = home.alive(&before);
    wait_for("the end of the first hooks", BOUND, || {
        first.iter().all(|it| !jackfield_e2e::procs::is_alive(*it)).then_some(())
    });
    drop(client);
    daemon.stop();
    wait_for("the end of the others", Duration::from_secs(5), || {
        home.alive(&[]).is_empty().then_some(())
    });
}

#[test]
fn a_web_hook_on_this_machine_gets_the_same_json() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let home = home(&format!("[notify]\nurl = \"{url}\"\non = [\"done\"]\n"));
    let (daemon, mut client, session) = start(&home);
    assert_eq!(client.prompt(&session, "key sk-proj-12345678"), "end_turn");
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let mut request = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            assert!(head.starts_with("POST /hook HTTP/1.1"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
            break body;
        }
        assert_ne!(count, 0, "{text}");
    };
    stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n").unwrap();
    assert_eq!((&body["event"], &body["sessionId"]), (&json!("done"), &json!(session)));
    assert_eq!(body["title"], json!("key sk-***"));
    drop(client);
    daemon.stop();
}

#[test]
fn a_web_hook_elsewhere_must_be_https() {
    let home = home("[notify]\nurl = \"http://example.org/hook\"\n");
    let output = home.run(&["serve"], BOUND);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("`example.org`") && text.contains("use https"), "{text}");
}
