//! Clients of tenants: what they name, what they are told, and how their host connections are bound.

use super::*;
use jackfield_events::HostId;
use jackfield_hub::Tenant;

fn tenant(name: &str, sessions: Option<usize>) -> Tenant {
    Tenant {
        name: name.into(),
        sessions,
        agents: None,
        events_per_second: None,
        commands: false,
        roots: vec!["/srv".into()],
    }
}

/// A is of `acme`, B is nobody's.
fn scene(sessions: Option<usize>) -> Scene {
    let mut scene = Scene::new();
    let frame = tenant("acme", sessions).binding();
    scene.feed(GatewayInput::ClientSpoke { conn: A, frame });
    scene
}

fn hosts(of_acme: usize) -> GatewayInput {
    let told = |it: Host| Host { tenants: BTreeMap::from([("acme".into(), of_acme)]), ..it };
    GatewayInput::Hosts(vec![told(host("x", 0)), host("y", 5)])
}

#[test]
fn every_host_conn_is_bound_before_anything_else_is_said() {
    let mut scene = scene(None);
    for (id, name) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let prompt = request(&json!(id), "session/prompt", &json!({ "sessionId": name }));
        scene.say(A, &prompt);
        scene.locate(name, if id == 1 { "x" } else { "y" });
    }
    assert_eq!(scene.host_conns.len(), 2);
    for host_conn in scene.host_conns.keys() {
        let first = scene.said.iter().find(|(it, _)| it == host_conn).map(|(_, text)| text.clone());
        let first = first.unwrap();
        assert_eq!(first["method"], "_jackfield/tenant");
        assert_eq!(first["params"]["tenant"], "acme");
        assert_eq!(first["params"]["roots"], json!(["/srv"]));
    }
    scene.say(B, &request(&json!(1), "session/prompt", &json!({ "sessionId": "s-1" })));
    scene.locate("s-1", "x");
    assert_eq!(scene.last_said().2["method"], "session/prompt", "B is the operator's");
}

#[test]
fn a_session_of_somebody_else_is_not_even_looked_for() {
    let mut scene = scene(None);
    let mut answer = |session: &str, missing: bool| {
        let load = request(&json!(1), "session/load", &json!({ "sessionId": session }));
        scene.say(A, &load);
        if missing {
            let fault = Fault::SessionNotFound { session: session.into() };
            scene.feed(GatewayInput::Located { session: session.into(), owner: Err(fault) });
        }
        let (conn, told) = scene.last();
        assert_eq!((conn, told["id"].clone()), (A, json!(1)));
        (told.to_string().replace(session, "NAME"), scene.located.len())
    };
    let (missing, located) = answer("acme.s-no", true);
    assert_eq!(located, 1);
    for theirs in ["other.s-1", "s-1", "acmee.s-1", "x"] {
        assert_eq!(answer(theirs, false), (missing.clone(), 1), "{theirs}");
    }
    scene.say(A, &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }));
    assert_eq!(scene.located.len(), 1);
}

#[test]
fn a_page_has_what_the_client_may_know_of() {
    let row = |name: &str| ListedSession {
        session: name.into(),
        agent: "echo".into(),
        cwd: "/srv".into(),
        title: None,
        state: "asleep".into(),
        updated_at: Time(0),
        host: None,
    };
    let names = ["acme.s-1", "other.s-1", "s-1", "acme.s-2"];
    let mut scene = scene(None);
    for (conn, expected) in [(A, vec!["acme.s-1", "acme.s-2"]), (B, names.to_vec())] {
        scene.say(conn, &request(&json!(1), "session/list", &json!({})));
        let Some(GatewayOutput::List { token, tenant, .. }) = scene.others.last().cloned() else {
            panic!("no page is asked for");
        };
        assert_eq!(tenant.as_deref(), (conn == A).then_some("acme"));
        let page = SessionPage { sessions: names.map(row).into(), next: None };
        scene.feed(GatewayInput::SessionsListed { token, page: Ok(page) });
        let (_, told) = scene.last();
        let rows = told["result"]["sessions"].as_array().unwrap().clone();
        let listed: Vec<_> = rows.iter().map(|it| it["sessionId"].as_str().unwrap()).collect();
        assert_eq!(listed, expected);
    }
}

#[test]
fn a_client_is_bound_once_and_before_it_speaks() {
    let mut scene = scene(None);
    let other = tenant("other", None).binding();
    scene.feed(GatewayInput::ClientSpoke { conn: A, frame: other.clone() });
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "other.s-1" })));
    assert_eq!(scene.code(), "session_not_found");
    scene.open(B, "s-1");
    scene.feed(GatewayInput::ClientSpoke { conn: B, frame: other });
    let prompt = request(&json!(2), "session/prompt", &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.ask(B, &prompt).2["method"], "session/prompt", "it goes on as it was");
}

