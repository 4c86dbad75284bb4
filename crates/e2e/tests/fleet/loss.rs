//! A host is lost: its sessions live on elsewhere, and clients keep their connections.

use super::{Member, agent};
use jackfield_testkit::nats::Cluster;
use serde_json::json;
use std::time::{Duration, Instant};

/// A lease, and five seconds.
const BACK_WITHIN: Duration = Duration::from_secs(15);

#[test]
fn sessions_of_a_killed_host_answer_again_and_their_client_stays_connected() {
    let cluster = Cluster::start(3);
    let mut hosts = ["one", "two"].map(|it| Member::start(&cluster, "host", it));
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let id = client.open(gateway.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");
    let ps = client.result("_jackfield/sessions", &json!({}));
    let owner = ps["sessions"][0]["host"].as_str().expect("it has a host").to_owned();

    // In the middle of a turn.
    let request = client.send_prompt(&id, "hang");
    client.until("the turn", |it| it["params"]["is"] == "prompted");
    let lost = usize::from(owner == "two");
    let since = Instant::now();
    hosts[lost].kill_9();
    let answer = client.answer(request);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "interrupted", "{answer}");
    assert_eq!(client.prompt(&id, "history"), "end_turn");
    let took = since.elapsed();
    assert!(client.text().contains("history: remember 17"), "{}", client.text());
    assert!(took < BACK_WITHIN, "{took:?}");
    let moved: Vec<_> = client.heard.iter().filter(|it| it["params"]["is"] == "moved").collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
    let ends = client.heard.iter().filter(|it| it["params"]["is"] == "ended").count();
    assert_eq!(ends, 3, "one outcome for each turn");
    drop(client);
    gateway.stop();
    hosts[1 - lost].stop();
}
