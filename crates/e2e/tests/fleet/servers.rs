//! NATS servers exit, restart and run out of disk space while sessions work: nothing is lost, and clients receive no
//! errors unless all servers are unavailable at once.

use super::{
    HOSTS, Member, agent,
    crowd::{BOUND, Crowd},
    shift::Shift,
};
use jackfield_e2e::wait_for;
use jackfield_test_support::{nats::Cluster, netns::Network};
use std::thread;

const SESSIONS: usize = 6;
/// Turns of each session before and after the fault.
const TURNS: usize = 3;
/// The size of the small disk. The logs of a test are much smaller.
const DISK: u64 = 64 << 20;

#[test]
fn killed_leading_server_causes_no_client_errors() {
    let mut cluster = Cluster::start(3);
    while_sessions_work(&mut cluster, |cluster| {
        let leader = cluster.wait_for_leader_of(HOSTS);
        cluster.kill_9(leader);
        cluster.wait_for_leader_of(HOSTS);
        cluster.wait_until_well();
    });
}

#[test]
#[ignore = "nightly: another way to lose a server; a killed leader is tested with every change"]
fn cut_off_leading_server_causes_no_client_errors() {
    let Some(network) = Network::new(3) else { return };
    let mut cluster = Cluster::start_in(&network, &[0, 1, 2]);
    while_sessions_work(&mut cluster, |cluster| {
        let leader = cluster.wait_for_leader_of(HOSTS);
        network.cut_off(leader);
        cluster.wait_for_leader_of(HOSTS);
        network.restore_link(leader);
        cluster.wait_until_well();
    });
}

#[test]
#[ignore = "nightly: another way to lose a server; a killed leader is tested with every change"]
fn rolling_restart_of_servers_causes_no_client_errors() {
    let mut cluster = Cluster::start(3);
    while_sessions_work(&mut cluster, |cluster| {
        for number in 0..3 {
            cluster.stop(number);
            cluster.restart(number);
            cluster.wait_until_well();
        }
    });
}

#[test]
#[ignore = "nightly: another way to lose a server; a killed leader is tested with every change"]
fn server_with_a_full_disk_causes_no_client_errors() {
    let Some(mut cluster) = Cluster::start_with_small_disk(3, 0, DISK) else { return };
    while_sessions_work(&mut cluster, |cluster| {
        cluster.fill_disk();
        wait_for("a disk that is full", BOUND, || {
            cluster.servers()[0].said().contains("no space left on device").then_some(())
        });
        // A server that ran out of space does not recover without a restart.
        cluster.empty_disk();
        cluster.stop(0);
        cluster.restart(0);
        cluster.wait_until_well();
    });
}

/// Sessions work before, during and after a fault of the servers.
#[expect(clippy::print_stderr, reason = "figures for manual runs")]
fn while_sessions_work(cluster: &mut Cluster, what: impl FnOnce(&mut Cluster) + Send) {
    let mut hosts = ["one", "two"].map(|it| Member::start(cluster, "host", it));
    let mut gateways = ["in", "out"].map(|it| Member::start(cluster, "gateway", it));
    let mut crowd = Crowd::open(&gateways, SESSIONS, &[]);
    let mut shift = Shift::begin(&mut crowd);
    shift.turns(&mut crowd, TURNS);
    let usual = shift.longest();
    thread::scope(|scope| {
        let happens = scope.spawn(|| what(cluster));
        shift.work(&mut crowd, |_| happens.is_finished());
        happens.join().expect("it happens as it is meant to");
    });
    shift.turns(&mut crowd, TURNS);
    let longest = shift.longest();
    let count = shift.end(&mut crowd, &gateways);
    eprintln!("{count} turns; the longest took {longest:?}, {usual:?} before");
    drop(crowd);
    gateways.iter_mut().for_each(Member::stop);
    hosts.iter_mut().for_each(Member::stop);
}

#[test]
fn sessions_answer_after_all_servers_were_down() {
    let mut cluster = Cluster::start(3);
    let mut hosts = ["one", "two"].map(|it| Member::start(&cluster, "host", it));
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let id = client.open(gateway.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");
    let turn = client.send_prompt(&id, "hang");
    client.until("the turn", |it| it["params"]["is"] == "prompted");
    (0..3).for_each(|it| cluster.kill_9(it));
    for host in &hosts {
        wait_for("the end of the agents", BOUND, || {
            host.home.said().contains("lost the lease of this host").then_some(())
        });
    }
    (0..3).for_each(|it| cluster.restart(it));
    cluster.wait_until_well();
    let answer = client.answer(turn);
    assert_eq!(answer["error"]["data"]["jackfield"]["code"], "interrupted", "{answer}");
    assert_eq!(client.prompt(&id, "history"), "end_turn");
    assert!(client.text().contains("history: remember 17"), "{}", client.text());
    drop(client);
    gateway.stop();
    hosts.iter_mut().for_each(Member::stop);
}
