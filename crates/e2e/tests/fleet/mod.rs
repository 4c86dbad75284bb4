//! Many daemons as one Jackfield: hosts and gateways on a cluster of three NATS servers.

mod archive;
mod crowd;
mod deploy;
mod drain;
mod loss;
mod operate;
mod partition;
mod reach;
mod servers;
mod shift;

use jackfield_e2e::{Client, Daemon, Home, home::binary};
use jackfield_testkit::{nats::Cluster, netns::Network};
use serde_json::json;
use std::path::Path;

/// One daemon of the fleet; each has a home of its own.
struct Member {
    home: Home,
    daemon: Option<Daemon>,
}

impl Member {
    fn start(cluster: &Cluster, role: &str, name: &str) -> Member {
        Member::launch(cluster, role, name, Home::serve)
    }

    /// A host whose configuration has this and whose command line that.
    fn start_with(cluster: &Cluster, name: &str, config: &str, flags: &[&str]) -> Member {
        Member::launch(cluster, "host", name, |home, args| {
            std::fs::create_dir_all(home.path().join("config")).unwrap();
            std::fs::write(home.path().join("config/config.toml"), config).unwrap();
            home.serve(&[args, flags].concat())
        })
    }

    /// A host on a node of a network.
    fn start_on(network: &Network, node: usize, cluster: &Cluster, name: &str) -> Member {
        let launcher = network.command(node, binary("jackfield"));
        Member::launch(cluster, "host", name, |home, args| home.serve_by(launcher, args))
    }

    fn launch(
        cluster: &Cluster,
        role: &str,
        name: &str,
        serve: impl FnOnce(&Home, &[&str]) -> Daemon,
    ) -> Member {
        let home = Home::new();
        let (servers, replicas) = (cluster.urls().join(","), cluster.servers().len().to_string());
        let flags = ["--fleet", &servers, "--role", role, "--host-name", name];
        let cell = ["--shards", "4", "--replicas", &replicas];
        let daemon = serve(&home, &[&flags[..], &cell[..]].concat());
        Member { home, daemon: Some(daemon) }
    }

    fn kill_9(&mut self) {
        self.daemon.take().expect("it runs").kill_9();
    }

    fn stop(&mut self) {
        self.daemon.take().expect("it runs").stop();
    }

    /// A client on this member's socket whose sessions have the fake agent.
    fn client(&self, agent: &[String]) -> Client {
        let mut client = self.home.dial();
        let agent = json!({ "agent": { "name": "fake", "argv": agent } });
        client.notify("_jackfield/connect", &agent);
        client.hello_aware();
        client
    }
}

/// An agent that keeps what it was told where every host finds it.
fn agent(home: &Home, dir: &Path) -> Vec<String> {
    home.fake_agent(&["--state", dir.to_str().unwrap()])
}
