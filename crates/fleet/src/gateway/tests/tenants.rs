//! Clients of tenants: visibility, quotas, and the binding of host connections.

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

/// A is bound to `acme`, B is the operator.
fn tenant_fixture(sessions: Option<usize>) -> GatewayFixture {
    let mut fixture = GatewayFixture::new();
    let frame = tenant("acme", sessions).binding();
    fixture.feed(GatewayInput::ClientSentFrame { conn: A, frame });
    fixture
}

fn hosts(sessions_of_acme: usize) -> GatewayInput {
    let report =
        |it: Host| Host { tenants: BTreeMap::from([("acme".into(), sessions_of_acme)]), ..it };
    GatewayInput::HostsChanged(vec![report(host("x", 0)), host("y", 5)])
}

#[test]
fn host_connections_are_bound_before_other_frames_are_sent() {
    let mut fixture = tenant_fixture(None);
    for (id, name) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let prompt = request(&json!(id), "session/prompt", &json!({ "sessionId": name }));
        fixture.send_from_client(A, &prompt);
        fixture.answer_locate(name, if id == 1 { "x" } else { "y" });
    }
    assert_eq!(fixture.host_conns.len(), 2);
    for host_conn in fixture.host_conns.keys() {
        let first = fixture
            .host_frames
            .iter()
            .find(|(it, _)| it == host_conn)
            .map(|(_, text)| text.clone());
        let first = first.unwrap();
        assert_eq!(first["method"], "_jackfield/tenant");
        assert_eq!(first["params"]["tenant"], "acme");
        assert_eq!(first["params"]["roots"], json!(["/srv"]));
    }
    fixture
        .send_from_client(B, &request(&json!(1), "session/prompt", &json!({ "sessionId": "s-1" })));
    fixture.answer_locate("s-1", "x");
    assert_eq!(fixture.last_host_frame().2["method"], "session/prompt", "B is the operator");
}

#[test]
fn session_of_another_tenant_is_reported_missing_without_a_search() {
    let mut fixture = tenant_fixture(None);
    let mut answer = |session: &str, missing: bool| {
        let load = request(&json!(1), "session/load", &json!({ "sessionId": session }));
        fixture.send_from_client(A, &load);
        if missing {
            let fault = Fault::SessionNotFound { session: session.into() };
            fixture
                .feed(GatewayInput::SessionLocated { session: session.into(), owner: Err(fault) });
        }
        let (conn, frame) = fixture.last_client_frame();
        assert_eq!((conn, frame["id"].clone()), (A, json!(1)));
        (frame.to_string().replace(session, "NAME"), fixture.located.len())
    };
    let (missing, located) = answer("acme.s-no", true);
    assert_eq!(located, 1);
    for invisible in ["other.s-1", "s-1", "acmee.s-1", "x"] {
        assert_eq!(answer(invisible, false), (missing.clone(), 1), "{invisible}");
    }
    fixture.send_from_client(
        A,
        &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }),
    );
    assert_eq!(fixture.located.len(), 1);
}

#[test]
fn session_page_has_only_visible_sessions() {
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
    let mut fixture = tenant_fixture(None);
    for (conn, expected) in [(A, vec!["acme.s-1", "acme.s-2"]), (B, names.to_vec())] {
        fixture.send_from_client(conn, &request(&json!(1), "session/list", &json!({})));
        let Some(GatewayOutput::ListSessions { token, tenant, .. }) =
            fixture.other_outputs.last().cloned()
        else {
            panic!("no page was requested");
        };
        assert_eq!(tenant.as_deref(), (conn == A).then_some("acme"));
        let page = SessionPage { sessions: names.map(row).into(), next: None };
        fixture.feed(GatewayInput::SessionsListed { token, page: Ok(page) });
        let (_, frame) = fixture.last_client_frame();
        let rows = frame["result"]["sessions"].as_array().unwrap().clone();
        let listed: Vec<_> = rows.iter().map(|it| it["sessionId"].as_str().unwrap()).collect();
        assert_eq!(listed, expected);
    }
}

#[test]
fn client_is_bound_once_and_before_its_first_request() {
    let mut fixture = tenant_fixture(None);
    let other = tenant("other", None).binding();
    fixture.feed(GatewayInput::ClientSentFrame { conn: A, frame: other.clone() });
    fixture.send_from_client(
        A,
        &request(&json!(1), "session/load", &json!({ "sessionId": "other.s-1" })),
    );
    assert_eq!(fixture.error_code(), "session_not_found");
    fixture.open_session(B, "s-1");
    fixture.feed(GatewayInput::ClientSentFrame { conn: B, frame: other });
    let prompt = request(&json!(2), "session/prompt", &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.relay(B, &prompt).2["method"], "session/prompt", "its binding is unchanged");
}

