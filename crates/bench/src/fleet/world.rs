//! Three servers, a host and a gateway, each a process of its own on this machine.

use super::{FleetOptions, usage::Usage};
use crate::way::Bench;
use anyhow::{Result, bail, ensure};
use jackfield_test_support::nats::{Cluster, Server};
use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Servers, each of which has everything: what whoever runs a fleet has.
pub(crate) const SERVERS: usize = 3;
/// What a cell has unless it is told otherwise.
pub(crate) const SHARDS: u16 = 64;
/// Of a name: one that was killed keeps its own until its lease has ended.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// For what takes seconds.
const BOUND: Duration = Duration::from_mins(2);

pub(crate) struct World {
    // Members end before their servers do.
    pub(crate) host: Bench,
    pub(crate) gateway: Bench,
    pub(crate) cluster: Cluster,
}

impl World {
    /// `config` is the host's configuration file.
    pub(crate) fn start(options: &FleetOptions, config: &str) -> Result<World> {
        let cluster = Cluster::start(SERVERS);
        let (host, _) = member(options, &cluster, "host", config)?;
        let (gateway, _) = member(options, &cluster, "gateway", "")?;
        let world = World { host, gateway, cluster };
        world.wait("the host", |load| load.is_some())?;
        Ok(world)
    }

    /// What everybody has used so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let servers = self.cluster.servers().iter().filter_map(Server::pid);
        Usage::now(servers, self.host.daemon_pid(), self.gateway.daemon_pid())
    }

    /// Waits until the host says something of itself: how many sessions and how many agents it has.
    pub(crate) fn wait(
        &self,
        what: &str,
        mut so: impl FnMut(Option<(u64, u64)>) -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        while !so(self.load()?) {
            if BOUND < begin.elapsed() {
                bail!("waited {BOUND:?} in vain for {what}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn load(&self) -> Result<Option<(u64, u64)>> {
        let servers = self.cluster.urls().join(",");
        let mut command = self.gateway.command();
        let output = command.args(["fleet", "hosts", "--format", "json", "--fleet", &servers]);
        let output = output.output()?;
        ensure!(output.status.success(), "`jackfield fleet hosts` failed");
        let hosts: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let host = &hosts["hosts"][0];
        Ok(host["sessions"].as_u64().zip(host["live"].as_u64()))
    }
}

/// Starts one daemon of the fleet; says how long it took until it answered on its socket.
pub(crate) fn member(
    options: &FleetOptions,
    cluster: &Cluster,
    role: &str,
    config: &str,
) -> Result<(Bench, Duration)> {
    let mut member = Bench::new(options.jackfield.clone(), options.agent.clone())?;
    let folder = member.dir.path().join("config");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("config.toml"), config)?;
    let (servers, replicas) = (cluster.urls().join(","), SERVERS.to_string());
    let name = format!("{role}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let flags = ["--fleet", &servers, "--role", role, "--host-name", &name, "--shared", "/"];
    let begin = Instant::now();
    member.serve(&[&flags[..], &["--replicas", &replicas]].concat())?;
    member.hub_only()?.initialize()?;
    Ok((member, begin.elapsed()))
}
