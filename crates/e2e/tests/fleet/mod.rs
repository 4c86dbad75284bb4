//! Many daemons as one fleet: hosts and gateways on a cluster of three NATS servers.

mod archive;
mod away;
mod credentials;
mod crowd;
mod deploy;
mod drain;
mod home;
mod late_servers;
mod loss;
mod operate;
mod partition;
mod reach;
mod servers;
mod shift;
mod site;
mod storm;
mod web_api;

use jackfield_e2e::{Client, Daemon, Home, home::binary};
use jackfield_test_support::{nats::Cluster, netns::Network};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;

/// The stream of host announcements: an election there is the hardest fault.
const HOSTS: &str = "jackfield-hosts";

/// Hosts on one machine share all folders.
const SHARED: [&str; 2] = ["--shared", "/"];

/// One daemon of the fleet, with its own home.
struct Member {
    home: Home,
    daemon: Option<Daemon>,
}

impl Member {
    fn start(cluster: &Cluster, role: &str, name: &str) -> Member {
        Member::launch(cluster, role, name, |home, args| home.serve(&[args, &SHARED].concat()))
    }

    /// A host with these flags, which shares no folder unless they say so.
    fn start_alone(cluster: &Cluster, name: &str, flags: &[&str]) -> Member {
        Member::launch(cluster, "host", name, |home, args| home.serve(&[args, flags].concat()))
    }

    /// Starts the host again in the same home.
    fn start_again(&mut self, cluster: &Cluster, name: &str) {
        let flags = flags(cluster, "host", name);
        self.daemon = Some(self.home.serve(&flags.iter().map(String::as_str).collect::<Vec<_>>()));
    }

    /// A host with this configuration and these flags.
    fn start_with(cluster: &Cluster, name: &str, config: &str, flags: &[&str]) -> Member {
        Member::launch(cluster, "host", name, |home, args| {
            std::fs::create_dir_all(home.path().join("config")).unwrap();
            std::fs::write(home.path().join("config/config.toml"), config).unwrap();
            home.serve(&[args, &SHARED, flags].concat())
        })
    }

    /// A host on a node of a network.
    fn start_on(network: &Network, node: usize, cluster: &Cluster, name: &str) -> Member {
        let launcher = network.command(node, binary("jackfield"));
        Member::launch(cluster, "host", name, |home, args| {
            home.serve_by(launcher, &[args, &SHARED].concat())
        })
    }

    fn launch(
        cluster: &Cluster,
        role: &str,
        name: &str,
        serve: impl FnOnce(&Home, &[&str]) -> Daemon,
    ) -> Member {
        let home = Home::new();
        let flags = flags(cluster, role, name);
        let daemon = serve(&home, &flags.iter().map(String::as_str).collect::<Vec<_>>());
        Member { home, daemon: Some(daemon) }
    }

    fn kill_9(&mut self) {
        self.daemon.take().expect("it runs").kill_9();
    }

    fn signal(&self, signal: Signal) {
        self.daemon.as_ref().expect("it runs").signal(signal);
    }

    fn stop(&mut self) {
        self.daemon.take().expect("it runs").stop();
    }

    /// A client on this member's socket whose sessions use the fake agent.
    fn client(&self, agent: &[String]) -> Client {
        let mut client = self.home.dial();
        let agent = json!({ "agent": { "name": "fake", "argv": agent } });
        client.notify("_jackfield/connect", &agent);
        client.hello_aware();
        client
    }
}

fn flags(cluster: &Cluster, role: &str, name: &str) -> Vec<String> {
    let (servers, replicas) = (cluster.urls().join(","), cluster.servers().len().to_string());
    let flags = ["--fleet", &servers, "--role", role, "--host-name", name];
    let cell = ["--shards", "4", "--replicas", &replicas];
    [&flags[..], &cell[..]].concat().into_iter().map(str::to_owned).collect()
}

/// The host of a session according to a list.
fn host_of(rows: &Value, id: &str) -> String {
    let rows = rows["sessions"].as_array().expect("a list");
    let row = rows.iter().find(|it| it["sessionId"] == *id).expect("it is listed");
    row["host"].as_str().unwrap_or("nobody").to_owned()
}

/// An agent whose state folder is available to every host.
fn agent(home: &Home, dir: &Path) -> Vec<String> {
    home.fake_agent(&["--state", dir.to_str().unwrap()])
}
