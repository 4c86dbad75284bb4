//! Network namespaces, and servers in them.

use super::raw::RawClient;
use jackfield_test_support::{nats::Cluster, netns::Network};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    process::Command,
    thread,
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(30);

/// Whether one node gets an answer from an address within a second.
fn reaches(network: &Network, node: usize, address: Ipv4Addr) -> bool {
    let mut ping = network.command(node, "sh");
    // `ping` may be missing; a closed port answers as well.
    let script = format!("timeout 1 bash -c '</dev/tcp/{address}/9' 2>&1 | grep -q refused");
    ping.args(["-c", &script]).status().unwrap().success()
}

pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < BOUND, "timed out after {BOUND:?} waiting for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Namespaces and interfaces with this word in their name.
pub(crate) fn remaining_names(word: &str) -> Vec<String> {
    let folders = ["/run/netns", "/sys/class/net"];
    let names = folders.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    let names = names.map(|it| it.file_name().into_string().unwrap());
    names.filter(|it| it.contains(word)).collect()
}

#[test]
fn nodes_reach_each_other_and_this_process() {
    let Some(network) = Network::new(2) else { return };
    assert!(reaches(&network, 0, network.address(1)));
    assert!(reaches(&network, 1, network.address(0)));
    assert!(reaches(&network, 0, network.our_address()));
    let listener = TcpListener::bind((network.our_address(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/{}/{port}", network.our_address());
    let mut child = network.command(1, "bash").args(["-c", &script]).spawn().unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), network.address(1));
    assert!(child.wait().unwrap().success());
}

#[test]
fn node_that_is_cut_off_reaches_no_other_until_restored() {
    let Some(network) = Network::new(3) else { return };
    network.cut_off(1);
    assert!(!reaches(&network, 1, network.address(0)));
    assert!(!reaches(&network, 0, network.address(1)));
    assert!(!reaches(&network, 1, network.our_address()));
    assert!(reaches(&network, 0, network.address(2)), "the others are not");
    network.restore_link(1);
    wait_until("the node", || reaches(&network, 1, network.address(0)));
    wait_until("the node", || reaches(&network, 0, network.address(1)));
}

#[test]
fn isolated_nodes_reach_only_each_other() {
    let Some(network) = Network::new(3) else { return };
    (0..2).for_each(|it| network.isolate(it));
    wait_until("the island", || reaches(&network, 0, network.address(1)));
    assert!(!reaches(&network, 0, network.address(2)));
    assert!(!reaches(&network, 2, network.address(1)));
    assert!(!reaches(&network, 1, network.our_address()));
    (0..2).for_each(|it| network.restore_link(it));
    wait_until("the others", || reaches(&network, 2, network.address(1)));
}

#[test]
fn node_with_blocked_input_sends_but_receives_nothing() {
    let Some(network) = Network::new(2) else { return };
    let socket = UdpSocket::bind((network.our_address(), 0)).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    let port = socket.local_addr().unwrap().port();
    network.block_incoming(0);
    let script = format!("echo hello > /dev/udp/{}/{port}", network.our_address());
    assert!(network.command(0, "bash").args(["-c", &script]).status().unwrap().success());
    let mut received = [0; 6];
    socket.recv_from(&mut received).unwrap();
    assert_eq!(&received, b"hello\n");
    assert!(!reaches(&network, 0, network.our_address()), "there is no answer");
    assert!(!reaches(&network, 1, network.address(0)));
    assert!(reaches(&network, 1, network.our_address()));
    network.restore_link(0);
    wait_until("the node", || reaches(&network, 0, network.our_address()));
}

#[test]
fn parallel_networks_are_separate() {
    let (Some(one), Some(other)) = (Network::new(1), Network::new(1)) else { return };
    assert_ne!(one.address(0), other.address(0));
    assert!(!reaches(&one, 0, other.address(0)));
}

#[test]
fn dropped_network_is_removed() {
    let Some(network) = Network::new(2) else { return };
    let word = format!("jf{}-", std::process::id());
    assert_eq!(
        remaining_names(&word).len(),
        4,
        "two nodes, the bridge and the interface of this process"
    );
    let mut sleeper = network.command(0, "sleep").arg("600").spawn().unwrap();
    let pids =
        || Command::new("ip").args(["netns", "pids", &format!("{word}0-0")]).output().unwrap();
    wait_until("the sleeper", || {
        String::from_utf8_lossy(&pids().stdout).contains(&sleeper.id().to_string())
    });
    drop(network);
    assert!(!sleeper.wait().unwrap().success(), "it was ended");
    assert_eq!(remaining_names(&word), Vec::<String>::new());
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn cluster_works_without_a_server_that_is_cut_off() {
    let Some(network) = Network::new(3) else { return };
    let cluster = Cluster::start_in(&network, &[0, 1, 2]);
    let mut client = RawClient::connect(&cluster.urls()[0]);
    client.create_stream("shared", 3);
    let leader = cluster.meta_leader().unwrap();
    network.cut_off(leader);
    let other = cluster.wait_for_meta_leader();
    assert_ne!(other, leader);
    assert!(cluster.servers()[leader].is_running(), "it runs, but is not reachable");
    let ack =
        RawClient::connect(&cluster.urls()[other]).request_until_answered("shared", "without it");
    assert_eq!(ack["stream"], "shared", "{ack}");
    let address = cluster.servers()[leader].address();
    assert!(TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err());
    network.restore_link(leader);
    cluster.wait_until_well();
}
