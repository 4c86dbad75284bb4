//! One server: its ports, its files and its process.

use super::monitor;
use crate::{netns::command_in, wait::wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    iter,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The timeout of operations that take well under a second on an idle machine.
pub(super) const BOUND: Duration = Duration::from_secs(30);

/// The largest message. Journal records are smaller, but frames of clients need not be.
const MAX_PAYLOAD: &str = "8MB";

/// The credentials of servers on a network, because our clients refuse to connect there without any.
const USER: &str = "fleet";
const PASSWORD: &str = "network-of-a-test";

/// Where a server runs.
#[derive(Debug)]
pub(super) enum ServerLocation {
    Loopback(ServerAddresses),
    /// Its own network namespace.
    Node {
        namespace: String,
        address: Ipv4Addr,
    },
}

/// The addresses for clients, for other servers and for monitoring.
type ServerAddresses = [SocketAddr; 3];

/// A server keeps its name, ports and store until its cluster is dropped, whether or not it runs.
#[derive(Debug)]
pub struct Server {
    name: String,
    /// The folder of the cluster.
    dir: PathBuf,
    location: ServerLocation,
    clients: SocketAddr,
    /// The address for other servers.
    pub(super) routes: SocketAddr,
    monitor: SocketAddr,
    process: Option<Child>,
}

impl Server {
    /// Writes no files yet.
    pub(super) fn new(name: String, dir: &Path, location: ServerLocation) -> Server {
        let [clients, routes, monitor] = location.ports();
        Server { name, dir: dir.to_owned(), location, clients, routes, monitor, process: None }
    }

    /// The server name, which clients see, too.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL for clients. It contains user and password if the server is on a network.
    pub fn url(&self) -> String {
        match self.location {
            ServerLocation::Loopback(_) => format!("nats://{}", self.clients),
            ServerLocation::Node { .. } => format!("nats://{USER}:{PASSWORD}@{}", self.clients),
        }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.clients
    }

    /// The address for other servers.
    pub fn route_address(&self) -> SocketAddr {
        self.routes
    }

    /// The number of connections to other servers.
    pub fn route_count(&self) -> u64 {
        monitor::route_count(self.monitor)
    }

    /// `None` while it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether its store is loaded and it has caught up with the others.
    pub fn is_healthy(&self) -> bool {
        self.is_running() && monitor::is_healthy(self.monitor)
    }

    /// The log of all its processes.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log()).unwrap_or_default()).into_owned()
    }

    /// The name of the meta leader according to this server.
    pub(super) fn meta_leader(&self) -> Option<String> {
        self.is_running().then(|| monitor::meta_leader(self.monitor))?
    }

    /// Whether the server reports that it leads this stream.
    pub(super) fn leads(&self, stream: &str) -> bool {
        let leader = self.is_running().then(|| monitor::stream_leader(self.monitor, stream));
        leader.flatten().is_some_and(|it| it == self.name)
    }

    pub(super) fn store(&self) -> PathBuf {
        self.dir.join(format!("store-{}", self.name))
    }

    fn log(&self) -> PathBuf {
        self.dir.join(format!("log-{}", self.name))
    }

    /// The cleanup script finds the processes by this path.
    fn config(&self) -> PathBuf {
        self.dir.join(format!("server-{}.conf", self.name))
    }

    /// Every write is synced before it is acknowledged, as a production fleet should do it.
    pub(super) fn configure(&self, routes: &[SocketAddr]) {
        let (name, clients, monitor) = (&self.name, self.clients, self.monitor);
        let (store, cluster) = (self.store(), self.cluster(routes));
        let authorization = match self.location {
            ServerLocation::Loopback(_) => String::new(),
            ServerLocation::Node { .. } => {
                format!("authorization {{ user: {USER}, password: {PASSWORD} }}\n")
            }
        };
        fs::create_dir_all(&store).expect("the folder is writable");
        let store = store.display();
        let text = format!(
            "server_name: {name}\n\
             listen: \"{clients}\"\n\
             http: \"{monitor}\"\n\
             max_payload: {MAX_PAYLOAD}\n\
             ping_interval: \"2s\"\n\
             ping_max: 2\n\
             lame_duck_grace_period: \"1s\"\n\
             jetstream {{ store_dir: \"{store}\", sync_interval: always, max_file_store: 64GB }}\n\
             {authorization}{cluster}"
        );
        fs::write(self.config(), text).expect("the folder is writable");
    }

    /// Writes a configuration of the test.
    pub(super) fn configure_with(
        &self,
        configuration: impl FnOnce(SocketAddr, SocketAddr, &Path) -> String,
    ) {
        let text = configuration(self.clients, self.routes, &self.store());
        let text = format!("{text}\nhttp: \"{}\"\n", self.monitor);
        fs::write(self.config(), text).expect("the folder is writable");
    }

    /// A single server has no cluster, because it would wait for a leader election.
    fn cluster(&self, routes: &[SocketAddr]) -> String {
        if routes.len() == 1 {
            return String::new();
        }
        let own_address = self.routes;
        let routes: Vec<_> = routes.iter().map(|it| format!("\"nats://{it}\"")).collect();
        let routes = routes.join(", ");
        format!("cluster {{ name: jackfield, listen: \"{own_address}\", routes: [{routes}] }}\n")
    }

    /// Starts the process and does not wait for it.
    pub(super) fn launch(&mut self) {
        assert!(!self.is_running(), "{} is already running", self.name);
        let log = File::options().create(true).append(true).open(self.log());
        let mut command = self.location.command();
        command.arg("-c").arg(self.config()).current_dir(&self.dir);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the folder is writable"));
        self.process = Some(command.spawn().expect("nats-server starts"));
    }

    pub(super) fn wait_until_ready(&mut self) {
        wait_for(&format!("a ready server {}", self.name), BOUND, || {
            let process = self.process.as_mut().expect("it was launched");
            let ended = process.try_wait().expect("the child can be waited for");
            assert!(ended.is_none(), "{} exited at once: {ended:?}", self.name);
            monitor::accepts_clients(self.clients).then_some(())
        });
    }

    pub(super) fn kill_9(&mut self) {
        self.signal(Signal::KILL);
        self.wait_until_exited();
    }

    pub(super) fn signal(&self, signal: Signal) {
        let Some(process) = &self.process else { panic!("{} does not run", self.name) };
        // The process is not reaped yet, so its pid is not reused.
        let _ended_by_itself = kill_process(Pid::from_child(process), signal);
    }

    pub(super) fn wait_until_exited(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        wait_for(&format!("the exit of {}", self.name), BOUND, || {
            process.try_wait().expect("the child can be waited for")
        });
    }
}

impl ServerLocation {
    /// Reserves this many free ports on the address. All are held together, so that they differ.
    pub(super) fn on_loopback(address: Ipv4Addr, size: usize) -> Vec<ServerLocation> {
        let bind = || TcpListener::bind((address, 0)).expect("a free port exists");
        let held: Vec<_> = iter::repeat_with(|| [bind(), bind(), bind()]).take(size).collect();
        let port = |it: &TcpListener| it.local_addr().expect("the listener is bound");
        held.iter().map(|it| ServerLocation::Loopback(it.each_ref().map(port))).collect()
    }

    fn ports(&self) -> ServerAddresses {
        match self {
            ServerLocation::Loopback(ports) => *ports,
            ServerLocation::Node { address, .. } => {
                [4222, 6222, 8222].map(|it| (*address, it).into())
            }
        }
    }

    fn command(&self) -> Command {
        match self {
            ServerLocation::Loopback(_) => Command::new(program()),
            ServerLocation::Node { namespace, .. } => command_in(namespace, program()),
        }
    }
}

/// The server that `scripts/install-nats.sh` installed.
pub fn program() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = tools.join("nats/nats-server");
    assert!(path.exists(), "nats-server is missing: run scripts/install-nats.sh");
    path
}
