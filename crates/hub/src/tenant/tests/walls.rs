//! What a client hears of sessions that are not its tenant's: nothing.

use super::*;
use crate::{session_name::tenant_of, tenant::is_tenant_name};
use jackfield_protocol::acp::{Direction, Method, MethodKind, Scope};
use std::collections::BTreeSet;

/// Every request that names a session, with what else it needs.
fn requests() -> BTreeMap<&'static str, Value> {
    let prompt = json!({ "prompt": [{ "type": "text", "text": "hello" }] });
    BTreeMap::from([
        ("session/archive", json!({})),
        ("session/close", json!({})),
        ("session/delete", json!({})),
        ("session/fork", json!({ "cwd": "/srv/x", "mcpServers": [] })),
        ("session/load", json!({ "cwd": "/srv/x", "mcpServers": [] })),
        ("session/prompt", prompt),
        ("session/resume", json!({ "cwd": "/srv/x", "mcpServers": [] })),
        ("session/set_config_option", json!({ "configId": "x", "value": "y" })),
        ("session/set_mode", json!({ "modeId": "x" })),
        ("session/set_model", json!({ "modelId": "x" })),
        ("session/set_title", json!({ "title": "x" })),
        ("session/status", json!({})),
        ("session/unarchive", json!({})),
        ("_jackfield/answer", json!({ "ask": 1, "result": {} })),
        ("_jackfield/attach", json!({ "after": 0 })),
        ("_jackfield/import", json!({ "lines": [] })),
        ("_jackfield/move", json!({ "prompt": 1 })),
        ("_jackfield/queue", json!({})),
        ("_jackfield/read_log", json!({ "limit": 2 })),
        ("_jackfield/release", json!({})),
        ("_jackfield/rename", json!({ "name": "x" })),
        ("_jackfield/settings", json!({})),
        ("_jackfield/withdraw", json!({ "prompt": 1 })),
        // Whatever agents may understand beyond the protocol.
        ("_agent/own_method", json!({})),
    ])
}

#[test]
fn every_method_that_takes_a_session_has_a_row_here() {
    let rows: BTreeSet<&str> = requests().into_keys().collect();
    let takes_session = |it: &&Method| {
        let row = it.row();
        row.scope == Scope::Session
            && row.direction != Direction::ToClient
            && row.kind != MethodKind::Notification
    };
    for method in Method::ALL.iter().filter(takes_session) {
        assert!(rows.contains(method.name()), "no test sends `{}`", method.name());
    }
}

#[test]
fn a_session_of_somebody_else_is_as_if_it_did_not_exist() {
    for tenant in [tenant("acme"), Tenant { commands: true, ..tenant("acme") }] {
        for (method, params) in requests() {
            let mut scene = Scene::with(&tenant, AgentPool::default());
            let mut answer = |session: &str| {
                let mut params = params.clone();
                params["sessionId"] = json!(session);
                let mut answer = scene.ask(ACME, method, &params);
                assert!(scene.outputs.is_empty(), "{method}: {:?}", scene.outputs);
                answer["id"] = Value::Null;
                let text = answer.to_string().replace(&format!("\"{session}\""), "\"NAME\"");
                (text.replace(&format!("`{session}`"), "`NAME`"), answer)
            };
            let (missing, spoken) = answer("acme.s-no");
            let forbidden = method == "_jackfield/import" && !tenant.commands;
            let expected = if forbidden { "not_allowed" } else { "session_not_found" };
            assert_eq!(code(&spoken), expected, "{method}");
            for theirs in ["other.s-1", "s-1", "other.s-no", "", ".", "acme", "acmee.s-1"] {
                let said = answer(theirs).0;
                // A tenant that may not import hears of no session what it hears of any.
                let same = said == missing || forbidden && said.contains("session_not_found");
                assert!(same, "{method} of `{theirs}`: {said}");
            }
        }
    }
}

#[test]
fn a_notification_about_a_session_of_somebody_else_does_nothing() {
    let mut scene = Scene::new();
    let prompt = json!({ "sessionId": "other.s-1", "prompt": [] });
    assert!(scene.ask(OTHER, "session/prompt", &prompt).is_null(), "the turn runs");
    scene.outputs.clear();
    for method in ["session/cancel", "_agent/own_notification"] {
        scene.send(ACME, method, &json!({ "sessionId": "other.s-1" }));
        assert!(scene.outputs.is_empty(), "{method}: {:?}", scene.outputs);
    }
    scene.send(OTHER, "session/cancel", &json!({ "sessionId": "other.s-1" }));
    assert!(!scene.outputs.is_empty(), "its own may");
}

