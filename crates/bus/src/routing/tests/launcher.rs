//! Agents that are started when a message names them, and `agentId` without a launcher.

use super::*;

const IDLE_MS: u64 = 1000;

/// A bus that can start the agents `x`, `y` and `z`, two at a time.
fn fixture(pools: Vec<PoolConfig>) -> BusFixture {
    let agents = ["x", "y", "z"].map(|id| (Arc::from(id), pool(id, 1).command));
    let launcher = LauncherConfig { agents: agents.into(), agents_max: 2, idle_ms: IDLE_MS };
    BusFixture::with_config(BusConfig { pools, launcher: Some(launcher), ..BusConfig::default() })
}

fn prompt(agent: &str, session: &str) -> Value {
    json!({ "id": session, "method": "m", "agentId": agent, "sessionId": session })
}

fn stopped(fixture: &BusFixture) -> Vec<WorkerId> {
    let outputs = fixture.other_outputs.iter().filter_map(|it| match it {
        BusOutput::StopWorker { worker, .. } => Some(*worker),
        _ => None,
    });
    outputs.collect()
}

#[test]
fn agent_starts_with_its_first_message_and_serves_the_next() {
    let mut fixture = fixture(vec![pool("p", 1)]);
    assert_eq!(fixture.spawned.len(), 1, "only the configured pool runs");
    let (worker, relayed) = fixture.relay(A, &prompt("x", "s"));
    assert_eq!(fixture.spawned[1..], [worker]);
    assert_eq!(relayed.get("sessionId"), None, "an agent gets plain ACP");
    assert_eq!(fixture.relay(B, &prompt("x", "t")).0, worker);
    // The session is known, so the agent need not be named.
    assert_eq!(fixture.relay(A, &json!({ "id": 2, "method": "m", "sessionId": "s" })).0, worker);
    let unnamed = json!({ "id": 3, "method": "m" });
    assert_eq!(fixture.relay(A, &unnamed).0, fixture.spawned[0], "the configured pool");
    fixture.send_from_worker(worker, &json!({ "id": relayed["id"], "result": {} }));
    let (conn, response) = fixture.last_client_frame();
    assert_eq!((conn, &response["sessionId"]), (A, &json!("s")));
}

#[test]
fn unused_agent_is_stopped_and_starts_again() {
    let mut fixture = fixture(vec![]);
    let (worker, _) = fixture.relay(A, &prompt("x", "s"));
    fixture.now = 5 * IDLE_MS;
    fixture.feed(BusInput::Tick);
    assert_eq!(stopped(&fixture), [], "a client uses it");
    fixture.feed(BusInput::ClientGone { conn: A });
    for _ in 0..2 {
        fixture.now += IDLE_MS;
        fixture.feed(BusInput::Tick);
    }
    assert_eq!(stopped(&fixture), [worker]);
    let (next, _) = fixture.relay(B, &prompt("x", "s"));
    assert_ne!(next, worker);
    fixture.end_worker(worker, true);
    assert_eq!(fixture.relay(B, &prompt("x", "s")).0, next);
}

#[test]
fn too_many_agents_are_refused_unless_one_is_unused() {
    let mut fixture = fixture(vec![]);
    let (first, _) = fixture.relay(A, &prompt("x", "s"));
    fixture.relay(B, &prompt("y", "t"));
    fixture.send_from_client(B, &prompt("z", "u"));
    assert_eq!(fixture.error_code(), "overloaded");
    fixture.feed(BusInput::ClientGone { conn: A });
    fixture.relay(B, &prompt("z", "u"));
    assert_eq!(stopped(&fixture), [first]);
}

#[test]
fn reload_keeps_agents_that_the_launcher_still_knows() {
    let mut fixture = fixture(vec![]);
    fixture.relay(A, &prompt("x", "s"));
    let (kept, _) = fixture.relay(A, &prompt("y", "t"));
    let agents = [(Arc::from("y"), pool("y", 1).command)];
    let launcher = LauncherConfig { agents: agents.into(), agents_max: 2, idle_ms: IDLE_MS };
    let config = BusConfig { launcher: Some(launcher), ..BusConfig::default() };
    fixture.feed(BusInput::Reload { config });
    assert_eq!(fixture.relay(A, &prompt("y", "t")).0, kept);
    fixture.send_from_client(B, &prompt("x", "u"));
    assert_eq!(fixture.error_code(), "no_worker");
}

/// A worker that starts agents itself, such as the published launcher, reads `agentId`.
#[test]
fn agent_id_that_is_no_pool_is_for_the_only_pool() {
    let mut bus = BusFixture::new(vec![pool("p", 1)]);
    let (_, relayed) = bus.relay(A, &prompt("claude", "s"));
    assert_eq!(relayed["agentId"], "claude");
    bus.send_from_client(A, &json!({ "id": 1, "method": "m", "pool": "claude" }));
    assert_eq!(bus.error_code(), "no_worker");
    let mut bus = BusFixture::new(vec![pool("p", 1), pool("q", 1)]);
    bus.send_from_client(A, &prompt("claude", "s"));
    let (_, refused) = bus.last_client_frame();
    assert!(refused["error"]["message"].as_str().unwrap().contains("unknown agent `claude`"));
}
