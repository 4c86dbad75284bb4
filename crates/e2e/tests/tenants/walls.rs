//! What two tenants of one daemon know of each other: nothing, by any way.

use super::{Town, WAYS, Way, code, names};
use serde_json::{Value, json};
use std::path::Path;

/// Every request that names a session, with what else it needs.
fn requests(cwd: &Path) -> Vec<(&'static str, Value)> {
    let prompt = json!({ "prompt": [{ "type": "text", "text": "whose is this" }] });
    vec![
        ("session/load", json!({ "cwd": cwd, "mcpServers": [] })),
        ("session/resume", json!({ "cwd": cwd, "mcpServers": [] })),
        ("session/prompt", prompt),
        ("session/set_mode", json!({ "modeId": "x" })),
        ("session/fork", json!({})),
        ("session/close", json!({})),
        ("session/delete", json!({})),
        ("_fake/echo", json!({})),
        ("_jackfield/attach", json!({ "after": 0, "facts": true })),
        ("_jackfield/answer", json!({ "ask": 1, "result": {} })),
        ("_jackfield/move", json!({ "prompt": 1 })),
        ("_jackfield/queue", json!({})),
        ("_jackfield/read_log", json!({ "limit": 2 })),
        ("_jackfield/release", json!({})),
        ("_jackfield/rename", json!({ "name": "x" })),
        ("_jackfield/settings", json!({})),
        ("_jackfield/withdraw", json!({ "prompt": 1 })),
    ]
}

#[test]
fn tenants_of_one_daemon_know_nothing_of_each_other() {
    let town = Town::new();
    let mut theirs = town.client("other", Way::Tcp);
    let their_session = theirs.open(town.home.path());
    assert!(their_session.starts_with("other.s-"), "{their_session}");
    assert_eq!(theirs.prompt(&their_session, "remember 17"), "end_turn");
    let turn = theirs.send_prompt(&their_session, "hang");
    theirs.result("_fake/echo", &json!({ "sessionId": their_session }));
    for way in WAYS {
        let mut client = town.client("acme", way);
        let own = client.open(town.home.path());
        assert!(own.starts_with("acme.s-"), "{way:?}: {own}");
        assert_eq!(client.prompt(&own, "hello"), "end_turn");
        for (method, params) in requests(town.home.path()) {
            let mut answer = |session: &str| {
                let mut params = params.clone();
                params["sessionId"] = json!(session);
                let mut answer = client.ask(method, &params);
                answer["id"] = Value::Null;
                (code(&answer), answer.to_string().replace(session, "NAME"))
            };
            let missing = answer("acme.s-aaaaaaaaaaaa");
            assert_eq!(missing.0, "session_not_found", "{way:?} {method}");
            assert_eq!(answer(&their_session), missing, "{way:?} {method}");
        }
        client.notify("session/cancel", &json!({ "sessionId": their_session }));
        for method in ["session/list", "_jackfield/sessions"] {
            let listed = names(&client.result(method, &json!({})));
            assert!(listed.iter().all(|it| it.starts_with("acme.s-")), "{way:?}: {listed:?}");
            assert!(listed.contains(&own), "{way:?}: {listed:?}");
        }
        let heard = format!("{:?}", client.heard);
        assert!(!heard.contains("remember 17"), "{way:?}: {heard}");
    }
    // Nothing of it has touched the turn that runs.
    let mut operator = town.operator();
    let all = names(&operator.result("session/list", &json!({})));
    assert!(all.contains(&their_session) && all.len() == 4, "{all:?}");
    let rows = operator.result("_jackfield/sessions", &json!({}));
    let row = rows["sessions"].as_array().unwrap().iter();
    let row = row.into_iter().find(|it| it["sessionId"] == *their_session).unwrap();
    assert_eq!((&row["state"], &row["queued"]), (&json!("working"), &json!(0)), "{row}");
    theirs.notify("session/cancel", &json!({ "sessionId": their_session }));
    assert_eq!(theirs.answer(turn)["result"]["stopReason"], "cancelled");
    drop((theirs, operator));
    town.finish();
}

#[test]
fn a_client_cannot_choose_whose_it_is() {
    let town = Town::new();
    let mut theirs = town.client("other", Way::Tcp);
    let their_session = theirs.open(town.home.path());
    let binding = json!({ "tenant": "other", "commands": true, "roots": ["/"] });
    for way in [Way::Tcp, Way::WebSocket] {
        let mut client = town.stranger("acme", way);
        client.notify("_jackfield/tenant", &binding);
        client.hello();
        client.notify("_jackfield/tenant", &binding);
        let load = json!({ "sessionId": their_session, "cwd": town.home.path() });
        assert_eq!(code(&client.ask("session/load", &load)), "session_not_found");
        assert!(client.open(town.home.path()).starts_with("acme.s-"));
        let listed = names(&client.result("session/list", &json!({})));
        assert!(listed.iter().all(|it| it.starts_with("acme.s-")), "{listed:?}");
    }
    drop(theirs);
    town.finish();
}

#[test]
fn a_tenant_starts_no_program_and_works_nowhere_but_where_it_may() {
    let town = Town::new();
    let mut client = town.client("acme", Way::Tcp);
    let new = |cwd: Value, servers: Value| json!({ "cwd": cwd, "mcpServers": servers });
    let inside = json!(town.home.path());
    let server = json!([{ "name": "x", "command": "/bin/sh", "args": [], "env": [] }]);
    for (params, told) in [
        (new(json!("/"), json!([])), "`/` is not in"),
        (new(json!(town.home.path().join("../..")), json!([])), "is not in"),
        (new(inside, server), "an MCP server with a `command` starts a program"),
    ] {
        let answer = client.ask("session/new", &params);
        assert_eq!(code(&answer), "not_allowed", "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(told), "{answer}");
    }
    let command = json!({ "agent": { "name": "sh", "argv": ["/bin/sh"] } });
    assert_eq!(code(&client.ask("_jackfield/connect", &command)), "not_allowed");
    assert_eq!(code(&client.ask("_jackfield/stop", &json!({}))), "not_allowed");
    assert_eq!(town.home.alive(&[town.daemon.pid()]), [0_u32; 0], "nothing was started");
    drop(client);
    town.finish();
}

#[test]
fn a_token_counts_from_the_moment_it_is_in_the_file_until_it_is_taken_out() {
    let town = Town::new();
    let mut tokens = town.tokens.clone();
    let (old, new) = (tokens["acme"].clone(), super::token(&town.home, "acme"));
    let lets_in = |token: &str| {
        let mut client = town.by_tcp(token);
        client.send("initialize", &json!({ "protocolVersion": 1 }));
        let heard = client.next(super::BOUND).expect("an answer, or why not");
        heard["result"].is_object()
    };
    assert!(lets_in(&old) && !lets_in(&new));
    tokens.insert("acme", new.clone());
    super::write_tenants(&town.home, &tokens, "");
    assert!(!lets_in(&old) && lets_in(&new));
    // A file that is broken changes nothing.
    std::fs::write(town.home.path().join("tenants.toml"), "[acme\n").unwrap();
    assert!(!lets_in(&old) && lets_in(&new));
    assert!(town.home.said().contains("invalid tenants file"), "{}", town.home.said());
    town.finish();
}
