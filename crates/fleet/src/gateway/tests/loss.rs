//! Lost hosts, lost connections and moved sessions: no frame is delivered twice, no request waits
//! forever.

use super::*;
use jackfield_protocol::Frame;

/// The methods that were sent on this connection.
fn methods(fixture: &GatewayFixture, host_conn: HostConnectionId) -> Vec<String> {
    let frames = fixture.host_frames.iter().filter(|it| it.0 == host_conn);
    frames.map(|it| it.1["method"].as_str().unwrap_or("").to_owned()).collect()
}

fn updates(fixture: &GatewayFixture) -> Vec<String> {
    let frames = fixture.client_frames.iter().filter(|it| it.1["method"] == "session/update");
    frames.map(|it| it.1["params"]["update"].as_str().unwrap().to_owned()).collect()
}

fn prompt(session: &str) -> Value {
    request(&json!("p"), "session/prompt", &json!({ "sessionId": session }))
}

#[test]
fn lost_connection_is_replaced_without_gaps_or_duplicates() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    let (_, _, first) = fixture.relay(A, &prompt("s-1"));
    for (seq, text) in [(1, "a"), (2, "b"), (4, "c"), (4, "d")] {
        fixture.send_from_host(old, &update("s-1", seq, text));
    }
    fixture.lose_connection(old);
    assert_eq!(fixture.located, [("s-1".to_owned(), Some("x".into()))]);
    fixture.answer_locate("s-1", "y");
    let (_, new, resent) = fixture.last_host_frame();
    assert_eq!(methods(&fixture, new), ["_jackfield/attach", "session/prompt"]);
    let attach = fixture.host_frames[fixture.host_frames.len() - 2].1.clone();
    assert_eq!(attach["params"]["after"], 3, "the fourth event may have had more frames");
    assert_eq!(resent["params"], first["params"], "under the same key");
    assert!(first["params"]["_meta"]["jackfield"]["key"].is_string());
    for (seq, text) in [(4, "c"), (4, "d"), (4, "e"), (5, "f")] {
        fixture.send_from_host(new, &update("s-1", seq, text));
    }
    assert_eq!(updates(&fixture), ["a", "b", "c", "d", "e", "f"]);
    fixture.respond(new, &json!({ "id": attach["id"] }), &json!({ "head": 5 }));
    fixture.respond(new, &resent, &json!({ "stopReason": "end_turn" }));
    assert_eq!(
        fixture.last_client_frame(),
        (A, json!({ "id": "p", "result": { "stopReason": "end_turn" } }))
    );
    assert_eq!(fixture.client_frames.len(), 1 + 6 + 1);
}

#[test]
fn fork_that_may_have_been_executed_is_not_repeated() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    let fork = request(&json!("f"), "session/fork", &json!({ "sessionId": "s-1", "cwd": "/" }));
    fixture.relay(A, &fork);
    fixture.lose_connection(old);
    assert_eq!(fixture.error_code(), "host_lost");
    fixture.answer_locate("s-1", "y");
    let (_, new, _) = fixture.last_host_frame();
    assert_eq!(methods(&fixture, new), ["_jackfield/attach"]);

    // A fork that was refused because the host does not have the session was not executed.
    let (_, _, relayed) = fixture.relay(A, &fork);
    let fault = Fault::SessionNotFound { session: "s-1".into() };
    let refused = Frame::error_for(&relayed["id"].to_string(), &fault);
    fixture.feed(GatewayInput::HostSentFrame { host_conn: new, frame: refused });
    fixture.advance_time(1_000);
    fixture.answer_locate("s-1", "x");
    let (_, newest, _) = fixture.last_host_frame();
    assert_eq!(methods(&fixture, newest).last().unwrap(), "session/fork");
}

