//! The lifecycle of workers, limits, reload and stop.

use super::*;

#[test]
fn requests_to_a_dead_worker_fail_at_once_and_it_is_restarted_later() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, _) = fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    fixture.end_worker(worker, false);
    assert_eq!(
        (fixture.last_client_frame().0, fixture.error_code()),
        (A, "worker_gone".to_owned())
    );
    fixture.send_from_client(A, &request(&json!(2), "m", &json!({ "sessionId": "s" })));
    assert_eq!(fixture.error_code(), "no_worker");
    assert_eq!(fixture.bus.poll_timeout(), Some(Time(100)));
    (fixture.now, fixture.spawned) = (100, vec![]);
    fixture.feed(BusInput::Tick);
    let moved = fixture.relay(A, &request(&json!(3), "m", &json!({ "sessionId": "s" })));
    assert_eq!(moved.0, fixture.spawned[0]);
}

#[test]
fn sessions_end_with_their_worker_if_configured() {
    let mut fixture =
        BusFixture::new(vec![PoolConfig { on_death: WorkerDeathRule::End, ..pool("p", 2) }]);
    let prompt = request(&json!(1), "m", &json!({ "sessionId": "s" }));
    let (worker, _) = fixture.relay(A, &prompt);
    fixture.end_worker(worker, false);
    fixture.send_from_client(A, &prompt);
    assert_eq!(fixture.error_code(), "cannot_resume");
    // Loading the session again is the way out.
    fixture.relay(A, &request(&json!(2), "session/load", &json!({ "sessionId": "s" })));
    fixture.relay(A, &prompt);
}

#[test]
fn restarts_are_configurable_and_limited() {
    let count_restarts = |restart, clean| {
        let mut fixture = BusFixture::new(vec![PoolConfig { restart, ..pool("p", 1) }]);
        for _ in 0..20 {
            let Some(worker) = fixture.spawned.pop() else { break };
            fixture.end_worker(worker, clean);
            fixture.now = fixture.bus.poll_timeout().map_or(fixture.now, |at| at.0.min(50_000));
            fixture.feed(BusInput::Tick);
        }
        let is_gave_up =
            |it: &BusOutput| matches!(it, BusOutput::Note(BusNote::GaveUp { ends: 5, .. }));
        (fixture.bus.gauges().counters.restarts, fixture.other_outputs.iter().any(is_gave_up))
    };
    assert_eq!(count_restarts(RestartRule::Always, true), (5, true));
    assert_eq!(count_restarts(RestartRule::OnFailure, false), (5, true));
    assert_eq!(count_restarts(RestartRule::OnFailure, true), (0, false));
    assert_eq!(count_restarts(RestartRule::Never, false), (0, false));
}

#[test]
fn messages_above_a_limit_are_refused() {
    let limits =
        BusLimits { sessions_max: 2, pending_max: 3, clients_max: 2, ..BusLimits::default() };
    let mut fixture =
        BusFixture::with_config(BusConfig { pools: vec![pool("p", 1)], limits, launcher: None });
    for n in 0..2 {
        let (worker, relayed) =
            fixture.relay(A, &request(&json!(n), "m", &json!({ "sessionId": n.to_string() })));
        fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": 1 }));
    }
    fixture.send_from_client(A, &request(&json!(3), "m", &json!({ "sessionId": "third" })));
    assert_eq!(fixture.error_code(), "overloaded");
    (0..3).for_each(|n| _ = fixture.relay(B, &request(&json!(n), "m", &json!({}))));
    fixture.send_from_client(B, &request(&json!(4), "m", &json!({})));
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (B, "overloaded".to_owned()));
    fixture.feed(BusInput::ClientOpened { conn: ConnId(3) });
    assert_eq!(
        (fixture.last_client_frame().0, fixture.error_code()),
        (ConnId(3), "overloaded".to_owned())
    );
    // A session without clients makes room.
    fixture.feed(BusInput::ClientGone { conn: A });
    fixture.feed(BusInput::ClientOpened { conn: ConnId(4) });
    fixture.send_from_client(ConnId(4), &json!({ "method": "m", "sessionId": "third" }));
    assert_eq!(fixture.bus.gauges().sessions, 2);
}

