//! Which frames go to which host or client, under which id.

use super::*;

#[test]
fn handshake_is_sent_on_every_host_connection_and_answered_once() {
    let mut fixture = GatewayFixture::new();
    let connect = json!({ "agent": { "name": "mine", "argv": ["mine"] } });
    fixture.send_from_client(A, &request(&json!("c"), "_jackfield/connect", &connect));
    let (_, default_conn, relayed) = fixture.last_host_frame();
    fixture.respond(default_conn, &relayed, &json!({}));
    assert_eq!(fixture.last_client_frame(), (A, json!({ "id": "c", "result": {} })));
    fixture
        .send_from_client(A, &request(&json!("i"), "initialize", &json!({ "protocolVersion": 1 })));
    let (_, _, relayed) = fixture.last_host_frame();
    fixture.respond(default_conn, &relayed, &json!({ "who": "x" }));
    assert_eq!(fixture.last_client_frame(), (A, json!({ "id": "i", "result": { "who": "x" } })));
    let before = fixture.client_frames.len();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-9" })));
    fixture.answer_locate("s-9", "y");
    let frames_to_y: Vec<(HostConnectionId, Value)> =
        fixture.host_frames.iter().filter(|it| it.0 != default_conn).cloned().collect();
    let methods: Vec<_> = frames_to_y.iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    // In this order the second host does not start an agent for the client.
    assert_eq!(methods, ["initialize", "_jackfield/connect", "session/load"]);
    for (host_conn, relayed) in &frames_to_y[..2] {
        fixture.respond(*host_conn, relayed, &json!({ "who": "y" }));
    }
    assert_eq!(fixture.client_frames.len(), before, "these responses are discarded");
}

#[test]
fn frames_wait_in_order_for_the_owner_of_their_session() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    fixture.send_from_client(
        A,
        &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }),
    );
    fixture.send_from_client(
        A,
        &request(&json!(2), "session/set_mode", &json!({ "sessionId": "s-1" })),
    );
    fixture
        .send_from_client(B, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    assert_eq!(fixture.located, [("s-1".to_owned(), None)], "one search for all clients");
    fixture.answer_locate("s-1", "y");
    let host_conns: BTreeSet<HostConnectionId> =
        fixture.host_frames.iter().map(|it| it.0).collect();
    assert_eq!(host_conns.len(), 2, "each client has its own host connection");
    let methods_of_a: Vec<_> =
        fixture.host_frames[..3].iter().map(|it| it.1["method"].as_str().unwrap()).collect();
    assert_eq!(methods_of_a, ["session/load", "session/cancel", "session/set_mode"]);
}

#[test]
fn duplicate_request_id_is_refused_and_the_first_is_answered() {
    let mut fixture = GatewayFixture::new();
    let (_, host_conn, relayed) = fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    fixture.send_from_client(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(fixture.error_code(), "invalid_request");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.last_client_frame().1["result"]["sessionId"], "s-1");
}

#[test]
fn owner_of_an_unused_session_is_searched_again() {
    let mut fixture = GatewayFixture::new();
    let queue = request(&json!(1), "_jackfield/queue", &json!({ "sessionId": "s-1" }));
    for host in ["x", "y"] {
        fixture.send_from_client(A, &queue);
        fixture.answer_locate("s-1", host);
        let (located_host, host_conn, relayed) = fixture.last_host_frame();
        assert_eq!(&*located_host, host);
        fixture.respond(host_conn, &relayed, &json!({}));
    }
    assert_eq!(fixture.gateway.gauges().sessions, 0);
}

