//! One NATS server or a cluster of several, for the time of a test.

use super::server::{BOUND, Server, ServerLocation};
use crate::{
    cleanup::CleanupShell, loopback::own_loopback, netns::Network, small_disk::SmallDisk,
    wait::wait_for,
};
use rustix::process::Signal;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
};

/// Kills remaining servers, whose command line contains the folder of this cluster, and removes their files and disks. A
/// server that is just starting finds its configuration missing.
const CLEANUP_SCRIPT: &str = r#"
for try in 1 2 3 4 5 6 7 8 9 10; do
    found=$(echo "$1/server-" | grep -lFf - /proc/[0-9]*/cmdline)
    for it in $found; do
        it=${it#/proc/}
        kill -9 "${it%/cmdline}"
    done
    for it in $(grep -o " $1/[^ ]*" /proc/mounts); do umount -l "$it"; done
    [ -z "$found" ] && rm -rf "$1" && break
    sleep 0.1
done
"#;

/// Everything is removed when it is dropped and when the test is killed.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    disk: Option<SmallDisk>,
    /// Dropped last, after all servers have exited.
    _cleanup: CleanupShell,
}

impl Cluster {
    /// Starts this many servers, numbered from 0, on loopback. A single server has no cluster configuration; otherwise use
    /// an odd number. Waits until all are healthy and have a leader.
    pub fn start(size: usize) -> Cluster {
        let mut cluster = Cluster::prepare(ServerLocation::on_loopback(own_loopback(), size));
        cluster.launch();
        cluster
    }

    /// The same, and one server has a disk of this many bytes. Returns `None`, and prints so, if such a disk cannot be
    /// mounted.
    pub fn start_with_small_disk(size: usize, number: usize, bytes: u64) -> Option<Cluster> {
        let mut cluster = Cluster::prepare(ServerLocation::on_loopback(own_loopback(), size));
        let disk = SmallDisk::mount(&cluster.servers[number].store(), bytes)?;
        cluster.disk = Some(disk);
        cluster.launch();
        Some(cluster)
    }

    /// The same with one server on each of these nodes, in this order. This process reaches those that are not cut off.
    pub fn start_in(network: &Network, nodes: &[usize]) -> Cluster {
        let places = nodes.iter().map(|node| ServerLocation::Node {
            namespace: network.namespace(*node),
            address: network.address(*node),
        });
        let mut cluster = Cluster::prepare(places.collect());
        cluster.launch();
        cluster
    }

    /// Starts one server on loopback with a configuration of the test, which depends on the addresses for clients and for
    /// servers and on the store. Waits until it accepts clients.
    pub fn start_with(
        configuration: impl FnOnce(SocketAddr, SocketAddr, &Path) -> String,
    ) -> Cluster {
        let mut cluster = Cluster::place(ServerLocation::on_loopback(own_loopback(), 1));
        cluster.servers[0].configure_with(configuration);
        cluster.restart(0);
        cluster
    }

    fn prepare(places: Vec<ServerLocation>) -> Cluster {
        let cluster = Cluster::place(places);
        let routes: Vec<_> = cluster.servers.iter().map(|it| it.routes).collect();
        for server in &cluster.servers {
            server.configure(&routes);
        }
        cluster
    }

    fn place(places: Vec<ServerLocation>) -> Cluster {
        let dir = new_dir();
        let cleanup = CleanupShell::new(CLEANUP_SCRIPT, &dir);
        let servers = (1..).zip(places).map(|(n, place)| Server::new(format!("n{n}"), &dir, place));
        Cluster { servers: servers.collect(), disk: None, _cleanup: cleanup }
    }

    fn launch(&mut self) {
        for server in &mut self.servers {
            server.launch();
        }
        for server in &mut self.servers {
            server.wait_until_ready();
        }
        self.wait_until_well();
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The URLs of all servers, including those that do not run.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// The number of the server with this name.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|it| it.name() == name)
    }

    /// The meta leader: a server that reports itself, and that a majority reports. A single server leads.
    pub fn meta_leader(&self) -> Option<usize> {
        if let [alone] = &*self.servers {
            return alone.is_running().then_some(0);
        }
        let reported: Vec<_> = self.servers.iter().map(Server::meta_leader).collect();
        (0..self.servers.len()).find(|number| {
            let name = Some(self.servers[*number].name());
            let agree = reported.iter().filter(|it| it.as_deref() == name).count();
            reported[*number].as_deref() == name && self.servers.len() < 2 * agree
        })
    }

    /// Waits for a meta leader. Needs a majority of the servers.
    pub fn wait_for_meta_leader(&self) -> usize {
        wait_for("a meta leader", BOUND, || self.meta_leader())
    }

    /// Waits for a server that leads this stream.
    pub fn wait_for_leader_of(&self, stream: &str) -> usize {
        wait_for(&format!("a leader of {stream}"), BOUND, || {
            self.servers.iter().position(|it| it.leads(stream))
        })
    }

    /// Waits until every running server is healthy and there is a leader. Needs a majority of the servers.
    pub fn wait_until_well(&self) {
        wait_for("a healthy cluster", BOUND, || {
            let mut running = self.servers.iter().filter(|it| it.is_running());
            (running.all(Server::is_healthy) && self.meta_leader().is_some()).then_some(())
        });
    }

    /// Sends SIGKILL; the server has exited when this returns.
    pub fn kill_9(&mut self, number: usize) {
        self.servers[number].kill_9();
    }

    /// Starts the server again on the same ports and store. It accepts clients when this returns, but the cluster may not
    /// be healthy, which needs a majority.
    pub fn restart(&mut self, number: usize) {
        self.servers[number].launch();
        self.servers[number].wait_until_ready();
    }

    /// Sends SIGTERM; the server has exited when this returns.
    pub fn stop(&mut self, number: usize) {
        self.servers[number].signal(Signal::TERM);
        self.servers[number].wait_until_exited();
    }

    /// Puts the server into lame duck mode: it accepts no more clients, disconnects the present ones one by one after a
    /// second, and exits. Returns at once.
    pub fn lame_duck(&mut self, number: usize) {
        self.servers[number].signal(Signal::USR2);
    }

    /// Waits until a server in lame duck mode has exited.
    pub fn wait_until_gone(&mut self, number: usize) {
        self.servers[number].wait_until_exited();
    }

    /// Fills the small disk to the last byte.
    pub fn fill_disk(&self) {
        self.disk().fill();
    }

    /// Frees the space that `fill_disk` used.
    pub fn empty_disk(&self) {
        self.disk().empty();
    }

    fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().expect("it was started with a small disk")
    }

    /// Prints the end of each log after a failure.
    #[expect(clippy::print_stderr, reason = "a failed test prints what is known")]
    fn print_logs(&self) {
        for server in &self.servers {
            let log = server.said();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            eprintln!("last log lines of {}:\n{}", server.name(), last.join("\n"));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            self.print_logs();
        }
        for server in self.servers.iter_mut().filter(|it| it.is_running()) {
            server.kill_9();
        }
    }
}

/// The folder of a cluster, which the cleanup script removes.
fn new_dir() -> PathBuf {
    let dir = tempfile::Builder::new().prefix("jf-nats-").tempdir();
    dir.expect("a temporary directory").keep()
}
