//! Clients that do not read: how long their workers wait, and when they are closed.

use super::*;

const LIMITS: BusLimits = BusLimits {
    outbox_bytes_max: 1_000,
    restarts_max: 5,
    restart_window_ms: 1_000,
    drain_ms: 1_000,
    backpressure_ms: 60_000,
    sessions_max: 100,
    pending_max: 100,
    clients_max: 100,
};

/// One worker; A has a session and does not read.
fn fixture_with_unread_session() -> (BusFixture, WorkerId) {
    let mut fixture = BusFixture::with_config(BusConfig {
        pools: vec![pool("p", 1)],
        limits: LIMITS,
        launcher: None,
    });
    let (worker, _) = fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "a" })));
    (fixture, worker)
}

/// The worker sends more updates for the session of A than A may leave unread.
fn exceed_outbox(fixture: &mut BusFixture, worker: WorkerId) {
    let update = json!({ "method": "u", "params": { "sessionId": "a", "pad": "x".repeat(400) } });
    (0..3).for_each(|_| fixture.send_from_worker(worker, &update));
}

impl BusFixture {
    fn tick_at(&mut self, now: u64) {
        self.now = now;
        self.other_outputs.clear();
        self.feed(BusInput::Tick);
    }

    fn has_output(&self, is_match: impl Fn(&BusOutput) -> bool) -> bool {
        self.other_outputs.iter().any(is_match)
    }
}

fn is_pause(it: &BusOutput) -> bool {
    matches!(it, BusOutput::PauseWorker { .. })
}

fn is_resume(it: &BusOutput) -> bool {
    matches!(it, BusOutput::ResumeWorker { .. })
}

fn is_close(it: &BusOutput) -> bool {
    matches!(it, BusOutput::CloseClient { .. })
}

#[test]
fn worker_of_two_clients_waits_briefly_for_a_slow_one() {
    let (mut fixture, worker) = fixture_with_unread_session();
    let (_, relayed) = fixture.relay(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut fixture, worker);
    assert!(fixture.has_output(is_pause));
    fixture.tick_at(SHARED_HOLD_MS);
    assert!(fixture.has_output(is_resume));
    // Further messages are buffered, and the worker does not wait.
    exceed_outbox(&mut fixture, worker);
    assert!(!fixture.has_output(is_pause) && !fixture.has_output(is_close));
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": 1 }));
    assert_eq!(fixture.last_client_frame(), (B, json!({ "id": 1, "result": 1 })));
}

#[test]
fn client_above_its_byte_limit_is_closed_with_the_reason() {
    let (mut fixture, worker) = fixture_with_unread_session();
    fixture.relay(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut fixture, worker);
    fixture.tick_at(SHARED_HOLD_MS);
    (0..3).for_each(|_| exceed_outbox(&mut fixture, worker));
    assert!(fixture.has_output(|it| matches!(it, BusOutput::CloseClient { conn: A })));
    assert!(!fixture.has_output(|it| matches!(it, BusOutput::CloseClient { conn: B })));
    assert_eq!((fixture.last_client_frame().0, fixture.error_code()), (A, "overloaded".to_owned()));
    let (_, frame) = fixture.last_client_frame();
    let message = frame["error"]["message"].as_str().unwrap();
    assert!(message.contains("the limit is 4000"), "{message}");
    assert!(message.contains("raise `max_output_queue`"), "{message}");
}

#[test]
fn client_above_its_time_limit_is_closed_although_no_worker_waits() {
    let (mut fixture, worker) = fixture_with_unread_session();
    fixture.relay(B, &request(&json!(1), "m", &json!({ "sessionId": "b" })));
    exceed_outbox(&mut fixture, worker);
    for now in (SHARED_HOLD_MS..LIMITS.backpressure_ms).step_by(100) {
        fixture.tick_at(now);
        assert!(!fixture.has_output(is_close), "at {now} ms");
    }
    fixture.tick_at(LIMITS.backpressure_ms);
    assert!(fixture.has_output(|it| matches!(it, BusOutput::CloseClient { conn: A })));
}

#[test]
fn worker_of_one_client_waits_until_another_client_needs_it() {
    let (mut fixture, worker) = fixture_with_unread_session();
    exceed_outbox(&mut fixture, worker);
    for now in [100, 200, 300] {
        fixture.tick_at(now);
        assert!(!fixture.has_output(is_resume), "only the client that does not read uses it");
    }
    fixture.now = 350;
    fixture.relay(B, &request(&json!(1), "m", &json!({ "sessionId": "b" })));
    fixture.tick_at(400);
    assert!(fixture.has_output(is_resume));
}

#[test]
fn worker_waits_again_for_a_client_that_has_caught_up() {
    let (mut fixture, worker) = fixture_with_unread_session();
    fixture.relay(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut fixture, worker);
    fixture.tick_at(SHARED_HOLD_MS);
    let bytes = fixture.bus.clients.get_mut(A).unwrap().unread_bytes();
    fixture.feed(BusInput::ClientWrote { conn: A, bytes });
    fixture.other_outputs.clear();
    exceed_outbox(&mut fixture, worker);
    assert!(fixture.has_output(is_pause));
    fixture.tick_at(2 * SHARED_HOLD_MS);
    assert!(fixture.has_output(is_resume) && !fixture.has_output(is_close));
}

#[test]
fn clients_that_stopped_reading_are_closed_while_all_outboxes_are_full() {
    let mut fixture = BusFixture::new(vec![pool("p", 2)]);
    let (worker, _) = fixture.relay(A, &request(&json!(1), "m", &json!({ "sessionId": "a" })));
    let (stalled, small) = (ConnId(3), ConnId(4));
    for (conn, bytes) in [(stalled, OUTBOX_BYTES_ALL_MAX), (small, OUTBOX_BYTES_MIN)] {
        fixture.feed(BusInput::ClientOpened { conn });
        fixture.bus.clients.get_mut(conn).unwrap().set_unread_bytes(bytes);
    }
    // A reads, and has unread bytes at this moment.
    fixture.now = STALLED_MS - 1;
    let update =
        json!({ "method": "u", "params": { "sessionId": "a", "pad": "x".repeat(100_000) } });
    fixture.send_from_worker(worker, &update);
    fixture.tick_at(STALLED_MS - 1 + SHARED_HOLD_MS);
    let closed: Vec<ConnId> = fixture
        .other_outputs
        .iter()
        .filter_map(|it| if let BusOutput::CloseClient { conn } = it { Some(*conn) } else { None })
        .collect();
    assert_eq!(closed, [stalled]);
    assert_eq!(
        (fixture.last_client_frame().0, fixture.error_code()),
        (stalled, "overloaded".to_owned())
    );
}