#[test]
fn client_that_does_not_read_pauses_its_worker_and_is_closed_later() {
    let limits = BusLimits { outbox_bytes_max: 1_000, backpressure_ms: 50, ..BusLimits::default() };
    let mut fixture =
        BusFixture::with_config(BusConfig { pools: vec![pool("p", 1)], limits, launcher: None });
    let (worker, _) = fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    let update = json!({ "method": "u", "params": { "sessionId": "s", "pad": "x".repeat(400) } });
    (0..3).for_each(|_| fixture.send_from_worker(worker, &update));
    let is_pause = |it: &BusOutput| matches!(it, BusOutput::PauseWorker { .. });
    assert!(
        fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::PauseClient { conn: A }))
    );
    assert!(fixture.other_outputs.iter().any(is_pause));
    fixture.other_outputs.clear();
    let bytes = fixture.bus.clients.get_mut(A).unwrap().unread_bytes();
    fixture.feed(BusInput::ClientWrote { conn: A, bytes });
    assert!(matches!(
        fixture.other_outputs[..],
        [BusOutput::ResumeWorker { .. }, BusOutput::ResumeClient { .. }]
    ));
    (0..3).for_each(|_| fixture.send_from_worker(worker, &update));
    fixture.now = 50;
    fixture.feed(BusInput::Tick);
    assert!(
        fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::CloseClient { conn: A }))
    );
    assert!(matches!(
        fixture.other_outputs.iter().rfind(|it| !matches!(it, BusOutput::CloseClient { .. })),
        Some(BusOutput::ResumeWorker { .. })
    ));
}

#[test]
fn client_is_paused_while_its_worker_does_not_read() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let long = json!({ "method": "m", "params": { "pad": "x".repeat(UNSENT_BYTES_MAX) } });
    let (worker, _) = fixture.relay(A, &long);
    assert!(matches!(fixture.other_outputs[..], [BusOutput::PauseClient { conn: A }]));
    let bytes = long.to_string().len() + 1;
    fixture.feed(BusInput::WorkerWrote { worker, bytes });
    assert!(matches!(fixture.other_outputs[..], [_, BusOutput::ResumeClient { conn: A }]));
}

#[test]
fn half_closed_client_is_closed_after_its_last_response() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, relayed) = fixture.relay(A, &request(&json!(1), "m", &json!({})));
    fixture.feed(BusInput::ClientFinished { conn: A });
    assert!(fixture.other_outputs.is_empty());
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": 1 }));
    assert!(matches!(fixture.other_outputs[..], [BusOutput::CloseClient { conn: A }]));
}

#[test]
fn stop_waits_for_responses_refuses_requests_and_stops_workers() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, relayed) = fixture.relay(A, &request(&json!(1), "m", &json!({})));
    fixture.feed(BusInput::Stop);
    fixture.send_from_client(B, &request(&json!(1), "m", &json!({})));
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (B, "stopping".to_owned()));
    assert!(!fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": 1 }));
    assert!(
        fixture
            .other_outputs
            .iter()
            .any(|it| matches!(it, BusOutput::StopWorker { now: false, .. }))
    );
    fixture.end_worker(worker, true);
    assert!(matches!(fixture.other_outputs.last(), Some(BusOutput::Stopped)));
    assert_eq!(fixture.spawned.len(), 1);
}

#[test]
fn drain_is_limited_in_time() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    fixture.relay(A, &request(&json!(1), "m", &json!({})));
    fixture.feed(BusInput::Stop);
    fixture.now = 30_000;
    fixture.feed(BusInput::Tick);
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (A, "stopping".to_owned()));
    assert!(fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
}

