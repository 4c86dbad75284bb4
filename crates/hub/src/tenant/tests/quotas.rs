//! How much a tenant may have: exactly as much as its quota says, and nobody else pays for it.

use super::*;
use crate::Usage;

fn bounded(sessions: Option<usize>, agents: Option<usize>) -> Scene {
    let acme = Tenant { sessions, agents, ..tenant("acme") };
    Scene::with(&acme, AgentPool::default())
}

#[test]
fn as_many_sessions_are_awake_as_the_quota_says() {
    let mut scene = bounded(Some(2), None);
    let first = scene.open(ACME).unwrap();
    scene.open(ACME).unwrap();
    let answer = scene.ask(ACME, "session/new", &json!({ "cwd": "/srv/x" }));
    assert_eq!(code(&answer), "quota");
    let received = "tenant `acme` has 2 sessions that are awake, and may have 2: close a session";
    assert!(why(&answer).contains(received), "{answer}");
    for conn in [OTHER, OPERATOR] {
        assert!((0..3).all(|_| scene.open(conn).is_ok()), "others are not concerned");
    }
    scene.close(ACME, &first);
    assert!(scene.open(ACME).is_ok(), "there is room again");
    assert_eq!(scene.open(ACME), Err("quota".to_owned()));
}

#[test]
fn a_session_that_sleeps_is_woken_within_the_quota_only() {
    let mut scene = bounded(Some(1), None);
    let first = scene.open(ACME).unwrap();
    let prompt = json!({ "sessionId": "acme.s-1", "prompt": [] });
    assert_eq!(code(&scene.ask(ACME, "session/prompt", &prompt)), "quota");
    // Whoever asks: the session is the tenant's.
    assert_eq!(code(&scene.ask(OPERATOR, "session/prompt", &prompt)), "quota");
    scene.close(ACME, &first);
    assert!(scene.ask(ACME, "session/prompt", &prompt).is_null(), "its turn runs");
}

#[test]
fn as_many_agents_are_alive_as_the_quota_says() {
    let mut scene = bounded(None, Some(1));
    let first = scene.open(ACME).unwrap();
    let answer = scene.ask(ACME, "session/new", &json!({ "cwd": "/srv/x" }));
    assert_eq!(code(&answer), "quota");
    assert!(why(&answer).contains("has 1 agents that are alive, and may have 1"), "{answer}");
    assert_eq!(scene.hub.usage()["acme"], Usage { sessions: 1, agents: 1, hosts: 0 });
    scene.close(ACME, &first);
    assert!(scene.open(ACME).is_ok());
    // An agent that only introduces itself is one, too.
    let conn = ConnId(9);
    scene.arrive(conn, &Tenant { agents: Some(1), ..tenant("acme") });
    scene.ask(conn, "_jackfield/connect", &json!({ "agent": "echo", "cwd": "/srv" }));
    assert_eq!(code(&scene.ask(conn, "initialize", &json!({ "protocolVersion": 1 }))), "quota");
}

#[test]
fn a_warm_process_is_nobodys_until_somebody_has_it() {
    let acme = Tenant { agents: Some(1), ..tenant("acme") };
    let pool = AgentPool { warm: 1, ..AgentPool::default() };
    let mut scene = Scene::with(&acme, pool);
    scene.open(OTHER).unwrap();
    assert_eq!(scene.alive().len(), 2, "one waits");
    assert!(scene.open(ACME).is_ok());
    assert_eq!(scene.open(ACME), Err("quota".to_owned()), "although one waits");
}

#[test]
fn what_is_elsewhere_in_the_fleet_counts() {
    let mut scene = bounded(Some(3), Some(3));
    let tell = |scene: &mut Scene, usage: Usage| {
        let tenants = BTreeMap::from([("acme".into(), usage)]);
        scene.feed(Input::TenantUsageReported { tenants });
    };
    tell(&mut scene, Usage { sessions: 2, agents: 0, hosts: 1 });
    scene.open(ACME).unwrap();
    assert_eq!(scene.open(ACME), Err("quota".to_owned()));
    tell(&mut scene, Usage { sessions: 0, agents: 2, hosts: 1 });
    let answer = scene.ask(ACME, "session/new", &json!({ "cwd": "/srv/x" }));
    assert!(why(&answer).contains("3 agents"), "{answer}");
    scene.feed(Input::TenantUsageReported { tenants: BTreeMap::new() });
    assert!(scene.open(ACME).is_ok());
}

