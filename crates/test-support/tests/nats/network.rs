//! Namespaces on one cable, and servers in them.

use super::raw::Raw;
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
    // Not everybody has `ping`; a port that is closed or open answers just as well.
    let script = format!("timeout 1 bash -c '</dev/tcp/{address}/9' 2>&1 | grep -q refused");
    ping.args(["-c", &script]).status().unwrap().success()
}

pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < BOUND, "waited {BOUND:?} in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Namespaces and interfaces with this word in their name.
pub(crate) fn left_of(word: &str) -> Vec<String> {
    let folders = ["/run/netns", "/sys/class/net"];
    let names = folders.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    let names = names.map(|it| it.file_name().into_string().unwrap());
    names.filter(|it| it.contains(word)).collect()
}

#[test]
fn nodes_reach_each_other_and_us() {
    let Some(network) = Network::new(2) else { return };
    assert!(reaches(&network, 0, network.address(1)));
    assert!(reaches(&network, 1, network.address(0)));
    assert!(reaches(&network, 0, network.our_address()));
    let listener = TcpListener::bind((network.our_address(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/{}/{port}", network.our_address());
    let mut guest = network.command(1, "bash").args(["-c", &script]).spawn().unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), network.address(1));
    assert!(guest.wait().unwrap().success());
}

#[test]
fn a_node_that_is_cut_off_reaches_nobody_until_it_is_healed() {
    let Some(network) = Network::new(3) else { return };
    network.cut(1);
    assert!(!reaches(&network, 1, network.address(0)));
    assert!(!reaches(&network, 0, network.address(1)));
    assert!(!reaches(&network, 1, network.our_address()));
    assert!(reaches(&network, 0, network.address(2)), "the others are not");
    network.heal(1);
    wait_until("the node", || reaches(&network, 1, network.address(0)));
    wait_until("the node", || reaches(&network, 0, network.address(1)));
}

#[test]
fn nodes_on_the_island_reach_each_other_and_nobody_else() {
    let Some(network) = Network::new(3) else { return };
    (0..2).for_each(|it| network.maroon(it));
    wait_until("the island", || reaches(&network, 0, network.address(1)));
    assert!(!reaches(&network, 0, network.address(2)));
    assert!(!reaches(&network, 2, network.address(1)));
    assert!(!reaches(&network, 1, network.our_address()));
    (0..2).for_each(|it| network.heal(it));
    wait_until("the others", || reaches(&network, 2, network.address(1)));
}

#[test]
fn a_node_that_is_deaf_is_heard_and_hears_nothing() {
    let Some(network) = Network::new(2) else { return };
    let ears = UdpSocket::bind((network.our_address(), 0)).unwrap();
    ears.set_read_timeout(Some(BOUND)).unwrap();
    let port = ears.local_addr().unwrap().port();
    network.deafen(0);
    let script = format!("echo hello > /dev/udp/{}/{port}", network.our_address());
    assert!(network.command(0, "bash").args(["-c", &script]).status().unwrap().success());
    let mut said = [0; 6];
    ears.recv_from(&mut said).unwrap();
    assert_eq!(&said, b"hello\n");
    assert!(!reaches(&network, 0, network.our_address()), "there is no answer");
    assert!(!reaches(&network, 1, network.address(0)));
    assert!(reaches(&network, 1, network.our_address()));
    network.heal(0);
    wait_until("the node", || reaches(&network, 0, network.our_address()));
}

#[test]
fn networks_side_by_side_do_not_meet() {
    let (Some(one), Some(other)) = (Network::new(1), Network::new(1)) else { return };
    assert_ne!(one.address(0), other.address(0));
    assert!(!reaches(&one, 0, other.address(0)));
}

#[test]
fn nothing_is_left_of_a_network() {
    let Some(network) = Network::new(2) else { return };
    let word = format!("jf{}-", std::process::id());
    assert_eq!(left_of(&word).len(), 4, "two nodes, the hub and our end of the cable");
    let mut sleeper = network.command(0, "sleep").arg("600").spawn().unwrap();
    let pids =
        || Command::new("ip").args(["netns", "pids", &format!("{word}0-0")]).output().unwrap();
    wait_until("the sleeper", || {
        String::from_utf8_lossy(&pids().stdout).contains(&sleeper.id().to_string())
    });
    drop(network);
    assert!(!sleeper.wait().unwrap().success(), "it was ended");
    assert_eq!(left_of(&word), Vec::<String>::new());
}

#[test]
#[ignore = "nightly: a tool of other tests, which would fail with it"]
fn a_cluster_goes_on_without_a_server_that_is_cut_off() {
    let Some(network) = Network::new(3) else { return };
    let cluster = Cluster::start_in(&network, &[0, 1, 2]);
    let mut client = Raw::connect(&cluster.urls()[0]);
    client.create_stream("shared", 3);
    let leader = cluster.meta_leader().unwrap();
    network.cut(leader);
    let other = cluster.wait_for_meta_leader();
    assert_ne!(other, leader);
    assert!(cluster.servers()[leader].is_running(), "it lives, and nobody hears it");
    let ack = Raw::connect(&cluster.urls()[other]).ask_again("shared", "without it");
    assert_eq!(ack["stream"], "shared", "{ack}");
    let address = cluster.servers()[leader].address();
    assert!(TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err());
    network.heal(leader);
    cluster.wait_until_well();
}