#[test]
fn moved_session_is_followed_and_late_frames_are_discarded() {
    let mut fixture = GatewayFixture::new();
    let x = fixture.open_session(A, "s-1");
    let (_, _, first) = fixture.relay(A, &prompt("s-1"));
    fixture.send_from_host(
        x,
        &json!({ "method": "_jackfield/moved", "params": { "sessionId": "s-1" } }),
    );
    assert_eq!(fixture.located, [("s-1".to_owned(), Some("x".into()))]);
    let before = fixture.client_frames.len();
    // The prompt was in flight when the session moved.
    let fault = Fault::SessionNotFound { session: "s-1".into() };
    let late = Frame::error_for(&first["id"].to_string(), &fault);
    fixture.feed(GatewayInput::HostSentFrame { host_conn: x, frame: late });
    fixture.send_from_host(x, &update("s-1", 9, "late"));
    assert_eq!(fixture.client_frames.len(), before);
    // The session returns to the same host, on the same connection.
    fixture.answer_locate("s-1", "x");
    let (_, host_conn, resent) = fixture.last_host_frame();
    assert_eq!(host_conn, x);
    assert_ne!(resent["id"], first["id"]);
    fixture.respond(x, &resent, &json!({}));
    assert_eq!(fixture.last_client_frame().1, json!({ "id": "p", "result": {} }));
}

#[test]
fn requests_of_a_lost_host_are_cancelled() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    let ask = request(&json!(3), "session/request_permission", &json!({ "sessionId": "s-1" }));
    fixture.send_from_host(old, &ask);
    let forwarded_id = fixture.last_client_frame().1["id"].clone();
    fixture.lose_connection(old);
    let (_, notice) = fixture.last_client_frame();
    assert_eq!(notice["method"], "$/cancel_request");
    assert_eq!(notice["params"]["requestId"], forwarded_id);
    fixture.answer_locate("s-1", "y");
    let (_, new, _) = fixture.last_host_frame();
    fixture.send_from_host(new, &ask);
    assert_ne!(fixture.last_client_frame().1["id"], forwarded_id, "asked again, under another id");
}

#[test]
fn observer_is_attached_again_with_the_same_options() {
    let mut fixture = GatewayFixture::new();
    let params = json!({ "sessionId": "s-1", "after": 0, "facts": true });
    fixture.send_from_client(A, &request(&json!(1), "_jackfield/attach", &params));
    fixture.answer_locate("s-1", "x");
    let (_, old, relayed) = fixture.last_host_frame();
    fixture.respond(old, &relayed, &json!({ "sessionId": "s-1", "head": 12 }));
    fixture.lose_connection(old);
    fixture.answer_locate("s-1", "y");
    let (_, _, resent) = fixture.last_host_frame();
    assert_eq!(
        resent["params"],
        json!({ "sessionId": "s-1", "after": 12, "facts": true, "observe": false })
    );
}

#[test]
fn request_without_an_owner_fails_and_the_client_stays_connected() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    fixture.relay(A, &prompt("s-1"));
    fixture.lose_connection(old);
    for _ in 0..200 {
        if fixture.located.len() > 1 {
            fixture.located.pop();
        }
        let owner = Err(Fault::NoHost { why: "none is free".into() });
        fixture.feed(GatewayInput::SessionLocated { session: "s-1".into(), owner });
        fixture.advance_time(250);
    }
    assert_eq!(
        (fixture.error_code(), fixture.last_client_frame().1["id"].clone()),
        ("host_lost".into(), json!("p"))
    );
    assert!(
        !fixture.other_outputs.iter().any(|it| matches!(it, GatewayOutput::CloseClient { .. }))
    );
    // The session gets an owner after all, and the client is attached again.
    fixture.answer_locate("s-1", "y");
    assert_eq!(fixture.last_host_frame().2["method"], "_jackfield/attach");
}

#[test]
fn owner_that_never_responds_leads_to_an_error() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    for _ in 0..150 {
        fixture.answer_locate("s-1", "dead");
        if let Some(host_conn) = fixture.host_conns.keys().next_back().copied() {
            fixture.lose_connection(host_conn);
        }
        fixture.advance_time(250);
    }
    assert_eq!(fixture.error_code(), "host_lost");
    assert_eq!(fixture.client_frames.len(), 1);
}