#[test]
fn equal_request_ids_of_two_hosts_do_not_collide() {
    let mut fixture = GatewayFixture::new();
    let x = fixture.open_session(A, "s-1");
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-2" })));
    fixture.answer_locate("s-2", "y");
    let (_, y, _) = fixture.last_host_frame();
    for (host_conn, session) in [(x, "s-1"), (y, "s-2")] {
        let ask =
            request(&json!(7), "session/request_permission", &json!({ "sessionId": session }));
        fixture.send_from_host(host_conn, &ask);
    }
    let [first, second] = &fixture.client_frames[fixture.client_frames.len() - 2..] else {
        unreachable!()
    };
    let (first, second) = (first.1["id"].clone(), second.1["id"].clone());
    assert_ne!(first, second);
    fixture.send_from_client(A, &json!({ "id": second, "result": "of y" }));
    assert_eq!(fixture.host_frames.last(), Some(&(y, json!({ "id": 7, "result": "of y" }))));
    fixture
        .send_from_host(x, &json!({ "method": "$/cancel_request", "params": { "requestId": 7 } }));
    assert_eq!(fixture.last_client_frame().1["params"]["requestId"], first);
    let before = fixture.host_frames.len();
    fixture.send_from_client(A, &json!({ "id": first, "result": "too late" }));
    assert_eq!(fixture.host_frames.len(), before);
}

#[test]
fn cancellation_uses_the_id_that_was_sent_to_the_host() {
    let mut fixture = GatewayFixture::new();
    fixture.open_session(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, host_conn, relayed) = fixture.relay(A, &prompt);
    fixture.send_from_client(
        A,
        &json!({ "method": "$/cancel_request", "params": { "requestId": "p" } }),
    );
    let (by, notice) = fixture.host_frames.last().unwrap();
    assert_eq!((*by, &notice["params"]["requestId"]), (host_conn, &relayed["id"]));
    // A request that waits for an owner is answered at once.
    fixture
        .send_from_client(A, &request(&json!("w"), "session/load", &json!({ "sessionId": "s-2" })));
    fixture.send_from_client(
        A,
        &json!({ "method": "$/cancel_request", "params": { "requestId": "w" } }),
    );
    assert_eq!(fixture.error_code(), "cancelled");
    fixture.answer_locate("s-2", "x");
    assert_eq!(fixture.host_frames.last().unwrap().1["method"], "$/cancel_request");
}

#[test]
fn host_methods_are_refused() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(A, &request(&json!(1), "_jackfield/stop", &json!({})));
    assert_eq!(fixture.error_code(), "not_served");
    assert!(fixture.host_frames.is_empty());
}

#[test]
fn disconnecting_a_client_closes_its_host_connections() {
    let mut fixture = GatewayFixture::new();
    let host_conn = fixture.open_session(A, "s-1");
    fixture.feed(GatewayInput::ClientGone { conn: A });
    let closed = |it: &GatewayOutput| matches!(it, GatewayOutput::CloseHostConnection { host_conn: it } if *it == host_conn);
    assert!(fixture.other_outputs.iter().any(closed));
    fixture.send_from_host(host_conn, &update("s-1", 1, "hello"));
    assert_eq!(fixture.gateway.gauges().host_conns, 0);
}

#[test]
fn half_closed_client_gets_responses_but_answers_no_requests() {
    let mut fixture = GatewayFixture::new();
    let host_conn = fixture.open_session(A, "s-1");
    let prompt = request(&json!("p"), "session/prompt", &json!({ "sessionId": "s-1" }));
    let (_, _, relayed) = fixture.relay(A, &prompt);
    fixture.feed(GatewayInput::ClientFinished { conn: A });
    let read = request(&json!(1), "fs/read_text_file", &json!({ "sessionId": "s-1" }));
    fixture.send_from_host(host_conn, &read);
    assert_eq!(error_code(&fixture.host_frames.last().unwrap().1), "no_client");
    fixture.respond(host_conn, &relayed, &json!({ "stopReason": "end_turn" }));
    assert_eq!(fixture.last_client_frame().1["id"], "p");
    assert!(
        fixture.other_outputs.iter().any(|it| matches!(it, GatewayOutput::CloseClient { conn: A }))
    );
}

#[test]
fn stop_answers_all_requests_and_closes_all_clients() {
    let mut fixture = GatewayFixture::new();
    fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    fixture.feed(GatewayInput::Stop);
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (A, "stopping".to_owned()));
    for conn in [A, B] {
        fixture.feed(GatewayInput::ClientGone { conn });
    }
    assert!(matches!(fixture.other_outputs.last(), Some(GatewayOutput::Stopped)));
}
