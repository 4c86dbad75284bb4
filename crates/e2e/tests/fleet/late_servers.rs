//! Members of a fleet that are started while the NATS servers are unavailable: they wait, unless waiting cannot help.

use super::{crowd::BOUND, flags};
use jackfield_e2e::{Daemon, Home, wait_for};
use jackfield_test_support::nats::Cluster;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const WAITS: &str = "waiting for the NATS servers of the fleet";

/// A member that was started and does not serve yet.
struct LateMember {
    home: Home,
    daemon: Daemon,
}

impl LateMember {
    fn launch(cluster: &Cluster, role: &str, name: &str) -> LateMember {
        let home = Home::new();
        let flags = flags(cluster, role, name);
        let daemon = home.launch(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        LateMember { home, daemon }
    }

    fn wait_until_it_waits(&mut self, cause: &str) {
        wait_for("word that it waits", BOUND, || {
            let ended = self.daemon.ended();
            assert!(ended.is_none(), "it ended: {ended:?}: {}", self.home.said());
            let said = self.home.said();
            said.lines().any(|it| it.contains(WAITS) && it.contains(cause)).then_some(())
        });
    }
}

#[test]
fn members_started_without_servers_or_quorum_wait_and_come_up_with_them() {
    let mut cluster = Cluster::start(3);
    (0..3).for_each(|it| cluster.kill_9(it));
    let mut host = LateMember::launch(&cluster, "host", "early");
    host.wait_until_it_waits("cannot reach NATS");

    // One server of three accepts clients and has no quorum.
    cluster.restart(0);
    let mut gateway = LateMember::launch(&cluster, "gateway", "in");
    let mut stopped = LateMember::launch(&cluster, "host", "stopped");
    gateway.wait_until_it_waits("JetStream");
    stopped.wait_until_it_waits("JetStream");
    stopped.daemon.signal(Signal::TERM);
    let status = wait_for("the end of a member that waits", BOUND, || stopped.daemon.ended());
    assert_eq!(status.code(), Some(0), "{}", stopped.home.said());

    // The streams of the fleet have three replicas, so creating them needs all servers.
    cluster.restart(1);
    cluster.restart(2);
    for member in [&mut host, &mut gateway] {
        member.home.wait_until_it_answers(&mut member.daemon);
    }
    gateway.daemon.stop();
    host.daemon.stop();
}

/// A server with two users: one has no permissions in JetStream.
fn server_with_users() -> Cluster {
    Cluster::start_with(|clients, _, store| {
        format!(
            "listen: \"{clients}\"\njetstream {{ store_dir: \"{}\" }}\n\
             authorization {{ users: [\n\
             {{ user: \"full\", password: \"right\" }}\n\
             {{ user: \"poor\", password: \"right\", permissions: {{ publish: \"nothing\" }} }}\n] }}\n",
            store.display()
        )
    })
}

#[test]
fn member_without_valid_credentials_or_permissions_exits_with_the_cause() {
    let cluster = server_with_users();
    let address = cluster.servers()[0].address();
    for (login, cause) in [("full:wrong", "authorization violation"), ("poor:right", "Violation")] {
        for role in ["host", "gateway"] {
            let home = Home::new();
            let server = format!("nats://{login}@{address}");
            let begin = Instant::now();
            let args = ["serve", "--fleet", &server, "--role", role, "--replicas", "1"];
            let done = home.run(&args, BOUND);
            let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!done.status.success(), "{login}, {role}");
            assert!(stderr.contains(cause), "{login}, {role}: {stderr}");
            assert!(!stderr.contains(WAITS), "{login}, {role}: {stderr}");
            assert!(begin.elapsed() < Duration::from_secs(10), "{login}, {role}");
        }
    }
}
