//! One server or several that are one NATS, for as long as a test needs them.

use super::server::{BOUND, Place, Server};
use crate::{
    loopback::own_loopback, netns::Network, small_disk::SmallDisk, sweeper::Sweeper, wait::wait_for,
};
use rustix::process::Signal;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
};

/// Ends what is left of the servers, whose command line names a file that only this cluster has, and
/// removes their files and disks. A server that is just being born finds its configuration gone.
const SWEEP: &str = r#"
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

/// Nothing is left of it when it is dropped, nor when the test is killed.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    disk: Option<SmallDisk>,
    /// Dropped last, when no server of ours runs any more.
    _sweeper: Sweeper,
}

impl Cluster {
    /// So many servers, numbered from 0, on loopback. One alone knows nothing of clusters; of several,
    /// take an odd number. Waits until all of them are well and have a leader.
    pub fn start(size: usize) -> Cluster {
        let mut cluster = Cluster::prepare(Place::on_loopback(own_loopback(), size));
        cluster.launch();
        cluster
    }

    /// The same, and one server has a disk of so many bytes. `None` only where such a disk cannot be had;
    /// that is told.
    pub fn start_with_small_disk(size: usize, number: usize, bytes: u64) -> Option<Cluster> {
        let mut cluster = Cluster::prepare(Place::on_loopback(own_loopback(), size));
        let disk = SmallDisk::mount(&cluster.servers[number].store(), bytes)?;
        cluster.disk = Some(disk);
        cluster.launch();
        Some(cluster)
    }

    /// The same with one server on each of these nodes, in this order. We reach those that are not cut off.
    pub fn start_in(network: &Network, nodes: &[usize]) -> Cluster {
        let places = nodes.iter().map(|node| Place::Node {
            namespace: network.namespace(*node),
            address: network.address(*node),
        });
        let mut cluster = Cluster::prepare(places.collect());
        cluster.launch();
        cluster
    }

    /// One server on loopback with a configuration of the test, which is made for its addresses for clients
    /// and for other servers and for its store. Waits until it greets clients.
    pub fn start_with(
        configuration: impl FnOnce(SocketAddr, SocketAddr, &Path) -> String,
    ) -> Cluster {
        let mut cluster = Cluster::place(Place::on_loopback(own_loopback(), 1));
        cluster.servers[0].configure_with(configuration);
        cluster.restart(0);
        cluster
    }

    fn prepare(places: Vec<Place>) -> Cluster {
        let cluster = Cluster::place(places);
        let routes: Vec<_> = cluster.servers.iter().map(|it| it.routes).collect();
        for server in &cluster.servers {
            server.configure(&routes);
        }
        cluster
    }

    fn place(places: Vec<Place>) -> Cluster {
        let dir = new_dir();
        let sweeper = Sweeper::new(SWEEP, &dir);
        let servers = (1..).zip(places).map(|(n, place)| Server::new(format!("n{n}"), &dir, place));
        Cluster { servers: servers.collect(), disk: None, _sweeper: sweeper }
    }

    fn launch(&mut self) {
        for server in &mut self.servers {
            server.launch();
        }
        for server in &mut self.servers {
            server.wait_until_it_greets();
        }
        self.wait_until_well();
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Of all servers, also of those that do not run.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// The number of the server that calls itself so.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|it| it.name() == name)
    }

    /// The server that places streams: it says so, and most of all servers agree. One alone is it.
    pub fn meta_leader(&self) -> Option<usize> {
        if let [alone] = &*self.servers {
            return alone.is_running().then_some(0);
        }
        let said: Vec<_> = self.servers.iter().map(Server::meta_leader).collect();
        (0..self.servers.len()).find(|number| {
            let name = Some(self.servers[*number].name());
            let agree = said.iter().filter(|it| it.as_deref() == name).count();
            said[*number].as_deref() == name && self.servers.len() < 2 * agree
        })
    }

    /// Waits for one. Needs most of the servers.
    pub fn wait_for_meta_leader(&self) -> usize {
        wait_for("a meta leader", BOUND, || self.meta_leader())
    }

    /// Waits for a server that leads this stream.
    pub fn wait_for_leader_of(&self, stream: &str) -> usize {
        wait_for(&format!("a leader of {stream}"), BOUND, || {
            self.servers.iter().position(|it| it.leads(stream))
        })
    }

    /// Waits until every server that runs is well, and there is a leader. Needs most of the servers.
    pub fn wait_until_well(&self) {
        wait_for("a cluster that is well", BOUND, || {
            let mut running = self.servers.iter().filter(|it| it.is_running());
            (running.all(Server::is_healthy) && self.meta_leader().is_some()).then_some(())
        });
    }

    /// SIGKILL; it is gone when this returns.
    pub fn kill_9(&mut self, number: usize) {
        self.servers[number].kill_9();
    }

    /// The same process again, on the same ports and store. It takes clients when this returns; that the
    /// cluster is well is another matter, and impossible while most of it is missing.
    pub fn restart(&mut self, number: usize) {
        self.servers[number].launch();
        self.servers[number].wait_until_it_greets();
    }

    /// SIGTERM; it is gone when this returns.
    pub fn stop(&mut self, number: usize) {
        self.servers[number].signal(Signal::TERM);
        self.servers[number].wait_until_it_ends();
    }

    /// It takes no more clients, sends those that it has elsewhere, one by one after a second, and ends.
    /// Returns at once.
    pub fn lame_duck(&mut self, number: usize) {
        self.servers[number].signal(Signal::USR2);
    }

    /// Waits for the end of a lame duck.
    pub fn wait_until_gone(&mut self, number: usize) {
        self.servers[number].wait_until_it_ends();
    }

    /// Fills the small disk to the last byte.
    pub fn fill_disk(&self) {
        self.disk().fill();
    }

    /// Makes the room again that `fill_disk` took.
    pub fn empty_disk(&self) {
        self.disk().empty();
    }

    fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().expect("it was started with a small disk")
    }

    /// Somebody will want to know why.
    #[expect(clippy::print_stderr, reason = "a test that fails says what it can")]
    fn tell(&self) {
        for server in &self.servers {
            let said = server.said();
            let lines: Vec<_> = said.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            eprintln!("last words of {}:\n{}", server.name(), last.join("\n"));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell();
        }
        for server in self.servers.iter_mut().filter(|it| it.is_running()) {
            server.kill_9();
        }
    }
}

/// The sweeper removes it.
fn new_dir() -> PathBuf {
    let dir = tempfile::Builder::new().prefix("jf-nats-").tempdir();
    dir.expect("a temporary directory").keep()
}
