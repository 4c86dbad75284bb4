//! Machines of our own on one cable, as the network sees them: namespaces that can be cut off.
//!
//! Each node is a namespace with one interface, and all of them meet in a bridge, which has a namespace
//! for itself so that no firewall of this machine has a say in what passes. We are on the same cable: this
//! process reaches every node that is not cut off, and is reached.

use crate::{sweeper::Sweeper, wait::wait_for};
use std::{
    ffi::OsStr,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// For a cable to be plugged in.
const BOUND: Duration = Duration::from_secs(20);

/// With us, the network and its broadcast, what a prefix of 28 bits has room for.
const NODES_MAX: usize = 13;

/// Where programs for an administrator are; not everybody has that in the path.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Interfaces go first, because a namespace is taken down later than it is removed.
const SWEEP: &str = r#"
PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
ip link del "$1"
for it in /run/netns/"$1"-*; do
    it=${it##*/}
    for pid in $(ip netns pids "$it"); do kill -9 "$pid"; done
    ip -n "$it" link del eth0
    ip netns del "$it"
done
"#;

/// Nothing is left of it when it is dropped, nor when the test is killed. What runs in it ends with it.
#[derive(Debug)]
pub struct Network {
    /// Of our interface, and before the names of its namespaces. It has our pid in it.
    name: String,
    /// The first address, which is ours; the nodes have the next ones.
    ours: Ipv4Addr,
    size: usize,
    _sweeper: Sweeper,
}

impl Network {
    /// So many nodes, numbered from 0. `None` only where it is not allowed; that is told.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub fn new(size: usize) -> Option<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        assert!(size <= NODES_MAX, "there is room for {NODES_MAX} nodes");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("jf{}-{number}", std::process::id());
        let hub = format!("{name}-hub");
        let sweeper = Sweeper::new(SWEEP, &name);
        if let Err(why) = ip(&["netns", "add", &hub]) {
            let refused = ["not permitted", "denied", "No such file"];
            assert!(refused.iter().any(|it| why.contains(it)), "{why}");
            eprintln!("left out: network namespaces are for root. {why}");
            return None;
        }
        must(&["-n", &hub, "link", "add", "bridge", "type", "bridge"]);
        must(&["-n", &hub, "link", "set", "bridge", "up"]);
        must(&["-n", &hub, "link", "add", "island", "type", "bridge"]);
        must(&["-n", &hub, "link", "set", "island", "up"]);
        must(&["link", "add", &name, "type", "veth", "peer", "name", "port", "netns", &hub]);
        must(&["-n", &hub, "link", "set", "port", "master", "bridge", "up"]);
        must(&["link", "set", &name, "up"]);
        let ours = claim_prefix(&name);
        let network = Network { name, ours, size, _sweeper: sweeper };
        (0..size).for_each(|node| network.add(node));
        (0..size).for_each(|node| network.wait_until_reached(node));
        Some(network)
    }

    fn add(&self, node: usize) {
        let (name, hub, port) = (&*self.namespace(node), &*self.hub(), &*port(node));
        let address = format!("{}/28", self.address(node));
        must(&["netns", "add", name]);
        must(&[
            "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name,
        ]);
        must(&["-n", hub, "link", "set", port, "master", "bridge", "up"]);
        must(&["-n", name, "addr", "add", &address, "dev", "eth0"]);
        must(&["-n", name, "link", "set", "eth0", "up"]);
        must(&["-n", name, "link", "set", "lo", "up"]);
    }

    /// Where a node is, for everybody in the network.
    pub fn address(&self, node: usize) -> Ipv4Addr {
        assert!(node < self.size, "there are {} nodes", self.size);
        let node = u32::try_from(node).expect("there are few");
        Ipv4Addr::from_bits(self.ours.to_bits() + 1 + node)
    }

    /// Where this process is, for every node.
    pub fn our_address(&self) -> Ipv4Addr {
        self.ours
    }

    /// A program on a node. The process that starts is the program: nothing stands in between.
    pub fn command(&self, node: usize, program: impl AsRef<OsStr>) -> Command {
        command_in(&self.namespace(node), program)
    }

    /// From now on nobody reaches the node, nor it anybody: its cable is pulled. Connections stay open.
    pub fn cut(&self, node: usize) {
        must(&["-n", &self.hub(), "link", "set", &port(node), "down"]);
    }

    /// From now on the node reaches nobody but those who are on the island as well.
    pub fn maroon(&self, node: usize) {
        must(&["-n", &self.hub(), "link", "set", &port(node), "master", "island"]);
    }

    /// From now on the node hears nothing. What it says still arrives, and nobody who needs an answer
    /// to be sure of that will have one.
    pub fn deafen(&self, node: usize) {
        self.set_hearing(node, "off");
        let (hub, port) = (&*self.hub(), &*port(node));
        must(&["-n", hub, "link", "set", port, "type", "bridge_slave", "fdb_flush"]);
    }

    /// Without floods a bridge hands a port only what is for those whom it has learned are there.
    fn set_hearing(&self, node: usize, set: &str) {
        let (hub, port) = (&*self.hub(), &*port(node));
        let floods = ["flood", set, "mcast_flood", set, "bcast_flood", set];
        let words = ["-n", hub, "link", "set", port, "type", "bridge_slave", "learning", set];
        must(&[&words[..], &floods].concat());
    }

    /// Whatever was wrong, it is reached again when this returns.
    pub fn heal(&self, node: usize) {
        must(&["-n", &self.hub(), "link", "set", &port(node), "master", "bridge", "up"]);
        self.set_hearing(node, "on");
        self.wait_until_reached(node);
    }

    /// What is sent right after a link is set up is often lost, although the link is said to be up.
    fn wait_until_reached(&self, node: usize) {
        let nobody = SocketAddr::from((self.address(node), 9));
        wait_for(&format!("node {node}"), BOUND, || {
            let refused = TcpStream::connect_timeout(&nobody, Duration::from_millis(100)).err()?;
            (refused.kind() == ErrorKind::ConnectionRefused).then_some(())
        });
    }

    pub(crate) fn namespace(&self, node: usize) -> String {
        assert!(node < self.size, "there are {} nodes", self.size);
        format!("{}-{node}", self.name)
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }
}

pub(crate) fn command_in(namespace: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.env("PATH", PATH).args(["netns", "exec", namespace]).arg(program);
    command
}

/// The node's end of the cable at the bridge.
fn port(node: usize) -> String {
    format!("port{node}")
}

/// A prefix that no other network has, out of the range that is meant for tests of networks. The route
/// is what claims it: there can be only one.
fn claim_prefix(interface: &str) -> Ipv4Addr {
    let first = Ipv4Addr::new(198, 18, 0, 0).to_bits();
    for offset in 0..8192 {
        let number = (std::process::id() + offset) % 8192;
        let prefix = Ipv4Addr::from_bits(first + number * 16);
        let ours = Ipv4Addr::from_bits(prefix.to_bits() + 1);
        match ip(&["route", "add", &format!("{prefix}/28"), "dev", interface]) {
            Ok(()) => {
                let address = format!("{ours}/28");
                must(&["addr", "add", &address, "dev", interface, "noprefixroute"]);
                return ours;
            }
            Err(why) => assert!(why.contains("File exists"), "{why}"),
        }
    }
    panic!("there are 8192 networks already");
}

fn must(words: &[&str]) {
    if let Err(why) = ip(words) {
        panic!("{why}");
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).env("PATH", PATH).output();
    let output = output.map_err(|why| format!("`ip` does not start: {why}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = || format!("`ip {}` failed: {}", words.join(" "), said.trim());
    output.status.success().then_some(()).ok_or_else(failed)
}
