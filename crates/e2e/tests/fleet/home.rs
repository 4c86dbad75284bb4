//! The placement of sessions: only on hosts that have the folder and the labels of the session.

use super::{Member, SHARED, agent, host_of};
use jackfield_e2e::wait_for;
use jackfield_test_support::{nats::Cluster, netns::Network};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[test]
fn session_with_an_unshared_folder_waits_for_its_host() {
    let cluster = Cluster::start(1);
    let servers = cluster.urls().join(",");
    let mut one = Member::start_alone(&cluster, "one", &[]);
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let id = client.open(gateway.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");
    // It has a folder with the same path, but does not declare it as shared.
    let mut two = Member::start_alone(&cluster, "two", &[]);
    let request = client.send_prompt(&id, "hang");
    client.until("the turn", |it| it["params"]["is"] == "prompted");
    one.kill_9();
    // The response comes when the lease has expired.
    let meta = json!({ "jackfield": { "labels": ["host=one"] } });
    let wish = json!({ "cwd": gateway.home.path(), "mcpServers": [], "_meta": meta });
    let answer = client.ask("session/new", &wish);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "no_host", "{answer}");
    let look = ["fleet", "hosts", "--format", "quiet", "--fleet", &servers];
    let hosts = gateway.home.run(&look, SOON).stdout;
    assert_eq!(String::from_utf8(hosts).unwrap(), "two\n", "the other one does not answer");
    // A request for the session waits, and no other host takes the session over.
    let history = client.send_prompt(&id, "history");
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!(host_of(&rows, &id), "nobody", "{rows}");
    one.start_again(&cluster, "one");
    let answer = client.answer(request);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "interrupted", "{answer}");
    let answer = client.answer(history);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(client.text().contains("history: remember 17"), "{}", client.text());
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!(host_of(&rows, &id), "one", "{rows}");
    drop(client);
    gateway.stop();
    one.stop();
    two.stop();
}

#[test]
fn session_stays_on_hosts_with_its_labels() {
    let cluster = Cluster::start(1);
    let servers = cluster.urls().join(",");
    let start = |name: &str, zone: &str| {
        Member::start_alone(&cluster, name, &[&SHARED[..], &["--label", zone]].concat())
    };
    let mut hosts = [start("one", "zone=a"), start("two", "zone=b"), start("three", "zone=a")];
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let cwd = gateway.home.path();
    let mut open = |label: &str| {
        let meta = json!({ "jackfield": { "labels": [label] } });
        let wish = json!({ "cwd": cwd, "mcpServers": [], "_meta": meta });
        client.result("session/new", &wish)["sessionId"].as_str().unwrap().to_owned()
    };
    // The host with the other label then has the lowest load.
    for host in ["host=one", "host=three"] {
        open(host);
    }
    let id = open("zone=a");
    let at = |rows: &Value| host_of(rows, &id);
    let owner = at(&client.result("_jackfield/sessions", &json!({})));
    let drained = gateway.home.run(&["host", "drain", &owner, "--fleet", &servers], SOON);
    assert!(drained.status.success(), "{drained:?}");
    assert_eq!(client.prompt(&id, "hello"), "end_turn");
    let other = if owner == "one" { "three" } else { "one" };
    assert_eq!(at(&client.result("_jackfield/sessions", &json!({}))), other);
    drop(client);
    gateway.stop();
    hosts.iter_mut().for_each(Member::stop);
}

#[test]
fn agents_end_on_a_host_whose_name_another_host_has() {
    let Some(network) = Network::new(2) else { return };
    let cluster = Cluster::start_in(&network, &[0]);
    let mut first = Member::start_on(&network, 1, &cluster, "one");
    let pid = first.daemon.as_ref().unwrap().pid();
    let mut client = first.client(&first.home.fake_agent(&[]));
    network.cut_off(1);
    let mut second = Member::start(&cluster, "host", "one");
    network.restore_link(1);
    wait_for("the end of everything there", SOON, || {
        first.home.said().contains("lost the lease of this host").then_some(())
    });
    let wish = json!({ "cwd": first.home.path(), "mcpServers": [] });
    let answer = client.ask("session/new", &wish);
    wait_for(&format!("the end of the agent that began with {answer}"), SOON, || {
        first.home.alive(&[pid]).is_empty().then_some(())
    });
    drop(client);
    first.kill_9();
    second.stop();
}