#[test]
fn other_figures_hold_for_everybody_from_the_next_connection_on() {
    let mut scene = bounded(Some(1), None);
    scene.open(ACME).unwrap();
    assert_eq!(scene.open(ACME), Err("quota".to_owned()));
    scene.arrive(ConnId(9), &Tenant { sessions: Some(2), ..tenant("acme") });
    assert!(scene.open(ACME).is_ok());
}

/// What the agents of a scene have said when each says as much as it is read, for so long.
fn said_in(scene: &mut Scene, agents: &[AgentId], ms: u64) -> usize {
    let mut read: BTreeMap<AgentId, bool> =
        agents.iter().map(|it| (*it, !scene.hub.parts.tenants.is_paused(*it))).collect();
    let (until, mut said) = (scene.now + ms, 0);
    while scene.now < until {
        for agent in agents {
            // What was read already still arrives.
            for _ in 0..5 {
                if !read[agent] {
                    break;
                }
                let frame = Frame::notification("_agent/word", r#"{"x":1}"#);
                scene.feed(Input::AgentSpoke { agent: *agent, frame });
                said += 1;
            }
            for output in scene.outputs.drain(..) {
                match output {
                    Output::PauseAgent { agent } => _ = read.insert(agent, false),
                    Output::ResumeAgent { agent } => _ = read.insert(agent, true),
                    _ => {}
                }
            }
        }
        scene.now += 1;
        scene.feed(Input::Tick);
    }
    said
}

#[test]
fn the_agents_of_a_tenant_are_read_at_its_rate_and_nothing_is_lost() {
    let acme = Tenant { events_per_second: Some(100), ..tenant("acme") };
    let mut scene = Scene::with(&acme, AgentPool::default());
    scene.open(ACME).unwrap();
    scene.open(ACME).unwrap();
    let agents = scene.alive();
    scene.open(OTHER).unwrap();
    let others: Vec<AgentId> =
        scene.alive().into_iter().filter(|it| !agents.contains(it)).collect();
    let said = said_in(&mut scene, &agents, 10_000);
    // A second's worth was saved up, of which opening cost a little.
    assert!((1080..=1110).contains(&said), "{said} in ten seconds");
    assert_eq!(said_in(&mut scene, &others, 1000), 5000, "nobody else is read more slowly");
    // Elsewhere lives an agent of it, too: half of it is ours.
    let usage = Usage { sessions: 1, agents: 1, hosts: 1 };
    scene.feed(Input::TenantUsageReported { tenants: BTreeMap::from([("acme".into(), usage)]) });
    said_in(&mut scene, &agents, 2000);
    let said = said_in(&mut scene, &agents, 10_000);
    assert!((490..=510).contains(&said), "{said} in ten seconds");
}

#[test]
fn an_agent_that_the_journal_holds_back_is_not_read_because_its_tenant_may_have_more() {
    let acme = Tenant { events_per_second: Some(10), ..tenant("acme") };
    let mut scene = Scene::with(&acme, AgentPool::default());
    scene.open(ACME).unwrap();
    let agent = scene.alive()[0];
    for _ in 0..20 {
        let frame = Frame::notification("_agent/word", r#"{"x":1}"#);
        scene.feed(Input::AgentSpoke { agent, frame });
    }
    assert!(scene.hub.parts.tenants.is_paused(agent));
    scene.hub.parts.agents.processes.get_mut(&agent).unwrap().paused = true;
    scene.outputs.clear();
    scene.now += 60_000;
    scene.feed(Input::Tick);
    let resumed = |it: &Output| matches!(it, Output::ResumeAgent { .. });
    assert!(!scene.outputs.iter().any(resumed), "{:?}", scene.outputs);
    assert!(!scene.hub.parts.tenants.is_paused(agent));
}
