//! A cluster that loses servers and gets them back.

use super::raw::RawClient;
use jackfield_test_support::nats::Cluster;
use std::collections::BTreeSet;

#[test]
fn single_server_has_jetstream_and_accepts_eight_megabytes() {
    let cluster = Cluster::start(1);
    assert_eq!(cluster.urls().len(), 1);
    assert_eq!(cluster.meta_leader(), Some(0));
    let greeting = RawClient::connect(&cluster.urls()[0]).greeting;
    assert!(greeting.contains(r#""jetstream":true"#), "{greeting}");
    assert!(greeting.contains(r#""max_payload":8388608"#), "{greeting}");
    assert!(!greeting.contains("auth_required"), "{greeting}");
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn cluster_of_three_elects_another_leader() {
    let mut cluster = Cluster::start(3);
    let urls = cluster.urls();
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), 3);
    let first = cluster.meta_leader().expect("the cluster has a leader");
    let name = cluster.servers()[first].name();
    assert_eq!(cluster.number_of(name), Some(first));
    cluster.kill_9(first);
    assert!(!cluster.servers()[first].is_running());
    assert_ne!(cluster.wait_for_meta_leader(), first);
    cluster.restart(first);
    cluster.wait_until_well();
    assert_eq!(cluster.urls(), urls, "the addresses are unchanged");
    assert_eq!(cluster.servers().iter().filter(|it| it.is_healthy()).count(), 3);
}

#[test]
fn cluster_needs_a_majority() {
    let mut cluster = Cluster::start(3);
    let leader = cluster.meta_leader().expect("the cluster has a leader");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    for number in others {
        cluster.kill_9(number);
    }
    assert_eq!(cluster.meta_leader(), None, "one server of three is no leader");
    cluster.restart(others[0]);
    cluster.wait_until_well();
    assert_eq!(cluster.servers().iter().filter(|it| it.is_running()).count(), 2);
}

#[test]
fn stopped_server_logs_its_exit() {
    let mut cluster = Cluster::start(1);
    let (before, url) = (cluster.servers()[0].pid(), cluster.urls());
    cluster.stop(0);
    assert_eq!(cluster.servers()[0].pid(), None);
    assert!(cluster.servers()[0].said().contains("Server Exiting"));
    assert_eq!(cluster.meta_leader(), None);
    cluster.restart(0);
    assert_ne!(cluster.servers()[0].pid(), before);
    assert_eq!(cluster.urls(), url);
    cluster.wait_until_well();
}

#[test]
fn acknowledged_messages_survive_a_kill() {
    let mut cluster = Cluster::start(1);
    let mut client = RawClient::connect(&cluster.urls()[0]);
    client.create_stream("kept", 1);
    for number in 1..=20 {
        let ack = client.request("kept", &format!("fact {number}"));
        assert_eq!(ack["seq"], number, "{ack}");
    }
    cluster.kill_9(0);
    client.wait_for_end();
    cluster.restart(0);
    cluster.wait_until_well();
    let state = RawClient::connect(&cluster.urls()[0]).request("$JS.API.STREAM.INFO.kept", "");
    assert_eq!(state["state"]["messages"], 20, "{state}");
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn stream_on_three_servers_survives_the_loss_of_one() {
    let mut cluster = Cluster::start(3);
    let mut client = RawClient::connect(&cluster.urls()[0]);
    client.create_stream("shared", 3);
    // The stream exists before every server knows of it; until then there is no response.
    let before = client.request_until_answered("shared", "before");
    let state = client.request("$JS.API.STREAM.INFO.shared", "");
    let leader = state["cluster"]["leader"].as_str().unwrap();
    let leader = cluster.number_of(leader).unwrap();
    cluster.kill_9(leader);
    let mut client = RawClient::connect(&cluster.urls()[(leader + 1) % 3]);
    // There is no response until another leader is elected.
    let after = client.request_until_answered("shared", "after");
    assert!(before["seq"].as_u64().unwrap() < after["seq"].as_u64().unwrap(), "{after}");
}

#[test]
fn lame_duck_server_disconnects_its_clients_and_exits() {
    let mut cluster = Cluster::start(1);
    let mut client = RawClient::connect(&cluster.urls()[0]);
    cluster.lame_duck(0);
    client.wait_for_line(|it| it.starts_with("INFO ") && it.contains(r#""ldm":true"#));
    client.wait_for_end();
    cluster.wait_until_gone(0);
    assert!(!cluster.servers()[0].is_running());
}
