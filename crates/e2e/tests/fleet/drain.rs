//! A host is drained: idle sessions move at once, busy ones at the end of their turn, and clients receive no errors.

use super::{Member, SHARED, agent, host_of};
use crate::api::metrics::value;
use jackfield_e2e::{Home, Web, wait_for};
use jackfield_test_support::nats::Cluster;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[test]
fn drained_host_has_no_sessions_and_clients_see_no_errors() {
    let cluster = Cluster::start(3);
    let servers = cluster.urls().join(",");
    // All sessions are on the first host, because the second one starts later.
    let mut one = Member::start(&cluster, "host", "one");
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let (idle, busy) = (client.open(gateway.home.path()), client.open(gateway.home.path()));
    assert_eq!(client.prompt(&idle, "remember 17"), "end_turn");
    let turn = client.send_prompt(&busy, "wait 3000");
    client.until("the turn", |it| {
        it["params"]["is"] == "prompted" && it.to_string().contains(&*busy)
    });
    let mut two = Member::start(&cluster, "host", "two");

    let drained = gateway.home.run(&["host", "drain", "one", "--fleet", &servers], SOON);
    assert!(drained.status.success(), "{drained:?}");
    let answer = client.answer(turn);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    for id in [&busy, &idle] {
        assert_eq!(client.prompt(id, "history"), "end_turn");
    }
    assert!(client.text().contains("history: remember 17"), "{}", client.text());
    let rows = client.result("_jackfield/sessions", &json!({}));
    assert_eq!((host_of(&rows, &idle), host_of(&rows, &busy)), ("two".into(), "two".into()));
    one.stop();

    let hosts =
        gateway.home.run(&["fleet", "hosts", "--format", "json", "--fleet", &servers], SOON);
    let hosts: Value = serde_json::from_slice(&hosts.stdout).unwrap();
    assert!(hosts["hosts"].as_array().unwrap().iter().any(|it| it["host"]["name"] == "two"));
    drop(client);
    gateway.stop();
    two.stop();
}

/// A draining host releases all idle sessions at once, before the other hosts have reported the first of them.
#[test]
fn sessions_of_a_drained_host_are_spread_evenly_over_the_others() {
    const SESSIONS: usize = 12;
    let cluster = Cluster::start(1);
    let servers = cluster.urls().join(",");
    // All sessions are on the first host, because the others start later.
    let mut one = Member::start(&cluster, "host", "one");
    let listen = ["--listen", "http://127.0.0.1:0"];
    let serve = |home: &Home, args: &[&str]| home.serve(&[args, &SHARED, &listen].concat());
    let mut gateway = Member::launch(&cluster, "gateway", "in", serve);
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let sessions: Vec<String> = (0..SESSIONS).map(|_| client.open(gateway.home.path())).collect();
    let mut others = ["two", "three"].map(|it| Member::start(&cluster, "host", it));
    // A gateway reads the list of hosts once a second.
    let web = Web::of(&gateway.home);
    wait_for("the gateway to know three hosts", SOON, || {
        let page = web.get("/metrics").text();
        (value(&page, "jackfield_fleet_hosts", "") == Some(3.0)).then_some(())
    });

    let drained = gateway.home.run(&["host", "drain", "one", "--fleet", &servers], SOON);
    assert!(drained.status.success(), "{drained:?}");
    let counts = wait_for("a host for every session", SOON, || {
        let rows = client.result("_jackfield/sessions", &json!({}));
        let on = |name: &str| sessions.iter().filter(|it| host_of(&rows, it) == name).count();
        let counts = [on("two"), on("three")];
        (counts.iter().sum::<usize>() == SESSIONS).then_some(counts)
    });
    assert!(counts[0].abs_diff(counts[1]) <= 2, "{counts:?}");
    for id in &sessions {
        assert_eq!(client.prompt(id, "hello"), "end_turn");
    }
    drop(client);
    gateway.stop();
    one.stop();
    others.iter_mut().for_each(Member::stop);
}