#[test]
fn lists_have_what_a_client_may_know_of() {
    let mut scene = Scene::new();
    for method in ["session/list", "_jackfield/sessions"] {
        assert_eq!(scene.listed(OPERATOR, method), ["acme.s-1", "other.s-1", "s-1"]);
        assert_eq!(scene.listed(ACME, method), ["acme.s-1"]);
        assert_eq!(scene.listed(OTHER, method), ["other.s-1"]);
    }
    let other = scene.ask(ACME, "_jackfield/sessions", &json!({ "sessionId": "other.s-1" }));
    assert!(other["result"]["sessions"].as_array().is_none_or(Vec::is_empty), "{other}");
    let status = |scene: &mut Scene, conn| {
        let status = scene.ask(conn, "_jackfield/status", &json!({}))["result"].clone();
        ["sessions", "agents", "clients"].map(|it| status[it].as_u64().unwrap())
    };
    scene.open(OTHER).unwrap();
    assert_eq!(status(&mut scene, OPERATOR), [4, 1, 3]);
    assert_eq!(status(&mut scene, ACME), [1, 0, 1]);
    assert_eq!(status(&mut scene, OTHER), [2, 1, 1]);
}

#[test]
fn new_sessions_and_copies_are_called_after_their_tenant() {
    let mut scene = Scene::new();
    let named = scene.open(ACME).unwrap();
    assert!(named.starts_with("acme.s-") && named.len() == "acme.s-".len() + 12, "{named}");
    assert_eq!(tenant_of(&scene.open(OPERATOR).unwrap()), None);
    let copies = |scene: &mut Scene, conn, session: &str| {
        scene.ask(conn, "session/fork", &json!({ "sessionId": session }));
        let copy = scene.outputs.iter().rev().find_map(|it| match it {
            Output::Copy { to, .. } => Some(to.to_string()),
            _ => None,
        });
        copy.unwrap()
    };
    assert_eq!(tenant_of(&copies(&mut scene, ACME, "acme.s-1")), Some("acme"));
    assert_eq!(tenant_of(&copies(&mut scene, OPERATOR, "acme.s-1")), Some("acme"));
    assert_eq!(tenant_of(&copies(&mut scene, OPERATOR, "s-1")), None);
}

#[test]
fn a_connection_is_bound_once_and_first() {
    let mut scene = Scene::new();
    scene.feed(Input::ClientSpoke { conn: ACME, frame: tenant("other").binding() });
    assert_eq!(scene.listed(ACME, "session/list"), ["acme.s-1"]);
    scene.feed(Input::ClientSpoke { conn: OPERATOR, frame: tenant("other").binding() });
    assert_eq!(scene.listed(OPERATOR, "session/list").len(), 3, "it has said hello before");
    // As a request it is nothing at all.
    let answer = scene.ask(ACME, "_jackfield/tenant", &json!({ "tenant": "other" }));
    assert_eq!(code(&answer), "method_not_found");
    assert_eq!(scene.listed(ACME, "session/list"), ["acme.s-1"]);
}

#[test]
fn who_cannot_be_bound_is_hung_up_on() {
    for params in [json!({}), json!({ "tenant": "" }), json!({ "tenant": "a.b" }), json!(7)] {
        let mut scene = Scene::new();
        let conn = ConnId(9);
        scene.feed(Input::ClientOpened { conn, peer: None });
        scene.send(conn, "_jackfield/tenant", &params);
        let closed = |it: &Output| matches!(it, Output::CloseClient { conn: ConnId(9) });
        assert!(scene.outputs.iter().any(closed), "{params}");
        assert!(scene.ask(conn, "session/list", &json!({})).is_null(), "nobody listens to it");
    }
}

#[test]
fn a_tenants_name_is_plain() {
    for good in ["a", "acme", "acme-2", "0", &"a".repeat(32)] {
        assert!(is_tenant_name(good), "{good}");
    }
    for bad in ["", "Acme", "a.b", "a b", "ä", "a_b", "a/b", &"a".repeat(33)] {
        assert!(!is_tenant_name(bad), "{bad}");
    }
}

#[test]
fn sessions_work_in_the_roots_of_their_tenant() {
    let mut scene = Scene::new();
    for bad in ["/", "/srvx", "/etc", "srv", "/srv/../etc", ""] {
        for params in [
            json!({ "cwd": bad, "mcpServers": [] }),
            json!({ "cwd": "/srv/x", "additionalDirectories": ["/srv/y", bad] }),
        ] {
            let answer = scene.ask(ACME, "session/new", &params);
            assert_eq!(code(&answer), "not_allowed", "{params}");
            assert!(
                why(&answer).contains("is not in `/srv`, the roots of tenant `acme`"),
                "{answer}"
            );
        }
        let fork = json!({ "sessionId": "acme.s-1", "cwd": bad });
        assert_eq!(code(&scene.ask(ACME, "session/fork", &fork)), "not_allowed", "{bad}");
    }
    assert!(scene.open(ACME).is_ok());
    let none = Tenant { roots: Vec::new(), ..tenant("none") };
    let conn = ConnId(9);
    scene.arrive(conn, &none);
    let answer = scene.ask(conn, "session/new", &json!({ "cwd": "/srv/x" }));
    assert!(why(&answer).contains("tenant `none` has no `roots`"), "{answer}");
}

