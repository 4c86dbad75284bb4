//! Three hosts and three servers, each on a node of its own, with two gateways beside us; and what may happen
//! to a host or a server while sessions work.

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

/// What happens, to a host unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its cable is pulled.
    Cut,
    /// What it says arrives, so that others think that it lives; it never hears so.
    Deaf,
    /// Whoever leads the list of hosts is cut off together with it, and goes on taking what it says, for a
    /// while, and nobody else hears of it.
    WithTheLeader,
    /// Its daemon is stopped. Its agents are not.
    Still,
    Killed,
    /// It is told to end.
    Ended,
    /// The server of the same number is killed.
    ServerKilled,
    ServerCut,
}

pub(crate) struct Site {
    pub(crate) hosts: [Member; 3],
    pub(crate) gateways: [Member; 2],
    cluster: Cluster,
    /// Nodes that are not reached.
    hurt: BTreeSet<usize>,
    /// The last, because what runs in it ends with it.
    network: Network,
}

impl Site {
    /// `None` where networks may not be made.
    pub(crate) fn new() -> Option<Site> {
        let network = Network::new(SERVERS.len() + NAMES.len())?;
        let cluster = Cluster::start_in(&network, &SERVERS);
        let hosts = [0, 1, 2].map(|it| host(&network, &cluster, it));
        let gateways = ["in", "out"].map(|it| Member::start(&cluster, "gateway", it));
        Some(Site { hosts, gateways, cluster, hurt: BTreeSet::new(), network })
    }

    /// Where agents write down when they are alive, and which sessions they have.
    pub(crate) fn witness(&self) -> PathBuf {
        self.gateways[0].home.path().join("witness")
    }

    pub(crate) fn befall(&mut self, trouble: Trouble, number: usize) {
        let node = SERVERS.len() + number;
        let host = &mut self.hosts[number];
        match trouble {
            Trouble::Cut => self.network.cut(node),
            Trouble::Deaf => self.network.deafen(node),
            Trouble::WithTheLeader => {
                let leader = self.cluster.wait_for_leader_of(HOSTS);
                self.network.maroon(node);
                self.network.maroon(leader);
                self.hurt.insert(leader);
            }
            Trouble::Still => return host.signal(Signal::STOP),
            Trouble::Killed => return host.kill_9(),
            Trouble::Ended => return host.stop(),
            Trouble::ServerKilled => return self.cluster.kill_9(number),
            Trouble::ServerCut => {
                self.network.cut(number);
                self.hurt.insert(number);
                return;
            }
        }
        self.hurt.insert(node);
    }

    /// Whatever happened, everybody is there again, and every host takes new sessions.
    pub(crate) fn heal(&mut self) {
        for node in std::mem::take(&mut self.hurt) {
            self.network.heal(node);
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

    /// A host is tried until it takes a session.
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

/// For each time that a session got another agent: the microseconds for which nobody had it. Panics if two
/// agents were alive that had the same one.
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