#[test]
fn a_binding_that_names_nobody_ends_the_connection() {
    let mut scene = Scene::new();
    scene.say(A, &json!({ "method": "_jackfield/tenant", "params": { "tenant": "A B" } }));
    let hung_up = |it: &GatewayOutput| matches!(it, GatewayOutput::CloseClient { conn: A });
    assert!(scene.others.iter().any(hung_up));
}

#[test]
fn the_whole_fleet_counts_and_so_does_what_was_just_placed() {
    let mut scene = scene(Some(3));
    scene.feed(hosts(1));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for id in 1..=2 {
        scene.say(A, &new(id));
        assert_eq!(scene.last_said().2["method"], "session/new");
    }
    scene.say(A, &new(3));
    assert_eq!(scene.code(), "quota");
    let told = scene.last().1["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("`acme` has 3 sessions that are awake, and may have 3"), "{told}");
    scene.ask(B, &new(4));
    // One that a host refuses has not been placed.
    let (host_conn, asked) = scene.said.iter().rev().nth(1).cloned().unwrap();
    let error = json!({ "code": -31004, "message": "no agent" });
    scene.host_says(host_conn, &json!({ "id": asked["id"], "error": error }));
    scene.say(A, &new(7));
    assert_eq!(scene.last_said().2["method"], "session/new");
    scene.say(A, &new(8));
    assert_eq!(scene.code(), "quota");
}

/// Sends a request that must be sent on to a host.
fn sent_on(scene: &mut Scene, message: &Value) -> (HostId, HostConnectionId, Value) {
    scene.say(A, message);
    let sent = scene.last_said();
    assert_eq!(sent.2["method"], "session/new", "told instead: {:?}", scene.told.last());
    sent
}

#[test]
fn a_placed_session_counts_until_the_report_of_its_host_counts_it() {
    let mut scene = scene(Some(2));
    scene.feed(hosts(0));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for (id, session) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let (host, host_conn, asked) = sent_on(&mut scene, &new(id));
        assert_eq!(&*host, "x");
        scene.answer(host_conn, &asked, &json!({ "sessionId": session }));
    }
    let refused = |scene: &mut Scene, id: u64, why: &str| {
        let before = scene.said.len();
        scene.say(A, &new(id));
        assert_eq!((scene.said.len(), scene.code().as_str()), (before, "quota"), "{why}");
    };
    scene.feed(hosts(0));
    refused(&mut scene, 3, "the report was on its way when the sessions were placed");
    scene.feed(hosts(1));
    refused(&mut scene, 4, "the host counts one, the other is still to be counted");
    scene.feed(hosts(2));
    refused(&mut scene, 5, "the host counts both");
    scene.feed(hosts(1));
    // One has ended.
    let (_, host_conn, asked) = sent_on(&mut scene, &new(6));
    scene.feed(hosts(1));
    refused(&mut scene, 7, "a session ended when another began");
    scene.pass(20_000);
    scene.feed(hosts(1));
    refused(&mut scene, 8, "its request is still open");
    scene.answer(host_conn, &asked, &json!({ "sessionId": "acme.s-3" }));
    scene.feed(hosts(1));
    refused(&mut scene, 9, "it has just been answered");
    scene.pass(5_000);
    // Every report since then counts it.
    sent_on(&mut scene, &new(10));
}

#[test]
fn a_placed_session_that_is_closed_counts_no_more() {
    let mut scene = scene(Some(1));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for (id, session) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let (_, host_conn, asked) = sent_on(&mut scene, &new(id));
        scene.answer(host_conn, &asked, &json!({ "sessionId": session }));
        let close = request(&json!("close"), "session/close", &json!({ "sessionId": session }));
        let (_, host_conn, asked) = scene.ask(A, &close);
        scene.answer(host_conn, &asked, &json!({}));
    }
}

#[test]
fn a_session_that_is_placed_again_counts_once() {
    let mut scene = scene(Some(2));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    let (_, host_conn, _) = sent_on(&mut scene, &new(1));
    scene.feed(GatewayInput::Hosts(vec![host("y", 5)]));
    scene.lose(host_conn);
    scene.pass(1_000);
    assert_eq!(&*scene.last_said().0, "y");
    sent_on(&mut scene, &new(2));
    scene.say(A, &new(3));
    assert_eq!(scene.code(), "quota");
}