#[test]
fn missing_session_is_not_searched_again() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    let owner = Err(Fault::SessionNotFound { session: "s-1".into() });
    fixture.feed(GatewayInput::SessionLocated { session: "s-1".into(), owner });
    assert_eq!(fixture.error_code(), "session_not_found");
    assert_eq!(fixture.gateway.gauges().searches, 0);
    assert_eq!(fixture.gateway.gauges().retained_bytes, 0);
}

#[test]
fn session_not_found_is_final_the_second_time() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    let not_found = |fixture: &mut GatewayFixture| {
        let (_, host_conn, relayed) = fixture.last_host_frame();
        let fault = Fault::SessionNotFound { session: "s-1".into() };
        let frame = Frame::error_for(&relayed["id"].to_string(), &fault);
        fixture.feed(GatewayInput::HostSentFrame { host_conn, frame });
    };
    fixture.answer_locate("s-1", "x");
    not_found(&mut fixture);
    assert!(fixture.client_frames.is_empty(), "it may have moved a moment ago");
    fixture.advance_time(250);
    fixture.answer_locate("s-1", "y");
    not_found(&mut fixture);
    assert_eq!(fixture.error_code(), "session_not_found");
}

#[test]
fn request_that_a_stopping_host_refuses_goes_to_the_next_host() {
    let mut fixture = GatewayFixture::new();
    let x = fixture.open_session(A, "s-1");
    let stopping = |fixture: &mut GatewayFixture| {
        let (_, host_conn, relayed) = fixture.last_host_frame();
        let frame = Frame::error_for(&relayed["id"].to_string(), &Fault::Stopping);
        fixture.feed(GatewayInput::HostSentFrame { host_conn, frame });
    };
    fixture.relay(A, &prompt("s-1"));
    stopping(&mut fixture);
    assert_eq!(fixture.client_frames.len(), 1, "only the answer to `session/new`");
    // Frames are delivered until the host ends.
    fixture.send_from_host(x, &update("s-1", 1, "bye"));
    assert_eq!(updates(&fixture), ["bye"]);
    fixture.lose_connection(x);
    fixture.answer_locate("s-1", "y");
    assert_eq!(fixture.last_host_frame().2["method"], "session/prompt");
    fixture.send_from_client(A, &request(&json!(2), "session/new", &json!({})));
    let (first, _, _) = fixture.last_host_frame();
    stopping(&mut fixture);
    fixture.advance_time(250);
    assert_ne!(fixture.last_host_frame().0, first);
}