#[test]
fn invalid_binding_closes_the_client() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(
        A,
        &json!({ "method": "_jackfield/tenant", "params": { "tenant": "A B" } }),
    );
    let is_closed = |it: &GatewayOutput| matches!(it, GatewayOutput::CloseClient { conn: A });
    assert!(fixture.other_outputs.iter().any(is_closed));
}

#[test]
fn quota_counts_the_whole_fleet_and_sessions_just_placed() {
    let mut fixture = tenant_fixture(Some(3));
    fixture.feed(hosts(1));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for id in 1..=2 {
        fixture.send_from_client(A, &new(id));
        assert_eq!(fixture.last_host_frame().2["method"], "session/new");
    }
    fixture.send_from_client(A, &new(3));
    assert_eq!(fixture.error_code(), "quota");
    let message = fixture.last_client_frame().1["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`acme` has 3 sessions that are awake, and may have 3"), "{message}");
    fixture.relay(B, &new(4));
    // A session that a host refuses is not placed.
    let (host_conn, relayed) = fixture.host_frames.iter().rev().nth(1).cloned().unwrap();
    let error = json!({ "code": -31004, "message": "no agent" });
    fixture.send_from_host(host_conn, &json!({ "id": relayed["id"], "error": error }));
    fixture.send_from_client(A, &new(7));
    assert_eq!(fixture.last_host_frame().2["method"], "session/new");
    fixture.send_from_client(A, &new(8));
    assert_eq!(fixture.error_code(), "quota");
}

/// Sends a request that must be relayed to a host.
fn relay_new(fixture: &mut GatewayFixture, message: &Value) -> (HostId, HostConnectionId, Value) {
    fixture.send_from_client(A, message);
    let sent = fixture.last_host_frame();
    assert_eq!(
        sent.2["method"],
        "session/new",
        "sent to the client instead: {:?}",
        fixture.client_frames.last()
    );
    sent
}

#[test]
fn placed_session_counts_until_its_host_reports_it() {
    let mut fixture = tenant_fixture(Some(2));
    fixture.feed(hosts(0));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for (id, session) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let (host, host_conn, relayed) = relay_new(&mut fixture, &new(id));
        assert_eq!(&*host, "x");
        fixture.respond(host_conn, &relayed, &json!({ "sessionId": session }));
    }
    let refused = |fixture: &mut GatewayFixture, id: u64, why: &str| {
        let before = fixture.host_frames.len();
        fixture.send_from_client(A, &new(id));
        assert_eq!(
            (fixture.host_frames.len(), fixture.error_code().as_str()),
            (before, "quota"),
            "{why}"
        );
    };
    fixture.feed(hosts(0));
    refused(&mut fixture, 3, "the report was on its way when the sessions were placed");
    fixture.feed(hosts(1));
    refused(&mut fixture, 4, "the host counts one, the other is still to be counted");
    fixture.feed(hosts(2));
    refused(&mut fixture, 5, "the host counts both");
    fixture.feed(hosts(1));
    // One session has ended.
    let (_, host_conn, relayed) = relay_new(&mut fixture, &new(6));
    fixture.feed(hosts(1));
    refused(&mut fixture, 7, "a session ended when another began");
    fixture.advance_time(20_000);
    fixture.feed(hosts(1));
    refused(&mut fixture, 8, "its request is still open");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "acme.s-3" }));
    fixture.feed(hosts(1));
    refused(&mut fixture, 9, "it has just been answered");
    fixture.advance_time(5_000);
    // Every report since then includes it.
    relay_new(&mut fixture, &new(10));
}

#[test]
fn closed_session_no_longer_counts() {
    let mut fixture = tenant_fixture(Some(1));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    for (id, session) in [(1, "acme.s-1"), (2, "acme.s-2")] {
        let (_, host_conn, relayed) = relay_new(&mut fixture, &new(id));
        fixture.respond(host_conn, &relayed, &json!({ "sessionId": session }));
        let close = request(&json!("close"), "session/close", &json!({ "sessionId": session }));
        let (_, host_conn, relayed) = fixture.relay(A, &close);
        fixture.respond(host_conn, &relayed, &json!({}));
    }
}

#[test]
fn session_that_is_placed_again_counts_once() {
    let mut fixture = tenant_fixture(Some(2));
    let new = |id: u64| request(&json!(id), "session/new", &json!({}));
    let (_, host_conn, _) = relay_new(&mut fixture, &new(1));
    fixture.feed(GatewayInput::HostsChanged(vec![host("y", 5)]));
    fixture.lose_connection(host_conn);
    fixture.advance_time(1_000);
    assert_eq!(&*fixture.last_host_frame().0, "y");
    relay_new(&mut fixture, &new(2));
    fixture.send_from_client(A, &new(3));
    assert_eq!(fixture.error_code(), "quota");
}
