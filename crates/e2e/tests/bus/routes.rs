//! Who hears what: ids, sessions, pools, and lines that are no messages.

use super::{Bus, fault, one_pool, pid, pool, request};
use jackfield_e2e::Home;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    time::Duration,
};

/// The published kernel gave one client the answer of the other, or nobody any.
#[test]
fn equal_ids_of_two_clients_never_meet() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut clients = [bus.dial(), bus.dial()];
    // The later question is answered first.
    for (at, ms) in [(0, 200), (1, 50)] {
        for id in [json!(1), json!("1"), json!(2)] {
            let said = json!({ "ms": ms, "of": at, "under": id });
            clients[at].send_line(&request(id, "sleep", &said).to_string());
        }
    }
    for (at, client) in clients.iter_mut().enumerate() {
        for _ in 0..3 {
            let answer = client.until("an answer", |it| it.get("result").is_some());
            assert_eq!(answer["result"]["said"]["of"], at, "{answer}");
            assert_eq!(answer["result"]["said"]["under"], answer["id"], "also `1` and `\"1\"`");
        }
    }
    bus.stop();
}

/// The published kernel looked at the outer one only, and took `\u0062` for another letter than `b`.
#[test]
fn a_session_stays_with_its_worker_wherever_and_however_it_is_named() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 4));
    let mut client = bus.dial();
    let mut workers = BTreeSet::new();
    for session in ["ab", "c", "d", "e"] {
        let first = pid(&client.ask("echo", &json!({ "sessionId": session })));
        for _ in 0..3 {
            assert_eq!(pid(&client.ask("echo", &json!({ "sessionId": session }))), first);
        }
        workers.insert(first);
        if session == "ab" {
            for line in [
                r#"{"id":"x","method":"echo","sessionId":"ab"}"#,
                r#"{"id":"x","method":"echo","params":{"sessionId":"a\u0062"}}"#,
                r#"{"id":"x","method":"echo","session\u0049d":"\u0061b","params":{}}"#,
            ] {
                client.send_line(line);
                let answer = client.until("an answer", |it| it["id"] == "x");
                assert_eq!(pid(&answer), first, "{line}");
            }
        }
    }
    assert_eq!(workers.len(), 4, "new sessions go to the worker with the fewest");
    let turns: BTreeSet<_> = (0..4).map(|_| pid(&client.ask("echo", &json!({})))).collect();
    assert_eq!(turns.len(), 4, "what names no session goes to each worker in turn");
    bus.stop();
}

/// The published kernel threw both away: "unknown session", "cannot route".
#[test]
fn plain_updates_and_requests_of_workers_reach_the_client_and_its_answer_the_worker() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 2));
    let mut clients = [bus.dial(), bus.dial()];
    for (at, client) in clients.iter_mut().enumerate() {
        let session = client.result("session/new", &json!({}))["sessionId"].clone();
        let said = json!({ "sessionId": session });
        client.result("update", &said);
        client.result("update-outside", &said);
        let updates = client.heard.iter().filter(|it| it["method"] == "session/update").count();
        assert_eq!(updates, 2, "of a session it has from an answer only");
        let prompt = client.send("ask", &said);
        let ask = client.until("a request", |it| it["method"] == "session/request_permission");
        assert_eq!(ask["params"]["sessionId"], session);
        client.respond(&ask, &json!({ "allowed": at }));
        // Both workers ask under the same id; each hears its own answer.
        assert_eq!(client.answer(prompt)["result"]["answer"]["allowed"], at);
    }
    assert!(clients.iter_mut().all(|it| it.next(Duration::ZERO).is_none()), "and nobody else");
    bus.stop();
}

/// The published kernel wanted `pool` on every message and dropped what had none.
#[test]
fn pools_are_chosen_by_name_once_and_what_cannot_be_is_answered() {
    let home = Home::new();
    let pools = ["a", "b"].map(|id| pool(&home, id, 1, &json!({ "env": { "POOL": id } })));
    let bus = Bus::on_unix(&home, &json!({ "pools": pools }));
    let mut client = bus.dial();
    let mut of = |outside: &Value| {
        let mut line = request("q", "environment", &json!({ "name": "POOL" }));
        for (name, value) in outside.as_object().unwrap() {
            line[name] = value.clone();
        }
        client.send_line(&line.to_string());
        client.until("an answer", |it| it["id"] == "q")
    };
    assert_eq!(of(&json!({ "pool": "a" }))["result"]["value"], "a");
    assert_eq!(of(&json!({ "agentId": "b", "sessionId": "s" }))["result"]["value"], "b");
    assert_eq!(of(&json!({ "sessionId": "s" }))["result"]["value"], "b", "it is bound");
    for nowhere in [json!({}), json!({ "pool": "c" })] {
        let answer = of(&nowhere);
        assert_eq!(fault(&answer), "no_worker");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`a`, `b`"), "{answer}");
    }
    bus.stop();
}

