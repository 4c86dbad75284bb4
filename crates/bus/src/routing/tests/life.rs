//! Workers that end, clients that do not read, bounds, reloads and the end.

use super::*;

#[test]
fn a_dead_worker_answers_everyone_at_once_and_is_started_again_after_a_pause() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, _) = scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    scene.end(worker, false);
    assert_eq!((scene.last().0, scene.code()), (A, "worker_gone".to_owned()));
    scene.say(A, &request(&json!(2), "m", &json!({ "sessionId": "s" })));
    assert_eq!(scene.code(), "no_worker");
    assert_eq!(scene.bus.poll_timeout(), Some(Time(100)));
    (scene.now, scene.spawned) = (100, vec![]);
    scene.feed(BusInput::Tick);
    let moved = scene.ask(A, &request(&json!(3), "m", &json!({ "sessionId": "s" })));
    assert_eq!(moved.0, scene.spawned[0]);
}

#[test]
fn sessions_end_with_their_worker_where_that_is_wanted() {
    let mut scene = Scene::new(vec![PoolConfig { on_death: WorkerDeathRule::End, ..pool("p", 2) }]);
    let prompt = request(&json!(1), "m", &json!({ "sessionId": "s" }));
    let (worker, _) = scene.ask(A, &prompt);
    scene.end(worker, false);
    scene.say(A, &prompt);
    assert_eq!(scene.code(), "cannot_resume");
    // To take it up again is the way out.
    scene.ask(A, &request(&json!(2), "session/load", &json!({ "sessionId": "s" })));
    scene.ask(A, &prompt);
}

#[test]
fn whether_a_worker_is_started_again_is_configured_and_has_an_end() {
    let often = |restart, clean| {
        let mut scene = Scene::new(vec![PoolConfig { restart, ..pool("p", 1) }]);
        for _ in 0..20 {
            let Some(worker) = scene.spawned.pop() else { break };
            scene.end(worker, clean);
            scene.now = scene.bus.poll_timeout().map_or(scene.now, |at| at.0.min(50_000));
            scene.feed(BusInput::Tick);
        }
        let gave_up =
            |it: &BusOutput| matches!(it, BusOutput::Note(BusNote::GaveUp { ends: 5, .. }));
        (scene.bus.counters.restarts, scene.others.iter().any(gave_up))
    };
    assert_eq!(often(RestartRule::Always, true), (5, true));
    assert_eq!(often(RestartRule::OnFailure, false), (5, true));
    assert_eq!(often(RestartRule::OnFailure, true), (0, false));
    assert_eq!(often(RestartRule::Never, false), (0, false));
}

#[test]
fn over_a_bound_is_told() {
    let limits =
        BusLimits { sessions_max: 2, pending_max: 3, clients_max: 2, ..BusLimits::default() };
    let mut scene = Scene::with(BusConfig { pools: vec![pool("p", 1)], limits });
    for n in 0..2 {
        let (worker, asked) =
            scene.ask(A, &request(&json!(n), "m", &json!({ "sessionId": n.to_string() })));
        scene.work(worker, &json!({ "id": asked["id"], "result": 1 }));
    }
    scene.say(A, &request(&json!(3), "m", &json!({ "sessionId": "third" })));
    assert_eq!(scene.code(), "overloaded");
    (0..3).for_each(|n| _ = scene.ask(B, &request(&json!(n), "m", &json!({}))));
    scene.say(B, &request(&json!(4), "m", &json!({})));
    assert_eq!((scene.last().0, scene.code()), (B, "overloaded".to_owned()));
    scene.feed(BusInput::ClientOpened { conn: ConnId(3) });
    assert_eq!((scene.last().0, scene.code()), (ConnId(3), "overloaded".to_owned()));
    // A session whose client has gone makes room.
    scene.feed(BusInput::ClientGone { conn: A });
    scene.feed(BusInput::ClientOpened { conn: ConnId(4) });
    scene.say(ConnId(4), &json!({ "method": "m", "sessionId": "third" }));
    assert_eq!(scene.bus.gauges().sessions, 2);
}

