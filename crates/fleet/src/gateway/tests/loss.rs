//! Hosts are lost, host connections end, sessions move: nobody hears anything twice, nobody waits for ever.

use super::*;

/// What was said by this host connection, by method.
fn methods(scene: &Scene, host_conn: HostConnectionId) -> Vec<String> {
    let of_it = scene.said.iter().filter(|it| it.0 == host_conn);
    of_it.map(|it| it.1["method"].as_str().unwrap_or("").to_owned()).collect()
}

fn heard(scene: &Scene) -> Vec<String> {
    let updates = scene.told.iter().filter(|it| it.1["method"] == "session/update");
    updates.map(|it| it.1["params"]["update"].as_str().unwrap().to_owned()).collect()
}

fn prompt(session: &str) -> Value {
    request(&json!("p"), "session/prompt", &json!({ "sessionId": session }))
}

#[test]
fn a_lost_host_conn_is_replaced_and_the_client_hears_on() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    let (_, _, first) = scene.ask(A, &prompt("s-1"));
    for (seq, text) in [(1, "a"), (2, "b"), (4, "c"), (4, "d")] {
        scene.host_says(old, &update("s-1", seq, text));
    }
    scene.lose(old);
    assert_eq!(scene.located, [("s-1".to_owned(), Some("x".into()))]);
    scene.locate("s-1", "y");
    let (_, new, again) = scene.last_said();
    assert_eq!(methods(&scene, new), ["_jackfield/attach", "session/prompt"]);
    let attach = scene.said[scene.said.len() - 2].1.clone();
    assert_eq!(attach["params"]["after"], 3, "the fourth event may have had more frames");
    assert_eq!(again["params"], first["params"], "under the same key");
    assert!(first["params"]["_meta"]["jackfield"]["key"].is_string());
    for (seq, text) in [(4, "c"), (4, "d"), (4, "e"), (5, "f")] {
        scene.host_says(new, &update("s-1", seq, text));
    }
    assert_eq!(heard(&scene), ["a", "b", "c", "d", "e", "f"]);
    scene.answer(new, &json!({ "id": attach["id"] }), &json!({ "head": 5 }));
    scene.answer(new, &again, &json!({ "stopReason": "end_turn" }));
    assert_eq!(scene.last(), (A, json!({ "id": "p", "result": { "stopReason": "end_turn" } })));
    assert_eq!(scene.told.len(), 1 + 6 + 1);
}

#[test]
fn a_fork_that_may_have_been_made_is_not_made_again() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    let fork = request(&json!("f"), "session/fork", &json!({ "sessionId": "s-1", "cwd": "/" }));
    scene.ask(A, &fork);
    scene.lose(old);
    assert_eq!(scene.code(), "host_lost");
    scene.locate("s-1", "y");
    let (_, new, _) = scene.last_said();
    assert_eq!(methods(&scene, new), ["_jackfield/attach"]);

    // One that was refused by a host that has no such session was not made.
    let (_, _, asked) = scene.ask(A, &fork);
    let fault = Fault::SessionNotFound { session: "s-1".into() };
    let refused = Frame::error_for(&asked["id"].to_string(), &fault);
    scene.feed(GatewayInput::HostSentFrame { host_conn: new, frame: refused });
    scene.pass(1_000);
    scene.locate("s-1", "x");
    let (_, newest, _) = scene.last_said();
    assert_eq!(methods(&scene, newest).last().unwrap(), "session/fork");
}

#[test]
fn a_session_that_moves_is_followed_and_late_words_of_its_old_host_are_nobodys() {
    let mut scene = Scene::new();
    let x = scene.open(A, "s-1");
    let (_, _, first) = scene.ask(A, &prompt("s-1"));
    scene.host_says(x, &json!({ "method": "_jackfield/moved", "params": { "sessionId": "s-1" } }));
    assert_eq!(scene.located, [("s-1".to_owned(), Some("x".into()))]);
    let told = scene.told.len();
    // The prompt was on its way when the session left.
    let fault = Fault::SessionNotFound { session: "s-1".into() };
    let late = Frame::error_for(&first["id"].to_string(), &fault);
    scene.feed(GatewayInput::HostSentFrame { host_conn: x, frame: late });
    scene.host_says(x, &update("s-1", 9, "late"));
    assert_eq!(scene.told.len(), told);
    // It comes back to the same host, by the same host connection.
    scene.locate("s-1", "x");
    let (_, host_conn, again) = scene.last_said();
    assert_eq!(host_conn, x);
    assert_ne!(again["id"], first["id"]);
    scene.answer(x, &again, &json!({}));
    assert_eq!(scene.last().1, json!({ "id": "p", "result": {} }));
}

