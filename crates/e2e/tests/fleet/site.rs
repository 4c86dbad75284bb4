//! Three hosts and three servers, each on its own node, two gateways on this machine, and the faults of a host or a
//! server.

use super::{HOSTS, Member, crowd::BOUND};
use jackfield_e2e::wait_for;
use jackfield_test_support::{nats::Cluster, netns::Network};
use rustix::process::Signal;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

pub(crate) const NAMES: [&str; 3] = ["one", "two", "three"];
const SERVERS: [usize; 3] = [0, 1, 2];

/// A fault, of a host unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its link is down.
    Cut,
    /// It receives nothing. Its messages arrive, so that others consider it alive.
    Deaf,
    /// The leader of the host announcements is cut off together with it, and accepts its announcements for a while; the
    /// others do not receive them.
    WithTheLeader,
    /// Its daemon is stopped by a signal; its agents are not.
    Still,
    Killed,
    /// It is asked to stop.
    Ended,
    /// The server with the same number is killed.
    ServerKilled,
    ServerCut,
}

pub(crate) struct Site {
    pub(crate) hosts: [Member; 3],
    pub(crate) gateways: [Member; 2],
    cluster: Cluster,
    /// Nodes with a fault.
    hurt: BTreeSet<usize>,
    /// Dropped last, because processes in it are killed with it.
    network: Network,
}

impl Site {
    /// `None` if networks cannot be created.
    pub(crate) fn new() -> Option<Site> {
        let network = Network::new(SERVERS.len() + NAMES.len())?;
        let cluster = Cluster::start_in(&network, &SERVERS);
        let hosts = [0, 1, 2].map(|it| host(&network, &cluster, it));
        let gateways = ["in", "out"].map(|it| Member::start(&cluster, "gateway", it));
        Some(Site { hosts, gateways, cluster, hurt: BTreeSet::new(), network })
    }

    /// The file in which agents record when they are alive and which sessions they have.
    pub(crate) fn witness(&self) -> PathBuf {
        self.gateways[0].home.path().join("witness")
    }

    pub(crate) fn befall(&mut self, trouble: Trouble, number: usize) {
        let node = SERVERS.len() + number;
        let host = &mut self.hosts[number];
        match trouble {
            Trouble::Cut => self.network.cut_off(node),
            Trouble::Deaf => self.network.block_incoming(node),
            Trouble::WithTheLeader => {
                let leader = self.cluster.wait_for_leader_of(HOSTS);
                self.network.isolate(node);
                self.network.isolate(leader);
                self.hurt.insert(leader);
            }
            Trouble::Still => return host.signal(Signal::STOP),
            Trouble::Killed => return host.kill_9(),
            Trouble::Ended => return host.stop(),
            Trouble::ServerKilled => return self.cluster.kill_9(number),
            Trouble::ServerCut => {
                self.network.cut_off(number);
                self.hurt.insert(number);
                return;
            }
        }
        self.hurt.insert(node);
    }

    /// Undoes every fault; every host accepts new sessions afterwards.
    pub(crate) fn heal(&mut self) {
        for node in std::mem::take(&mut self.hurt) {
            self.network.restore_link(node);
        }
        for number in SERVERS {
            if !self.cluster.servers()[number].is_running() {
                self.cluster.restart(number);
            }
        }
        self.cluster.wait_until_well();
        for number in 0..NAMES.len() {
            let it = &mut self.hosts[number];
            if it.daemon.as_mut().is_some_and(|it| it.ended().is_none()) {
                it.signal(Signal::CONT);
            } else {
                *it = host(&self.network, &self.cluster, number);
            }
        }
        for name in NAMES {
            self.wait_until_it_serves(name);
        }
    }

    /// Opens a session on a host, with retries.
    fn wait_until_it_serves(&self, host: &str) {
        let gateway = &self.gateways[0];
        let mut client = gateway.client(&gateway.home.fake_agent(&[]));
        let meta = json!({ "jackfield": { "labels": [format!("host={host}")] } });
        let wish = json!({ "cwd": gateway.home.path(), "mcpServers": [], "_meta": meta });
        let id = wait_for(&format!("a session on host `{host}`"), BOUND, || {
            let answer = client.ask("session/new", &wish);
            answer["result"]["sessionId"].as_str().map(str::to_owned)
        });
        assert_eq!(client.prompt(&id, "hello"), "end_turn");
    }

    pub(crate) fn stop(&mut self) {
        self.gateways.iter_mut().for_each(Member::stop);
        self.hosts.iter_mut().for_each(Member::stop);
    }
}

fn host(network: &Network, cluster: &Cluster, number: usize) -> Member {
    Member::start_on(network, SERVERS.len() + number, cluster, NAMES[number])
}

/// For each time that a session got another agent, the microseconds without one. Panics if two agents had the same
/// session at the same time.
pub(crate) fn gaps(witness: &Path) -> Vec<i64> {
    let text = fs::read_to_string(witness).expect("agents write it");
    let mut last_alive: BTreeMap<&str, i64> = BTreeMap::new();
    let mut had: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.last().and_then(|it| it.parse().ok()).expect("a time");
        last_alive.insert(words[0], at);
        if let ["has", session] = words[1..words.len() - 1] {
            had.entry(session).or_default().push((at, words[0]));
        }
    }
    let mut gaps = Vec::new();
    for (session, mut agents) in had {
        agents.sort_unstable();
        for pair in agents.windows(2) {
            let gap = pair[1].0 - last_alive[pair[0].1];
            assert!(0 < gap, "two agents had {session} at the same time: {pair:?}, {gap} us");
            gaps.push(gap);
        }
    }
    gaps
}