#[test]
fn a_client_that_does_not_read_stops_its_worker_and_is_closed_in_the_end() {
    let limits = BusLimits { outbox_bytes_max: 1_000, backpressure_ms: 50, ..BusLimits::default() };
    let mut scene = Scene::with(BusConfig { pools: vec![pool("p", 1)], limits });
    let (worker, _) = scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    let news = json!({ "method": "u", "params": { "sessionId": "s", "pad": "x".repeat(400) } });
    (0..3).for_each(|_| scene.work(worker, &news));
    let paused = |it: &BusOutput| matches!(it, BusOutput::PauseWorker { .. });
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::PauseClient { conn: A })));
    assert!(scene.others.iter().any(paused));
    scene.others.clear();
    let bytes = scene.bus.clients[&A].outbox.bytes();
    scene.feed(BusInput::ClientWrote { conn: A, bytes });
    assert!(matches!(
        scene.others[..],
        [BusOutput::ResumeWorker { .. }, BusOutput::ResumeClient { .. }]
    ));
    (0..3).for_each(|_| scene.work(worker, &news));
    scene.now = 50;
    scene.feed(BusInput::Tick);
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::CloseClient { conn: A })));
    assert!(matches!(
        scene.others.iter().rfind(|it| !matches!(it, BusOutput::CloseClient { .. })),
        Some(BusOutput::ResumeWorker { .. })
    ));
}

#[test]
fn a_client_whose_messages_are_not_taken_is_not_read() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let long = json!({ "method": "m", "params": { "pad": "x".repeat(UNTAKEN_BYTES_MAX) } });
    let (worker, _) = scene.ask(A, &long);
    assert!(matches!(scene.others[..], [BusOutput::PauseClient { conn: A }]));
    let bytes = long.to_string().len() + 1;
    scene.feed(BusInput::WorkerWrote { worker, bytes });
    assert!(matches!(scene.others[..], [_, BusOutput::ResumeClient { conn: A }]));
}

#[test]
fn a_client_that_has_said_everything_is_closed_when_it_has_heard_everything() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, asked) = scene.ask(A, &request(&json!(1), "m", &json!({})));
    scene.feed(BusInput::ClientFinished { conn: A });
    assert!(scene.others.is_empty());
    scene.work(worker, &json!({ "id": asked["id"], "result": 1 }));
    assert!(matches!(scene.others[..], [BusOutput::CloseClient { conn: A }]));
}

#[test]
fn stopping_waits_for_answers_refuses_what_is_new_and_ends_the_workers() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, asked) = scene.ask(A, &request(&json!(1), "m", &json!({})));
    scene.feed(BusInput::Stop);
    scene.say(B, &request(&json!(1), "m", &json!({})));
    assert_eq!((scene.last().0, scene.code()), (B, "stopping".to_owned()));
    assert!(!scene.others.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
    scene.work(worker, &json!({ "id": asked["id"], "result": 1 }));
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::StopWorker { now: false, .. })));
    scene.end(worker, true);
    assert!(matches!(scene.others.last(), Some(BusOutput::Stopped)));
    assert_eq!(scene.spawned.len(), 1);
}

#[test]
fn a_drain_has_an_end() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    scene.ask(A, &request(&json!(1), "m", &json!({})));
    scene.feed(BusInput::Stop);
    scene.now = 30_000;
    scene.feed(BusInput::Tick);
    assert_eq!((scene.last().0, scene.code()), (A, "stopping".to_owned()));
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
}

#[test]
fn a_worker_that_says_nothing_is_ended_and_one_that_babbles_on_is_not() {
    let health = HealthCheck { method: "ping".into(), every_ms: 10, timeout_ms: 5 };
    let mut scene = Scene::new(vec![PoolConfig { health: Some(health), ..pool("p", 1) }]);
    let worker = scene.spawned[0];
    scene.feed(BusInput::WorkerStarted { worker, pid: 1 });
    scene.now = 10;
    scene.feed(BusInput::Tick);
    assert_eq!(scene.asked.last().unwrap().1["method"], "ping");
    scene.now = 12;
    scene.work(worker, &json!({ "method": "still busy" }));
    scene.now = 15;
    scene.feed(BusInput::Tick);
    assert!(!scene.others.iter().any(|it| matches!(it, BusOutput::StopWorker { .. })));
    for now in [25, 30] {
        scene.now = now;
        scene.feed(BusInput::Tick);
    }
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::StopWorker { now: true, .. })));
}

