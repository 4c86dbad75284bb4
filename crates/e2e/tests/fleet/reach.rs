//! Every session is reachable through every gateway.

use super::{Member, agent, host_of};
use crate::oversized::check_prompts_of_every_size;
use jackfield_test_support::nats::Cluster;
use serde_json::json;

#[test]
fn session_opened_through_one_gateway_is_available_through_another() {
    let cluster = Cluster::start(3);
    let mut hosts = ["one", "two"].map(|it| Member::start(&cluster, "host", it));
    let mut gateways = ["in", "out"].map(|it| Member::start(&cluster, "gateway", it));
    let [near, far] = &gateways;
    let argv = agent(&near.home, &near.home.path().join("memory"));
    let mut client = near.client(&argv);
    let id = client.open(near.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");

    let mut other = far.client(&argv);
    let listed = other.result("session/list", &json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], *id, "{listed}");
    other.result(
        "session/load",
        &json!({ "sessionId": id, "cwd": far.home.path(), "mcpServers": [] }),
    );
    assert!(other.text().contains("remember 17"), "{}", other.text());
    assert_eq!(other.prompt(&id, "history"), "end_turn");
    assert!(other.text().contains("history: remember 17"), "{}", other.text());
    client.until("the turn through the other gateway", |it| {
        it.to_string().contains("history: remember 17")
    });
    let ps = other.result("_jackfield/sessions", &json!({}));
    assert_eq!(ps["sessions"].as_array().map(Vec::len), Some(1), "{ps}");
    drop((client, other));
    gateways.iter_mut().for_each(Member::stop);
    hosts.iter_mut().for_each(Member::stop);
}

#[test]
fn host_gets_no_more_sessions_than_its_live_limit() {
    let cluster = Cluster::start(1);
    let small = "[sessions]\nmax_live = 3\n";
    let mut hosts =
        [Member::start_with(&cluster, "one", small, &[]), Member::start(&cluster, "host", "two")];
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let mut client = gateway.client(&agent(&gateway.home, &gateway.home.path().join("memory")));
    let sessions: Vec<String> = (0..16).map(|_| client.open(gateway.home.path())).collect();
    let rows = client.result("_jackfield/sessions", &json!({}));
    let on_small = sessions.iter().filter(|it| host_of(&rows, it) == "one").count();
    assert!(on_small <= 3, "{on_small} of 16 on a host with places for 3");
    drop(client);
    gateway.stop();
    hosts.iter_mut().for_each(Member::stop);
}

/// The gateway once accepted longer messages than the host, and waited for responses to messages that the host dropped.
#[test]
fn prompt_of_any_size_through_a_gateway_is_answered() {
    let cluster = Cluster::start(1);
    let mut host = Member::start(&cluster, "host", "one");
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let mut client = gateway.client(&agent(&gateway.home, &gateway.home.path().join("memory")));
    let session = client.open(gateway.home.path());
    check_prompts_of_every_size(&mut client, &session);
    drop(client);
    gateway.stop();
    host.stop();
}