#[test]
fn silent_worker_is_stopped_and_busy_worker_is_not() {
    let health = HealthCheck { method: "ping".into(), every_ms: 10, timeout_ms: 5 };
    let mut fixture = BusFixture::new(vec![PoolConfig { health: Some(health), ..pool("p", 1) }]);
    let worker = fixture.spawned[0];
    fixture.feed(BusInput::WorkerStarted { worker, pid: 1 });
    fixture.now = 10;
    fixture.feed(BusInput::Tick);
    assert_eq!(fixture.worker_frames.last().unwrap().1["method"], "ping");
    fixture.now = 12;
    fixture.send_from_worker(worker, &json!({ "method": "still busy" }));
    fixture.now = 15;
    fixture.feed(BusInput::Tick);
    assert!(!fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
    for now in [25, 30] {
        fixture.now = now;
        fixture.feed(BusInput::Tick);
    }
    assert!(
        fixture
            .other_outputs
            .iter()
            .any(|it| matches!(it, BusOutput::StopWorker { now: true, .. }))
    );
}

#[test]
fn reload_keeps_unchanged_workers_and_retires_the_others() {
    let mut fixture = BusFixture::new(vec![pool("p", 2), pool("q", 1)]);
    let in_pool = |id: &str, session: &str| json!({ "id": 1, "method": "m", "pool": id, "sessionId": session });
    let (unchanged, _) = fixture.relay(A, &in_pool("p", "s1"));
    let (moved, relayed) = fixture.relay(A, &in_pool("p", "s2"));
    assert_ne!(unchanged, moved);
    let (removed, _) = fixture.relay(B, &in_pool("q", "s3"));
    fixture.feed(BusInput::Reload {
        config: BusConfig { pools: vec![pool("p", 1)], ..BusConfig::default() },
    });
    // Sessions stay with their workers, in a removed slot and in a removed pool.
    assert_eq!(fixture.relay(A, &in_pool("p", "s2")).0, moved);
    assert_eq!(fixture.relay(B, &in_pool("q", "s3")).0, removed);
    assert_eq!(fixture.relay(A, &in_pool("p", "s4")).0, unchanged);
    fixture.send_from_worker(moved, &json!({ "id": relayed["id"], "result": 1 }));
    fixture.feed(BusInput::ClientGone { conn: A });
    fixture.feed(BusInput::ClientGone { conn: B });
    let is_stop_of = |worker| move |it: &BusOutput| matches!(it, BusOutput::StopWorker { worker: w, .. } if *w == worker);
    assert!(
        fixture.other_outputs.iter().any(is_stop_of(moved))
            && fixture.other_outputs.iter().any(is_stop_of(removed))
    );
    assert!(!fixture.other_outputs.iter().any(is_stop_of(unchanged)));
}

#[test]
fn updates_before_the_session_id_are_limited_in_bytes() {
    let mut fixture = BusFixture::new(vec![pool("p", 3)]);
    let text = "x".repeat(1 << 20);
    for n in 0..3 {
        let (worker, _) = fixture.relay(A, &request(&json!(n), "session/new", &json!({})));
        for _ in 0..UNNAMED_UPDATE_LIMITS.own_max >> 20 {
            let params = json!({ "sessionId": "early", "text": text });
            fixture
                .send_from_worker(worker, &json!({ "method": "session/update", "params": params }));
        }
        assert!(
            fixture.bus.parts.cx.unnamed_updates().used_bytes()
                <= UNNAMED_UPDATE_LIMITS.own_max * (n + 1)
        );
    }
    assert!(fixture.bus.parts.cx.unnamed_updates().used_bytes() <= UNNAMED_UPDATE_LIMITS.all_max);
    assert!(0 < fixture.bus.gauges().counters.undelivered);
    for worker in fixture.spawned.clone() {
        fixture.end_worker(worker, false);
    }
    assert_eq!(fixture.bus.parts.cx.unnamed_updates().used_bytes(), 0);
}

#[test]
fn requests_are_refused_while_the_total_backlog_is_too_large() {
    let mut fixture = BusFixture::new(vec![pool("p", 2)]);
    let text = "x".repeat(8 << 20);
    let ask = |session: &str| json!({ "id": 1, "method": "m", "params": { "sessionId": session, "text": text } });
    // The sessions are on different workers, and each worker is below its own limit.
    for _ in 0..4 {
        fixture.send_from_client(A, &ask("a"));
        fixture.send_from_client(A, &ask("b"));
    }
    assert!(fixture.client_frames.is_empty());
    fixture.send_from_client(A, &ask("a"));
    assert_eq!(fixture.error_code(), "overloaded");
}

#[test]
fn workers_wait_sooner_while_the_total_outbox_is_too_large() {
    let mut fixture = BusFixture::new(vec![pool("p", 1)]);
    let (worker, relayed) =
        fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": {} }));
    let text = "x".repeat(1 << 20);
    let update = json!({ "method": "news", "params": { "sessionId": "s", "text": text } });
    fixture.send_from_worker(worker, &update);
    let pauses = |fixture: &BusFixture| {
        fixture
            .other_outputs
            .iter()
            .filter(|it| matches!(it, BusOutput::PauseWorker { .. }))
            .count()
    };
    assert_eq!(pauses(&fixture), 0, "one client may have more");
    let busy_client = ConnId(3);
    fixture.feed(BusInput::ClientOpened { conn: busy_client });
    fixture.bus.clients.get_mut(busy_client).unwrap().set_unread_bytes(OUTBOX_BYTES_ALL_MAX);
    fixture.send_from_worker(worker, &update);
    assert_eq!(pauses(&fixture), 1);
    fixture.feed(BusInput::ClientWrote { conn: A, bytes: 3 << 20 });
    assert!(fixture.other_outputs.iter().any(|it| matches!(it, BusOutput::ResumeWorker { .. })));
}