#[test]
fn programs_are_those_that_are_known_by_name() {
    let command = json!({ "agent": { "name": "sh", "argv": ["sh"] }, "cwd": "/srv" });
    let server =
        json!({ "cwd": "/srv", "mcpServers": [{ "name": "x", "command": "sh", "args": [] }] });
    let import = json!({ "from": "s-9" });
    let wishes = [
        ("_jackfield/connect", &command),
        ("session/new", &server),
        ("_jackfield/import", &import),
        ("authenticate", &json!({ "methodId": "x" })),
        ("logout", &json!({})),
        ("providers/set", &json!({})),
        ("_agent/own_method", &json!({})),
    ];
    let mut scene = Scene::new();
    scene.open(ACME).unwrap();
    for (method, params) in &wishes {
        let answer = scene.ask(ACME, method, params);
        assert_eq!(code(&answer), "not_allowed", "{method}: {answer}");
    }
    let mut scene = Scene::with(&Tenant { commands: true, ..tenant("acme") }, AgentPool::default());
    scene.open(ACME).unwrap();
    for (method, params) in &wishes {
        let answer = scene.ask(ACME, method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
    }
    // Nobody but the operator ends the daemon.
    assert_eq!(code(&scene.ask(ACME, "_jackfield/stop", &json!({}))), "not_allowed");
}

#[test]
fn the_environment_of_an_agent_is_not_its_tenants_to_choose() {
    let wish = json!({ "agent": "echo", "cwd": "/srv", "env": { "PATH": "/srv/evil" } });
    for commands in [false, true] {
        let acme = Tenant { commands, ..tenant("acme") };
        let mut scene = Scene::with(&acme, AgentPool::default());
        scene.ask(ACME, "_jackfield/connect", &wish);
        scene.open(ACME).unwrap();
        let env = scene.outputs.iter().find_map(|it| match it {
            Output::Spawn { launch, .. } => Some(launch.env.is_some()),
            _ => None,
        });
        assert_eq!(env, Some(commands));
    }
}

#[test]
fn what_is_imported_is_its_tenants_and_stays_in_its_roots() {
    let acme = Tenant { commands: true, ..tenant("acme") };
    let import = |from: &str, cwd: &str| {
        let mut scene = Scene::with(&acme, AgentPool::default());
        let answer = scene.ask(ACME, "_jackfield/import", &json!({ "from": from }));
        let name = answer["result"]["sessionId"].as_str().unwrap().to_owned();
        let opened = json!({
            "at": 1, "is": "opened", "agent": "echo", "argv": [], "cwd": cwd, "params": {},
            "agentSession": "x", "setup": {},
        });
        let lines = json!({ "sessionId": name, "lines": [opened.to_string()] });
        let answer = scene.ask(ACME, "_jackfield/import", &lines);
        assert!(answer["error"].is_null(), "{answer}");
        let end = scene.ask(ACME, "_jackfield/import", &json!({ "sessionId": name, "end": true }));
        (name, end)
    };
    for (from, name) in [("s-abc", "acme.s-abc"), ("other.s-abc", "acme.s-abc")] {
        let (named, end) = import(from, "/srv/x");
        assert_eq!(named, name);
        assert!(end["error"].is_null(), "{end}");
    }
    let (named, _) = import("acme.s-1", "/srv/x");
    assert!(named.starts_with("acme.s-") && named != "acme.s-1", "that one is taken: {named}");
    assert_eq!(code(&import("s-abc", "/etc").1), "not_allowed");
}

#[test]
fn a_process_serves_one_tenant() {
    let pool = AgentPool { sessions_per_process: 4, ..AgentPool::default() };
    let mut scene = Scene::with(&tenant("acme"), pool);
    for _ in 0..2 {
        for conn in [OPERATOR, ACME, OTHER] {
            scene.open(conn).unwrap();
        }
    }
    assert_eq!(scene.alive().len(), 3, "one each, and each serves two sessions");
    for agent in scene.hub.parts.agents.processes.values() {
        let tenants: BTreeSet<_> = agent.slots.sessions.iter().map(|it| tenant_of(it)).collect();
        assert_eq!((tenants.len(), agent.slots.sessions.len()), (1, 2));
    }
}
