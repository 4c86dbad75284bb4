//! Operation of a fleet: metrics, the health of the servers, and the audit log.

use super::{Member, agent};
use crate::api::metrics::value;
use jackfield_e2e::{Home, Web, wait_for};
use jackfield_test_support::nats::{Cluster, Server};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// `None` while the servers elect a leader.
fn status(home: &Home, servers: &str) -> Option<Value> {
    let told = home.run(&["fleet", "status", "--format", "json", "--fleet", servers], SOON);
    if !told.status.success() {
        let why = String::from_utf8_lossy(&told.stderr);
        assert!(why.contains("electing a leader"), "{why}");
        return None;
    }
    Some(serde_json::from_slice(&told.stdout).unwrap())
}

#[test]
fn gateway_reports_metrics_and_health_and_detects_a_lost_server() {
    let mut cluster = Cluster::start(3);
    let servers = cluster.urls().join(",");
    let mut host = Member::start(&cluster, "host", "one");
    let listen = ["--listen", "http://127.0.0.1:0"];
    let serve = |home: &Home, args: &[&str]| home.serve(&[args, &listen].concat());
    let mut gateway = Member::launch(&cluster, "gateway", "in", serve);
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let session = client.open(gateway.home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");

    let web = Web::of(&gateway.home);
    let page = wait_for("the host to tell of its session", SOON, || {
        let page = web.get("/metrics").text();
        (value(&page, "jackfield_fleet_sessions", "one") == Some(1.0)).then_some(page)
    });
    // The gateway's own web server may be one more client.
    assert!(value(&page, "jackfield_gateway_clients", "").is_some_and(|it| 1.0 <= it), "{page}");
    assert_eq!(value(&page, "jackfield_gateway_sessions", ""), Some(1.0), "{page}");
    assert_eq!(value(&page, "jackfield_fleet_hosts", ""), Some(1.0), "{page}");

    let well = wait_for("every replica to have everything", SOON, || {
        let status = status(&gateway.home, &servers)?;
        (status["healthy"] == true).then_some(status)
    });
    let names: Vec<&str> = cluster.servers().iter().map(Server::name).collect();
    let told: Vec<&String> = well["cell"]["servers"].as_object().unwrap().keys().collect();
    assert_eq!(told, names, "{well}");
    let lost = names[0].to_owned();
    cluster.kill_9(0);
    let hurt = wait_for("the loss to be seen", SOON, || {
        let status = status(&gateway.home, &servers)?;
        // The others report a server that exited at once, and one that is unreachable after a while.
        let seen = &status["cell"]["servers"][&lost];
        let troubles = ["offline", "behind"].map(|it| seen[it].as_u64().unwrap_or(0));
        (troubles != [0, 0]).then_some(status)
    });
    assert_eq!(hurt["healthy"], false, "{hurt}");
    assert_eq!(hurt["cell"]["streams"], well["cell"]["streams"], "{hurt}");
    drop(client);
    gateway.stop();
    host.stop();
}

#[test]
fn audit_log_keeps_client_actions_after_session_is_deleted() {
    let cluster = Cluster::start(1);
    let servers = cluster.urls().join(",");
    let mut host = Member::start(&cluster, "host", "one");
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let session = client.open(gateway.home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    client.result("session/delete", &json!({ "sessionId": session }));
    let refused = client
        .ask("session/load", &json!({ "sessionId": "s-nothing", "cwd": "/", "mcpServers": [] }));
    assert!(refused["error"].is_object(), "{refused}");

    let words = wait_for("four lines", SOON, || {
        let told = ["fleet", "audit", "--since", "1h", "--format", "json", "--fleet", &servers];
        let told = gateway.home.run(&told, SOON);
        assert!(told.status.success(), "{told:?}");
        let text = String::from_utf8(told.stdout).unwrap();
        let words: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        (words.len() == 4).then_some(words)
    });
    let what: Vec<&str> = words.iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["session/new", "session/prompt", "session/delete", "session/load"]);
    assert!(words[..3].iter().all(|it| it["session"] == session && it["refused"].is_null()));
    assert!(words[3]["refused"].is_string() && words[3]["gateway"] == "in", "{words:?}");
    let text = words.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains("hello"), "the audit log contains prompt text: {text}");
    drop(client);
    gateway.stop();
    host.stop();
}

#[test]
fn gateway_api_offers_only_the_agents_of_its_hosts() {
    let cluster = Cluster::start(1);
    let shared = Home::new();
    let command: Vec<String> = agent(&shared, &shared.path().join("memory"));
    let config = format!("[agents.crew]\ncommand = {}\n", json!(command));
    let mut host = Member::start_with(&cluster, "one", &config, &[]);
    let listen = ["--listen", "http://127.0.0.1:0"];
    let serve = |home: &Home, args: &[&str]| home.serve(&[args, &listen].concat());
    let mut gateway = Member::launch(&cluster, "gateway", "in", serve);

    let web = Web::of(&gateway.home);
    let agents = wait_for("the host's agents to be offered", SOON, || {
        let agents = web.get("/api/agents").good()["agents"].as_array().unwrap().clone();
        agents.iter().any(|it| it["id"] == "crew").then_some(agents)
    });
    let of = |id: &str| agents.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(of("crew")["available"], true, "{agents:?}");
    let nowhere = of("codex");
    assert_eq!(nowhere["available"], false, "{nowhere}");
    assert_eq!(nowhere["diagnostics"][0]["reason"], "on-no-host", "{nowhere}");

    let refused = web.post("/api/runs", &json!({ "agentId": "codex", "message": "x" }));
    let why = refused.json()["error"].clone();
    assert_eq!((refused.status, &why["code"]), (424, &json!("AGENT_UNAVAILABLE")), "{why}");
    assert!(why["message"].as_str().unwrap().contains("install it on a host"), "{why}");
    let body = json!({ "agentId": "crew", "message": "hello" });
    let told = web.stream("POST", "/api/chat", &[], Some(&body)).rest();
    let end = told.last().unwrap().json();
    assert_eq!(end["status"], "succeeded", "{told:?}");
    gateway.stop();
    host.stop();
}