#[test]
fn new_session_is_placed_again_when_its_host_is_lost() {
    let mut fixture = GatewayFixture::new();
    let (host, host_conn, _) = fixture.relay(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(&*host, "x");
    fixture.lose_connection(host_conn);
    fixture.advance_time(250);
    let (host, host_conn, relayed) = fixture.last_host_frame();
    assert_eq!(&*host, "y", "a suspect host is chosen last");
    fixture.respond(host_conn, &relayed, &json!({ "sessionId": "s-1" }));
    assert_eq!(fixture.last_client_frame().1["result"]["sessionId"], "s-1");
}

#[test]
fn request_without_a_session_is_not_repeated() {
    let mut fixture = GatewayFixture::new();
    let (_, host_conn, _) = fixture.relay(A, &request(&json!(1), "authenticate", &json!({})));
    fixture.lose_connection(host_conn);
    assert_eq!(fixture.error_code(), "host_lost");
}

#[test]
fn lost_initialize_is_answered_by_the_next_default_host() {
    let mut fixture = GatewayFixture::new();
    fixture.send_from_client(A, &request(&json!("i"), "initialize", &json!({})));
    let (_, old, _) = fixture.last_host_frame();
    fixture.lose_connection(old);
    fixture.advance_time(250);
    let (host, new, relayed) = fixture.last_host_frame();
    assert_eq!(&*host, "y");
    fixture.respond(new, &relayed, &json!({ "who": "y" }));
    assert_eq!(fixture.client_frames, [(A, json!({ "id": "i", "result": { "who": "y" } }))]);
}

#[test]
fn without_any_host_a_request_waits_for_the_first() {
    let mut fixture = GatewayFixture::new();
    fixture.feed(GatewayInput::HostsChanged(vec![]));
    fixture.send_from_client(A, &request(&json!(1), "session/new", &json!({})));
    fixture.advance_time(29_000);
    assert!(fixture.client_frames.is_empty() && fixture.host_frames.is_empty());
    fixture.feed(GatewayInput::HostsChanged(vec![host("z", 0)]));
    assert_eq!(&*fixture.last_host_frame().0, "z");
    fixture.feed(GatewayInput::HostsChanged(vec![]));
    fixture.send_from_client(B, &request(&json!(1), "session/new", &json!({})));
    fixture.advance_time(30_000);
    let frames_of_b: Vec<_> = fixture.client_frames.iter().filter(|it| it.0 == B).collect();
    assert_eq!(error_code(&frames_of_b[0].1), "no_host");
}

#[test]
fn host_that_left_the_list_or_restarted_is_lost() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    let mut restarted = host("x", 0);
    restarted.incarnation = 2;
    fixture.feed(GatewayInput::HostsChanged(vec![restarted.clone(), host("y", 5)]));
    assert_eq!(fixture.located.len(), 1);
    assert!(fixture.other_outputs.iter().any(
        |it| matches!(it, GatewayOutput::CloseHostConnection { host_conn } if *host_conn == old)
    ));
    fixture.answer_locate("s-1", "x");
    let (_, new, _) = fixture.last_host_frame();
    assert_ne!(new, old);
    fixture.feed(GatewayInput::HostsChanged(vec![host("y", 5)]));
    assert_eq!(fixture.gateway.gauges().host_conns, 0);
    // Not at once: the host has sent nothing that would prove that it was alive.
    fixture.advance_time(250);
    assert_eq!(fixture.located.len(), 2);
}

#[test]
fn interrupted_load_is_replayed_to_its_end() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    fixture.answer_locate("s-1", "x");
    let (_, old, _) = fixture.last_host_frame();
    for (seq, text) in [(1, "a"), (2, "b")] {
        fixture.send_from_host(old, &update("s-1", seq, text));
    }
    fixture.lose_connection(old);
    fixture.answer_locate("s-1", "y");
    let (_, new, load) = fixture.last_host_frame();
    assert_eq!(methods(&fixture, new), ["session/load"], "it is replayed once");
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        fixture.send_from_host(new, &update("s-1", seq, text));
    }
    assert_eq!(updates(&fixture), ["a", "b", "c"]);
    fixture.respond(new, &load, &json!({ "_meta": { "jackfield": { "seq": 3 } } }));
    assert_eq!(fixture.last_client_frame().1["id"], 1);
}

#[test]
fn cancelled_prompt_is_cancelled_where_it_is_sent_again() {
    let mut fixture = GatewayFixture::new();
    let old = fixture.open_session(A, "s-1");
    fixture.relay(A, &prompt("s-1"));
    fixture.send_from_client(
        A,
        &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }),
    );
    fixture.lose_connection(old);
    fixture.answer_locate("s-1", "y");
    let [.., (_, sent), (_, cancel)] = &fixture.host_frames[..] else { unreachable!() };
    assert_eq!(sent["method"], "session/prompt");
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], sent["id"]);
}

#[test]
fn connection_to_an_unlisted_host_is_reopened_when_it_is_listed() {
    let mut fixture = GatewayFixture::new();
    fixture
        .send_from_client(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    fixture.answer_locate("s-1", "z");
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0)]));
    assert_eq!(fixture.gateway.gauges().host_conns, 1, "the list may be late");
    fixture.feed(GatewayInput::HostsChanged(vec![host("x", 0), host("z", 0)]));
    fixture.advance_time(250);
    fixture.answer_locate("s-1", "z");
    assert_eq!(fixture.last_host_frame().2["method"], "session/load");
    assert_eq!(fixture.host_conns.len(), 2);
}
