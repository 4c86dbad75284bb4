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
fn scene_with_unread_session() -> (Scene, WorkerId) {
    let mut scene = Scene::with(BusConfig { pools: vec![pool("p", 1)], limits: LIMITS });
    let (worker, _) = scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "a" })));
    (scene, worker)
}

/// The worker says more about the session of A than A may leave unread.
fn exceed_outbox(scene: &mut Scene, worker: WorkerId) {
    let news = json!({ "method": "u", "params": { "sessionId": "a", "pad": "x".repeat(400) } });
    (0..3).for_each(|_| scene.work(worker, &news));
}

impl Scene {
    fn tick_at(&mut self, now: u64) {
        self.now = now;
        self.others.clear();
        self.feed(BusInput::Tick);
    }

    fn has(&self, is_it: impl Fn(&BusOutput) -> bool) -> bool {
        self.others.iter().any(is_it)
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
fn worker_of_two_clients_waits_shortly_for_one_that_does_not_read() {
    let (mut scene, worker) = scene_with_unread_session();
    let (_, asked) = scene.ask(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut scene, worker);
    assert!(scene.has(is_pause));
    scene.tick_at(SHARED_HOLD_MS);
    assert!(scene.has(is_resume));
    // What comes now is kept, and the worker does not wait for it.
    exceed_outbox(&mut scene, worker);
    assert!(!scene.has(is_pause) && !scene.has(is_close));
    scene.work(worker, &json!({ "id": asked["id"], "result": 1 }));
    assert_eq!(scene.last(), (B, json!({ "id": 1, "result": 1 })));
}

#[test]
fn client_over_its_bound_in_bytes_is_closed_with_the_reason() {
    let (mut scene, worker) = scene_with_unread_session();
    scene.ask(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut scene, worker);
    scene.tick_at(SHARED_HOLD_MS);
    (0..3).for_each(|_| exceed_outbox(&mut scene, worker));
    assert!(scene.has(|it| matches!(it, BusOutput::CloseClient { conn: A })));
    assert!(!scene.has(|it| matches!(it, BusOutput::CloseClient { conn: B })));
    assert_eq!((scene.last().0, scene.code()), (A, "overloaded".to_owned()));
    let (_, told) = scene.last();
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("at most 4000 may be"), "{message}");
    assert!(message.contains("raise `max_output_queue`"), "{message}");
}

#[test]
fn client_over_its_bound_in_time_is_closed_although_no_worker_waits() {
    let (mut scene, worker) = scene_with_unread_session();
    scene.ask(B, &request(&json!(1), "m", &json!({ "sessionId": "b" })));
    exceed_outbox(&mut scene, worker);
    for now in (SHARED_HOLD_MS..LIMITS.backpressure_ms).step_by(100) {
        scene.tick_at(now);
        assert!(!scene.has(is_close), "at {now} ms");
    }
    scene.tick_at(LIMITS.backpressure_ms);
    assert!(scene.has(|it| matches!(it, BusOutput::CloseClient { conn: A })));
}

#[test]
fn worker_of_one_client_waits_until_another_client_needs_it() {
    let (mut scene, worker) = scene_with_unread_session();
    exceed_outbox(&mut scene, worker);
    for now in [100, 200, 300] {
        scene.tick_at(now);
        assert!(!scene.has(is_resume), "only the client that does not read uses it");
    }
    scene.now = 350;
    scene.ask(B, &request(&json!(1), "m", &json!({ "sessionId": "b" })));
    scene.tick_at(400);
    assert!(scene.has(is_resume));
}

#[test]
fn client_that_has_read_again_may_be_waited_for_again() {
    let (mut scene, worker) = scene_with_unread_session();
    scene.ask(B, &request(&json!(1), "m", &json!({})));
    exceed_outbox(&mut scene, worker);
    scene.tick_at(SHARED_HOLD_MS);
    let bytes = scene.bus.clients[&A].outbox.bytes();
    scene.feed(BusInput::ClientWrote { conn: A, bytes });
    scene.others.clear();
    exceed_outbox(&mut scene, worker);
    assert!(scene.has(is_pause));
    scene.tick_at(2 * SHARED_HOLD_MS);
    assert!(scene.has(is_resume) && !scene.has(is_close));
}

#[test]
fn clients_that_stopped_reading_are_closed_while_all_outboxes_are_full() {
    let mut scene = Scene::new(vec![pool("p", 2)]);
    let (worker, _) = scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "a" })));
    let (stalled, small) = (ConnId(3), ConnId(4));
    for (conn, bytes) in [(stalled, OUTBOX_BYTES_ALL_MAX), (small, OUTBOX_BYTES_MIN)] {
        scene.feed(BusInput::ClientOpened { conn });
        scene.bus.clients.get_mut(&conn).unwrap().outbox.resize(bytes);
    }
    // A reads, and has something to read at this moment.
    scene.now = STALLED_MS - 1;
    let news = json!({ "method": "u", "params": { "sessionId": "a", "pad": "x".repeat(100_000) } });
    scene.work(worker, &news);
    scene.tick_at(STALLED_MS - 1 + SHARED_HOLD_MS);
    let closed: Vec<ConnId> = scene
        .others
        .iter()
        .filter_map(|it| if let BusOutput::CloseClient { conn } = it { Some(*conn) } else { None })
        .collect();
    assert_eq!(closed, [stalled]);
    assert_eq!((scene.last().0, scene.code()), (stalled, "overloaded".to_owned()));
}
