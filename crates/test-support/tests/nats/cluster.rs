//! A cluster that loses servers and has them back.

use super::raw::Raw;
use jackfield_test_support::nats::Cluster;
use std::collections::BTreeSet;

#[test]
fn a_server_alone_has_a_journal_and_takes_eight_megabytes() {
    let cluster = Cluster::start(1);
    assert_eq!(cluster.urls().len(), 1);
    assert_eq!(cluster.meta_leader(), Some(0));
    let greeting = Raw::connect(&cluster.urls()[0]).greeting;
    assert!(greeting.contains(r#""jetstream":true"#), "{greeting}");
    assert!(greeting.contains(r#""max_payload":8388608"#), "{greeting}");
    assert!(!greeting.contains("auth_required"), "{greeting}");
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn a_cluster_of_three_loses_its_leader_and_has_another() {
    let mut cluster = Cluster::start(3);
    let urls = cluster.urls();
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), 3);
    let first = cluster.meta_leader().expect("it has started");
    let name = cluster.servers()[first].name();
    assert_eq!(cluster.number_of(name), Some(first));
    cluster.kill_9(first);
    assert!(!cluster.servers()[first].is_running());
    assert_ne!(cluster.wait_for_meta_leader(), first);
    cluster.restart(first);
    cluster.wait_until_well();
    assert_eq!(cluster.urls(), urls, "it is where it was");
    assert_eq!(cluster.servers().iter().filter(|it| it.is_healthy()).count(), 3);
}

#[test]
fn most_of_a_cluster_must_be_there() {
    let mut cluster = Cluster::start(3);
    let leader = cluster.meta_leader().expect("it has started");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    for number in others {
        cluster.kill_9(number);
    }
    assert_eq!(cluster.meta_leader(), None, "one of three decides nothing, whatever it believes");
    cluster.restart(others[0]);
    cluster.wait_until_well();
    assert_eq!(cluster.servers().iter().filter(|it| it.is_running()).count(), 2);
}

#[test]
fn a_server_that_is_told_to_end_says_good_bye() {
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
fn what_was_acknowledged_is_there_after_a_kill() {
    let mut cluster = Cluster::start(1);
    let mut client = Raw::connect(&cluster.urls()[0]);
    client.create_stream("kept", 1);
    for number in 1..=20 {
        let ack = client.ask("kept", &format!("fact {number}"));
        assert_eq!(ack["seq"], number, "{ack}");
    }
    cluster.kill_9(0);
    client.wait_for_end();
    cluster.restart(0);
    cluster.wait_until_well();
    let state = Raw::connect(&cluster.urls()[0]).ask("$JS.API.STREAM.INFO.kept", "");
    assert_eq!(state["state"]["messages"], 20, "{state}");
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn a_stream_on_three_servers_outlives_any_of_them() {
    let mut cluster = Cluster::start(3);
    let mut client = Raw::connect(&cluster.urls()[0]);
    client.create_stream("shared", 3);
    // It is made before every server knows of it; until then nobody answers.
    let before = client.ask_again("shared", "before");
    let state = client.ask("$JS.API.STREAM.INFO.shared", "");
    let leader = state["cluster"]["leader"].as_str().unwrap();
    let leader = cluster.number_of(leader).unwrap();
    cluster.kill_9(leader);
    let mut client = Raw::connect(&cluster.urls()[(leader + 1) % 3]);
    // Nor is there an answer until there is another leader.
    let after = client.ask_again("shared", "after");
    assert!(before["seq"].as_u64().unwrap() < after["seq"].as_u64().unwrap(), "{after}");
}

#[test]
fn a_lame_duck_sends_its_clients_away_and_ends() {
    let mut cluster = Cluster::start(1);
    let mut client = Raw::connect(&cluster.urls()[0]);
    cluster.lame_duck(0);
    client.wait_for_line(|it| it.starts_with("INFO ") && it.contains(r#""ldm":true"#));
    client.wait_for_end();
    cluster.wait_until_gone(0);
    assert!(!cluster.servers()[0].is_running());
}