#[test]
fn agent_of_a_registry_starts_with_its_first_message() {
    let home = Home::new();
    let worker = pool(&home, "worker", 1, &json!({}))["args"][1].clone();
    let program = super::write(
        &home,
        "npx",
        &format!("#!/bin/sh\nexec python3 -u {worker} {}\n", home.mark()),
    );
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let distribution = json!({ "npx": { "package": "demo@1.0.0" } });
    let entry = json!({ "id": "demo", "name": "Demo", "version": "1.0.0", "description": "A demo",
        "distribution": distribution });
    super::write(&home, "registry.json", &json!({ "agents": [entry] }).to_string());
    let launcher = json!({ "registry": "registry.json", "idle_sec": 0.3 });
    let bus = Bus::with_programs(&home, &json!({ "launcher": launcher }), home.path());
    // Not `bus.dial()`: its reader would keep the connection open.
    let mut stream = UnixStream::connect(super::socket(&home)).unwrap();
    let mut line = request("q", "echo", &json!({}));
    line["agentId"] = json!("demo");
    line["sessionId"] = json!("outer");
    super::say_all(&mut stream, [line]);
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["sessionId"], "outer");
    assert!(pid(&answer) != 0);
    bus.until_said("of pool `demo` ended");
    let answer = bus.dial().ask("echo", &json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("agentId"), "{answer}");
    bus.stop();
}

/// The published kernel has a table of 1,024 sessions and drops the next without a word.
#[test]
fn sessions_beyond_1_024_are_served_and_a_limit_is_told() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 2));
    let mut client = bus.dial();
    for number in 0..1500 {
        client.send("echo", &json!({ "sessionId": format!("s-{number}") }));
    }
    for id in 1..=1500 {
        assert!(client.answer(id).get("result").is_some(), "session {id}");
    }
    bus.stop();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "max_sessions": 3 });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    for number in 0..3 {
        client.result("echo", &json!({ "sessionId": format!("s-{number}") }));
    }
    let answer = client.ask("echo", &json!({ "sessionId": "s-3" }));
    assert_eq!(fault(&answer), "overloaded");
    client.result("echo", &json!({ "sessionId": "s-0" }));
    bus.stop();
}

/// The published kernel has a table of 4,096 and drops the next without a word.
#[test]
fn requests_beyond_4_096_wait_and_a_limit_is_told() {
    let home = Home::new();
    let bus = Bus::on_unix(&home, &one_pool(&home, 1));
    let mut client = bus.dial();
    for _ in 0..5000 {
        client.send("hang", &json!({}));
    }
    client.result("echo", &json!({}));
    assert_eq!(fault(&client.ask("die", &json!({}))), "worker_gone");
    for id in 1..=5000 {
        assert_eq!(fault(&client.answer(id)), "worker_gone", "request {id}");
    }
    bus.stop();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "max_pending": 10, "drain_timeout_sec": 0 });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    for _ in 0..10 {
        client.send("hang", &json!({}));
    }
    let answer = client.ask("echo", &json!({}));
    assert_eq!(fault(&answer), "overloaded");
    bus.stop();
}

/// The published kernel closed the connection.
#[test]
fn a_line_that_is_no_message_is_answered_and_the_next_one_is_served() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    config["limits"] = json!({ "max_input_buffer": 10_000 });
    let bus = Bus::on_unix(&home, &config);
    let mut client = bus.dial();
    client.result("echo", &json!({}));
    let long = format!(r#"{{"id":7,"method":"echo","params":["{}"]}}"#, "x".repeat(20_000));
    let lines = [
        ("nonsense", -32700),
        ("{\"id\":1,", -32700),
        ("[{\"id\":1,\"method\":\"echo\"}]", -32600),
        ("7", -32600),
        ("\"text\"", -32600),
        ("{\"id\":1}", -32600),
        ("{\"foo\":1}", -32600),
    ];
    for (line, code) in lines {
        client.send_line(line);
        let answer = client.until("an error", |it| it["id"].is_null());
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    client.send_line(&long);
    let answer = client.until("an error", |it| it["id"] == 7);
    assert!(answer["error"]["message"].as_str().unwrap().contains("limit is 10000"), "{answer}");
    client.send_line("\r\n\n  ");
    client.send_line("{\"id\":\"last\",\"method\":\"echo\"}\r");
    let answer = client.until("an answer", |it| it["id"] == "last");
    assert!(answer.get("result").is_some());
    bus.stop();
}
