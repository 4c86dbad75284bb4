//! Which host gets a new session.

use super::*;

#[test]
fn new_session_goes_to_the_least_loaded_host_and_its_frames_follow() {
    let mut fixture = GatewayFixture::new();
    let (host, host_conn, relayed) =
        fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(&*host, "x");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "s-1" }));
    assert_eq!(
        fixture.last_client_frame(),
        (A, json!({ "id": 1, "result": { "sessionId": "s-1" } }))
    );
    let mode = request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.relay(A, &mode).1, host_conn);
    assert!(fixture.located.is_empty(), "the owner is known from the response");
}

#[test]
fn sessions_placed_since_the_last_report_count_as_load() {
    let mut fixture = GatewayFixture::new();
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 0)]));
    let hosts: Vec<HostId> = (0..4)
        .map(|n| fixture.relay(A, &request(&json!(n), "session/new", &json!({}))).0)
        .collect();
    // The first session is not answered yet, so the default host is preferred for none.
    assert_eq!(hosts.iter().map(|it| &**it).collect::<Vec<_>>(), ["x", "y", "x", "y"]);
}

/// Regression test: a session and its agent raise the load by two, and a report with one of three
/// placed sessions removed two of them from the count.
#[test]
fn report_that_counts_one_session_removes_one_placed_session() {
    let mut fixture = GatewayFixture::new();
    let report = |sessions: usize, free: usize| Host {
        sessions,
        load: 2 * sessions,
        free: Some(free),
        ..host("x", 0)
    };
    let large = || Host { load: 100, ..host("y", 0) };
    fixture.feed(GatewayInput::HostsChanged(vec![report(0, 3), large()]));
    let open = |fixture: &mut GatewayFixture, n: usize| {
        fixture.relay(A, &request(&json!(n), "session/new", &json!({}))).0.to_string()
    };
    let first: Vec<String> = (0..3).map(|n| open(&mut fixture, n)).collect();
    assert_eq!(first, ["x", "x", "x"]);
    fixture.feed(GatewayInput::HostsChanged(vec![report(1, 2), large()]));
    assert_eq!(open(&mut fixture, 3), "y", "two of three processes are taken and not reported yet");
}

#[test]
fn labels_agents_and_draining_take_precedence_over_load() {
    let mut fixture = GatewayFixture::new();
    let mut other = host("z", 9);
    other.labels.insert("gpu=yes".into());
    other.agents.insert("rare".into(), 1);
    let mut drained = host("w", 0);
    drained.draining = true;
    fixture.feed(GatewayInput::HostsChanged(vec![drained, host("x", 0), other]));
    let mut place = |meta: Value| {
        let params = json!({ "_meta": { "jackfield": meta } });
        let before = fixture.host_frames.len();
        let id = json!(before);
        fixture.send_from_client(A, &request(&id, "session/new", &params));
        if fixture.host_frames.len() == before {
            fixture.error_code()
        } else {
            fixture.last_host_frame().0.to_string()
        }
    };
    assert_eq!(place(json!({ "labels": ["gpu=yes"] })), "z");
    assert_eq!(place(json!({ "agent": "rare" })), "z");
    assert_eq!(place(json!({ "labels": ["os=linux", "host=x"] })), "x");
    assert_eq!(place(json!({ "labels": ["host=w"] })), "no_host");
    assert_eq!(place(json!({ "agent": "none" })), "no_host");
    assert_eq!(place(json!({ "labels": "gpu=yes" })), "invalid_params");
}

#[test]
fn full_host_is_avoided_and_first_session_goes_to_the_default_host() {
    let mut fixture = GatewayFixture::new();
    let mut full = host("x", 0);
    full.agents.insert("echo".into(), 0);
    fixture.feed(GatewayInput::HostsChanged(vec![full, host("y", 5)]));
    fixture.send_from_client(
        A,
        &json!({ "method": "_jackfield/connect", "params": { "agent": "echo" } }),
    );
    assert!(fixture.host_frames.is_empty(), "`connect` alone needs no host");
    fixture.send_from_client(A, &request(&json!(0), "initialize", &json!({})));
    let (default_host, _, _) = fixture.last_host_frame();
    assert_eq!(&*default_host, "y");
    // The other host now has a lower load, but an agent may already be started on the default host.
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("y", 5)]));
    assert_eq!(&*fixture.relay(A, &request(&json!(1), "session/new", &json!({}))).0, "y");
    fixture.send_from_client(A, &request(&json!(2), "session/new", &json!({})));
    assert_eq!(&*fixture.last_host_frame().0, "x");
}

/// Also applies to a session whose agent is a command of the client, which no host lists.
#[test]
fn full_host_gets_sessions_only_if_all_hosts_are_full() {
    let mut fixture = GatewayFixture::new();
    let limited = |name, load, free| Host { free: Some(free), ..host(name, load) };
    fixture.feed(GatewayInput::HostsChanged(vec![limited("x", 0, 2), host("y", 5)]));
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    fixture.send_from_client(A, &json!({ "method": "_jackfield/connect", "params": connect }));
    let mut placed = Vec::new();
    for number in 0..5 {
        fixture.send_from_client(A, &request(&json!(number), "session/new", &json!({})));
        placed.push(fixture.last_host_frame().0.to_string());
    }
    assert_eq!(placed, ["x", "x", "y", "y", "y"]);
    fixture.feed(GatewayInput::HostsChanged(vec![limited("x", 3, 0), limited("y", 9, 0)]));
    fixture.send_from_client(A, &request(&json!(9), "session/new", &json!({})));
    assert_eq!(&*fixture.last_host_frame().0, "x", "all are full: the least loaded one");
}
