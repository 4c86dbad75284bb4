//! A network of simulated machines: network namespaces that can be cut off.
//!
//! Each node is a namespace with one interface. All interfaces are ports of a bridge, which has its own namespace, so
//! that the firewall of this machine does not apply. This process is connected to the same bridge: it reaches every node
//! that is not cut off, and is reached.

use crate::{cleanup::CleanupShell, wait::wait_for};
use std::{
    ffi::OsStr,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// The limit for a link to come up.
const BOUND: Duration = Duration::from_secs(20);

/// The addresses of a /28 prefix without the network, its broadcast and this process.
const NODES_MAX: usize = 13;

/// The folders of administration tools, which may be missing from the search path.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Interfaces are deleted first, because a namespace is destroyed later than it is removed.
const CLEANUP_SCRIPT: &str = r#"
PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
ip link del "$1"
for it in /run/netns/"$1"-*; do
    it=${it##*/}
    for pid in $(ip netns pids "$it"); do kill -9 "$pid"; done
    ip -n "$it" link del eth0
    ip netns del "$it"
done
"#;

/// Everything in it is removed when it is dropped and when the test is killed; processes in it are killed.
#[derive(Debug)]
pub struct Network {
    /// The name of this process's interface, and the prefix of the namespaces. It contains the pid.
    name: String,
    /// The address of this process; the nodes have the next ones.
    own_address: Ipv4Addr,
    size: usize,
    _cleanup: CleanupShell,
}

impl Network {
    /// Creates this many nodes, numbered from 0. Returns `None`, and prints so, if it lacks permission.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported")]
    pub fn new(size: usize) -> Option<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        assert!(size <= NODES_MAX, "the limit is {NODES_MAX} nodes");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("jf{}-{number}", std::process::id());
        let hub = format!("{name}-hub");
        let cleanup = CleanupShell::new(CLEANUP_SCRIPT, &name);
        if let Err(why) = try_ip(&["netns", "add", &hub]) {
            let refused = ["not permitted", "denied", "No such file"];
            assert!(refused.iter().any(|it| why.contains(it)), "{why}");
            eprintln!("skipped: network namespaces need root. {why}");
            return None;
        }
        run_ip(&["-n", &hub, "link", "add", "bridge", "type", "bridge"]);
        run_ip(&["-n", &hub, "link", "set", "bridge", "up"]);
        run_ip(&["-n", &hub, "link", "add", "island", "type", "bridge"]);
        run_ip(&["-n", &hub, "link", "set", "island", "up"]);
        run_ip(&["link", "add", &name, "type", "veth", "peer", "name", "port", "netns", &hub]);
        run_ip(&["-n", &hub, "link", "set", "port", "master", "bridge", "up"]);
        run_ip(&["link", "set", &name, "up"]);
        let own_address = claim_prefix(&name);
        let network = Network { name, own_address, size, _cleanup: cleanup };
        (0..size).for_each(|node| network.add(node));
        (0..size).for_each(|node| network.wait_until_reachable(node));
        Some(network)
    }

    fn add(&self, node: usize) {
        let (name, hub, port) = (&*self.namespace(node), &*self.hub(), &*port(node));
        let address = format!("{}/28", self.address(node));
        run_ip(&["netns", "add", name]);
        run_ip(&[
            "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name,
        ]);
        run_ip(&["-n", hub, "link", "set", port, "master", "bridge", "up"]);
        run_ip(&["-n", name, "addr", "add", &address, "dev", "eth0"]);
        run_ip(&["-n", name, "link", "set", "eth0", "up"]);
        run_ip(&["-n", name, "link", "set", "lo", "up"]);
    }

    /// The address of a node.
    pub fn address(&self, node: usize) -> Ipv4Addr {
        assert!(node < self.size, "the network has {} nodes", self.size);
        let node = u32::try_from(node).expect("there are few");
        Ipv4Addr::from_bits(self.own_address.to_bits() + 1 + node)
    }

    /// The address of this process.
    pub fn our_address(&self) -> Ipv4Addr {
        self.own_address
    }

    /// A program on a node. The started process is the program itself, without a wrapper.
    pub fn command(&self, node: usize, program: impl AsRef<OsStr>) -> Command {
        command_in(&self.namespace(node), program)
    }

    /// Takes the link of a node down: it reaches nothing and is not reached. Connections stay open.
    pub fn cut_off(&self, node: usize) {
        run_ip(&["-n", &self.hub(), "link", "set", &port(node), "down"]);
    }

    /// Moves a node to a second bridge, where it only reaches other isolated nodes.
    pub fn isolate(&self, node: usize) {
        run_ip(&["-n", &self.hub(), "link", "set", &port(node), "master", "island"]);
    }

    /// Drops all packets to a node. Packets from it still arrive, but no acknowledgment returns.
    pub fn block_incoming(&self, node: usize) {
        self.set_flooding(node, "off");
        let (hub, port) = (&*self.hub(), &*port(node));
        run_ip(&["-n", hub, "link", "set", port, "type", "bridge_slave", "fdb_flush"]);
    }

    /// Without flooding, a bridge forwards to a port only packets for addresses that it has learned there.
    fn set_flooding(&self, node: usize, set: &str) {
        let (hub, port) = (&*self.hub(), &*port(node));
        let floods = ["flood", set, "mcast_flood", set, "bcast_flood", set];
        let args = ["-n", hub, "link", "set", port, "type", "bridge_slave", "learning", set];
        run_ip(&[&args[..], &floods].concat());
    }

    /// Undoes every fault. The node is reachable when this returns.
    pub fn restore_link(&self, node: usize) {
        run_ip(&["-n", &self.hub(), "link", "set", &port(node), "master", "bridge", "up"]);
        self.set_flooding(node, "on");
        self.wait_until_reachable(node);
    }

    /// Packets that are sent right after a link comes up are often lost, so this waits for a response.
    fn wait_until_reachable(&self, node: usize) {
        let closed_port = SocketAddr::from((self.address(node), 9));
        wait_for(&format!("node {node}"), BOUND, || {
            let refused =
                TcpStream::connect_timeout(&closed_port, Duration::from_millis(100)).err()?;
            (refused.kind() == ErrorKind::ConnectionRefused).then_some(())
        });
    }

    pub(crate) fn namespace(&self, node: usize) -> String {
        assert!(node < self.size, "the network has {} nodes", self.size);
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

/// The name of the bridge port of a node.
fn port(node: usize) -> String {
    format!("port{node}")
}

/// Claims a prefix that no other network has, from the range reserved for network tests (198.18.0.0/15). Adding the route
/// claims it, because a route can exist only once.
fn claim_prefix(interface: &str) -> Ipv4Addr {
    let first = Ipv4Addr::new(198, 18, 0, 0).to_bits();
    for offset in 0..8192 {
        let number = (std::process::id() + offset) % 8192;
        let prefix = Ipv4Addr::from_bits(first + number * 16);
        let own_address = Ipv4Addr::from_bits(prefix.to_bits() + 1);
        match try_ip(&["route", "add", &format!("{prefix}/28"), "dev", interface]) {
            Ok(()) => {
                let address = format!("{own_address}/28");
                run_ip(&["addr", "add", &address, "dev", interface, "noprefixroute"]);
                return own_address;
            }
            Err(why) => assert!(why.contains("File exists"), "{why}"),
        }
    }
    panic!("all 8192 prefixes are taken");
}

fn run_ip(args: &[&str]) {
    if let Err(why) = try_ip(args) {
        panic!("{why}");
    }
}

fn try_ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).env("PATH", PATH).output();
    let output = output.map_err(|why| format!("`ip` does not start: {why}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let failed = || format!("`ip {}` failed: {}", args.join(" "), stderr.trim());
    output.status.success().then_some(()).ok_or_else(failed)
}