#[test]
fn what_a_lost_host_asked_is_taken_back() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    let ask = request(&json!(3), "session/request_permission", &json!({ "sessionId": "s-1" }));
    scene.host_says(old, &ask);
    let ours = scene.last().1["id"].clone();
    scene.lose(old);
    let (_, notice) = scene.last();
    assert_eq!(notice["method"], "$/cancel_request");
    assert_eq!(notice["params"]["requestId"], ours);
    scene.locate("s-1", "y");
    let (_, new, _) = scene.last_said();
    scene.host_says(new, &ask);
    assert_ne!(scene.last().1["id"], ours, "asked again, under another id");
}

#[test]
fn who_only_looked_on_still_does() {
    let mut scene = Scene::new();
    let params = json!({ "sessionId": "s-1", "after": 0, "facts": true });
    scene.say(A, &request(&json!(1), "_jackfield/attach", &params));
    scene.locate("s-1", "x");
    let (_, old, asked) = scene.last_said();
    scene.answer(old, &asked, &json!({ "sessionId": "s-1", "head": 12 }));
    scene.lose(old);
    scene.locate("s-1", "y");
    let (_, _, again) = scene.last_said();
    assert_eq!(
        again["params"],
        json!({ "sessionId": "s-1", "after": 12, "facts": true, "observe": false })
    );
}

#[test]
fn what_waits_for_an_owner_too_long_is_told_so_and_the_client_stays() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    scene.ask(A, &prompt("s-1"));
    scene.lose(old);
    for _ in 0..200 {
        if scene.located.len() > 1 {
            scene.located.pop();
        }
        let owner = Err(Fault::NoHost { why: "none is free".into() });
        scene.feed(GatewayInput::Located { session: "s-1".into(), owner });
        scene.pass(250);
    }
    assert_eq!((scene.code(), scene.last().1["id"].clone()), ("host_lost".into(), json!("p")));
    assert!(!scene.others.iter().any(|it| matches!(it, GatewayOutput::CloseClient { .. })));
    // Then it comes back after all, and the client hears on.
    scene.locate("s-1", "y");
    assert_eq!(scene.last_said().2["method"], "_jackfield/attach");
}

#[test]
fn an_owner_that_is_named_again_and_again_and_never_answers_is_no_owner() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    for _ in 0..150 {
        scene.locate("s-1", "dead");
        if let Some(host_conn) = scene.host_conns.keys().next_back().copied() {
            scene.lose(host_conn);
        }
        scene.pass(250);
    }
    assert_eq!(scene.code(), "host_lost");
    assert_eq!(scene.told.len(), 1);
}

#[test]
fn a_session_that_does_not_exist_is_not_looked_for_again() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    let owner = Err(Fault::SessionNotFound { session: "s-1".into() });
    scene.feed(GatewayInput::Located { session: "s-1".into(), owner });
    assert_eq!(scene.code(), "session_not_found");
    assert_eq!(scene.gateway.gauges().searches, 0);
    assert_eq!(scene.gateway.gauges().kept_bytes, 0);
}

#[test]
fn a_host_that_does_not_know_the_session_is_believed_the_second_time() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    let not_found = |scene: &mut Scene| {
        let (_, host_conn, asked) = scene.last_said();
        let fault = Fault::SessionNotFound { session: "s-1".into() };
        let frame = Frame::error_for(&asked["id"].to_string(), &fault);
        scene.feed(GatewayInput::HostSentFrame { host_conn, frame });
    };
    scene.locate("s-1", "x");
    not_found(&mut scene);
    assert!(scene.told.is_empty(), "it may have moved a moment ago");
    scene.pass(250);
    scene.locate("s-1", "y");
    not_found(&mut scene);
    assert_eq!(scene.code(), "session_not_found");
}

#[test]
fn what_a_host_that_is_stopping_will_not_do_is_asked_of_the_next() {
    let mut scene = Scene::new();
    let x = scene.open(A, "s-1");
    let stopping = |scene: &mut Scene| {
        let (_, host_conn, asked) = scene.last_said();
        let frame = Frame::error_for(&asked["id"].to_string(), &Fault::Stopping);
        scene.feed(GatewayInput::HostSentFrame { host_conn, frame });
    };
    scene.ask(A, &prompt("s-1"));
    stopping(&mut scene);
    assert_eq!(scene.told.len(), 1, "only the answer to `session/new`");
    // What it says until it ends is heard.
    scene.host_says(x, &update("s-1", 1, "bye"));
    assert_eq!(heard(&scene), ["bye"]);
    scene.lose(x);
    scene.locate("s-1", "y");
    assert_eq!(scene.last_said().2["method"], "session/prompt");
    scene.say(A, &request(&json!(2), "session/new", &json!({})));
    let (first, _, _) = scene.last_said();
    stopping(&mut scene);
    scene.pass(250);
    assert_ne!(scene.last_said().0, first);
}