#[test]
fn a_reload_keeps_what_fits_and_lets_the_rest_finish() {
    let mut scene = Scene::new(vec![pool("p", 2), pool("q", 1)]);
    let in_pool = |id: &str, session: &str| json!({ "id": 1, "method": "m", "pool": id, "sessionId": session });
    let (kept, _) = scene.ask(A, &in_pool("p", "s1"));
    let (moved, asked) = scene.ask(A, &in_pool("p", "s2"));
    assert_ne!(kept, moved);
    let (removed, _) = scene.ask(B, &in_pool("q", "s3"));
    scene.feed(BusInput::Reload {
        config: BusConfig { pools: vec![pool("p", 1)], limits: BusLimits::default() },
    });
    // Sessions stay where they are, in a place that is gone and in a pool that is gone.
    assert_eq!(scene.ask(A, &in_pool("p", "s2")).0, moved);
    assert_eq!(scene.ask(B, &in_pool("q", "s3")).0, removed);
    assert_eq!(scene.ask(A, &in_pool("p", "s4")).0, kept);
    scene.work(moved, &json!({ "id": asked["id"], "result": 1 }));
    scene.feed(BusInput::ClientGone { conn: A });
    scene.feed(BusInput::ClientGone { conn: B });
    let stopped = |worker| move |it: &BusOutput| matches!(it, BusOutput::StopWorker { worker: w, .. } if *w == worker);
    assert!(scene.others.iter().any(stopped(moved)) && scene.others.iter().any(stopped(removed)));
    assert!(!scene.others.iter().any(stopped(kept)));
}

#[test]
fn what_a_worker_says_before_its_session_has_a_name_is_bounded_in_bytes() {
    let mut scene = Scene::new(vec![pool("p", 3)]);
    let text = "x".repeat(1 << 20);
    for n in 0..3 {
        let (worker, _) = scene.ask(A, &request(&json!(n), "session/new", &json!({})));
        for _ in 0..EARLY.own_max >> 20 {
            let params = json!({ "sessionId": "early", "text": text });
            scene.work(worker, &json!({ "method": "session/update", "params": params }));
        }
        assert!(scene.bus.unnamed_updates.used() <= EARLY.own_max * (n + 1));
    }
    assert!(scene.bus.unnamed_updates.used() <= EARLY.all_max);
    assert!(0 < scene.bus.gauges().counters.unheard);
    for worker in scene.spawned.clone() {
        scene.end(worker, false);
    }
    assert_eq!(scene.bus.unnamed_updates.used(), 0);
}

#[test]
fn requests_are_refused_while_all_workers_together_have_too_much_to_read() {
    let mut scene = Scene::new(vec![pool("p", 2)]);
    let text = "x".repeat(8 << 20);
    let ask = |session: &str| json!({ "id": 1, "method": "m", "params": { "sessionId": session, "text": text } });
    // The sessions are on different workers, and neither of these has what one may have.
    for _ in 0..4 {
        scene.say(A, &ask("a"));
        scene.say(A, &ask("b"));
    }
    assert!(scene.told.is_empty());
    scene.say(A, &ask("a"));
    assert_eq!(scene.code(), "overloaded");
}

#[test]
fn workers_wait_sooner_while_all_clients_together_have_too_much_unread() {
    let mut scene = Scene::new(vec![pool("p", 1)]);
    let (worker, asked) = scene.ask(A, &request(&json!(1), "m", &json!({ "sessionId": "s" })));
    scene.work(worker, &json!({ "id": asked["id"], "result": {} }));
    let text = "x".repeat(1 << 20);
    let news = json!({ "method": "news", "params": { "sessionId": "s", "text": text } });
    scene.work(worker, &news);
    let pauses = |scene: &Scene| {
        scene.others.iter().filter(|it| matches!(it, BusOutput::PauseWorker { .. })).count()
    };
    assert_eq!(pauses(&scene), 0, "one client may have more");
    let many = ConnId(3);
    scene.feed(BusInput::ClientOpened { conn: many });
    scene.bus.clients.get_mut(&many).unwrap().outbox.resize(OUTBOX_BYTES_ALL_MAX);
    scene.work(worker, &news);
    assert_eq!(pauses(&scene), 1);
    scene.feed(BusInput::ClientWrote { conn: A, bytes: 3 << 20 });
    assert!(scene.others.iter().any(|it| matches!(it, BusOutput::ResumeWorker { .. })));
}