#[test]
fn a_session_that_is_being_opened_is_opened_elsewhere() {
    let mut scene = Scene::new();
    let (host, host_conn, _) = scene.ask(A, &request(&json!(1), "session/new", &json!({})));
    assert_eq!(&*host, "x");
    scene.lose(host_conn);
    scene.pass(250);
    let (host, host_conn, asked) = scene.last_said();
    assert_eq!(&*host, "y", "a host that was just lost comes last");
    scene.answer(host_conn, &asked, &json!({ "sessionId": "s-1" }));
    assert_eq!(scene.last().1["result"]["sessionId"], "s-1");
}

#[test]
fn what_is_about_no_session_is_not_asked_twice() {
    let mut scene = Scene::new();
    let (_, host_conn, _) = scene.ask(A, &request(&json!(1), "authenticate", &json!({})));
    scene.lose(host_conn);
    assert_eq!(scene.code(), "host_lost");
}

#[test]
fn an_initialize_that_was_lost_is_answered_by_the_next_home() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!("i"), "initialize", &json!({})));
    let (_, old, _) = scene.last_said();
    scene.lose(old);
    scene.pass(250);
    let (host, new, asked) = scene.last_said();
    assert_eq!(&*host, "y");
    scene.answer(new, &asked, &json!({ "who": "y" }));
    assert_eq!(scene.told, [(A, json!({ "id": "i", "result": { "who": "y" } }))]);
}

#[test]
fn without_any_host_a_request_waits_for_the_first() {
    let mut scene = Scene::new();
    scene.feed(GatewayInput::Hosts(vec![]));
    scene.say(A, &request(&json!(1), "session/new", &json!({})));
    scene.pass(29_000);
    assert!(scene.told.is_empty() && scene.said.is_empty());
    scene.feed(GatewayInput::Hosts(vec![host("z", 0)]));
    assert_eq!(&*scene.last_said().0, "z");
    scene.feed(GatewayInput::Hosts(vec![]));
    scene.say(B, &request(&json!(1), "session/new", &json!({})));
    scene.pass(30_000);
    let of_b: Vec<_> = scene.told.iter().filter(|it| it.0 == B).collect();
    assert_eq!(code(&of_b[0].1), "no_host");
}

#[test]
fn a_host_that_left_the_list_or_began_anew_is_lost() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    let mut again = host("x", 0);
    again.incarnation = 2;
    scene.feed(GatewayInput::Hosts(vec![again.clone(), host("y", 5)]));
    assert_eq!(scene.located.len(), 1);
    assert!(scene.others.iter().any(
        |it| matches!(it, GatewayOutput::CloseHostConnection { host_conn } if *host_conn == old)
    ));
    scene.locate("s-1", "x");
    let (_, new, _) = scene.last_said();
    assert_ne!(new, old);
    scene.feed(GatewayInput::Hosts(vec![host("y", 5)]));
    assert_eq!(scene.gateway.gauges().host_conns, 0);
    // Not at once: the host has said nothing yet that would show that it was ever there.
    scene.pass(250);
    assert_eq!(scene.located.len(), 2);
}

#[test]
fn a_load_that_was_half_told_is_told_to_its_end() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    scene.locate("s-1", "x");
    let (_, old, _) = scene.last_said();
    for (seq, text) in [(1, "a"), (2, "b")] {
        scene.host_says(old, &update("s-1", seq, text));
    }
    scene.lose(old);
    scene.locate("s-1", "y");
    let (_, new, load) = scene.last_said();
    assert_eq!(methods(&scene, new), ["session/load"], "it is told once, not twice");
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.host_says(new, &update("s-1", seq, text));
    }
    assert_eq!(heard(&scene), ["a", "b", "c"]);
    scene.answer(new, &load, &json!({ "_meta": { "jackfield": { "seq": 3 } } }));
    assert_eq!(scene.last().1["id"], 1);
}

#[test]
fn a_prompt_that_was_cancelled_is_cancelled_where_it_is_sent_again() {
    let mut scene = Scene::new();
    let old = scene.open(A, "s-1");
    scene.ask(A, &prompt("s-1"));
    scene.say(A, &json!({ "method": "session/cancel", "params": { "sessionId": "s-1" } }));
    scene.lose(old);
    scene.locate("s-1", "y");
    let [.., (_, sent), (_, cancel)] = &scene.said[..] else { unreachable!() };
    assert_eq!(sent["method"], "session/prompt");
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], sent["id"]);
}

#[test]
fn a_host_conn_to_a_host_that_is_not_listed_yet_is_opened_anew_when_it_is() {
    let mut scene = Scene::new();
    scene.say(A, &request(&json!(1), "session/load", &json!({ "sessionId": "s-1" })));
    scene.locate("s-1", "z");
    scene.feed(GatewayInput::Hosts(vec![host("x", 0)]));
    assert_eq!(scene.gateway.gauges().host_conns, 1, "the list may be late");
    scene.feed(GatewayInput::Hosts(vec![host("x", 0), host("z", 0)]));
    scene.pass(250);
    scene.locate("s-1", "z");
    assert_eq!(scene.last_said().2["method"], "session/load");
    assert_eq!(scene.host_conns.len(), 2);
}
