//! One server: its ports, its files, its process.

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

/// For what takes well under a second on a machine that has nothing else to do.
pub(super) const BOUND: Duration = Duration::from_secs(30);

/// The biggest message. A journal's records are smaller, a client's frames need not be.
const MAX_PAYLOAD: &str = "8MB";

/// Of servers on a network, which clients of ours do not use without credentials.
const USER: &str = "fleet";
const PASSWORD: &str = "network-of-a-test";

/// Where a server runs.
#[derive(Debug)]
pub(super) enum Place {
    Loopback(Ports),
    /// It has the namespace for itself.
    Node {
        namespace: String,
        address: Ipv4Addr,
    },
}

/// For clients, for other servers, and to be asked how it is.
type Ports = [SocketAddr; 3];

/// It keeps name, ports and store from its first start to the end of its cluster, whether or not it runs.
#[derive(Debug)]
pub struct Server {
    name: String,
    /// Where everything of the cluster is.
    dir: PathBuf,
    place: Place,
    clients: SocketAddr,
    /// For other servers.
    pub(super) routes: SocketAddr,
    monitor: SocketAddr,
    process: Option<Child>,
}

impl Server {
    /// Writes nothing yet.
    pub(super) fn new(name: String, dir: &Path, place: Place) -> Server {
        let [clients, routes, monitor] = place.ports();
        Server { name, dir: dir.to_owned(), place, clients, routes, monitor, process: None }
    }

    /// What it calls itself, also to clients.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For a client. A server on the network has a user and a password in it.
    pub fn url(&self) -> String {
        match self.place {
            Place::Loopback(_) => format!("nats://{}", self.clients),
            Place::Node { .. } => format!("nats://{USER}:{PASSWORD}@{}", self.clients),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.clients
    }

    /// Where other servers connect.
    pub fn route_address(&self) -> SocketAddr {
        self.routes
    }

    /// Connections that it has with other servers.
    pub fn route_count(&self) -> u64 {
        monitor::route_count(self.monitor)
    }

    /// None while it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether its store is read and it is as far as the others are.
    pub fn is_healthy(&self) -> bool {
        self.is_running() && monitor::is_healthy(self.monitor)
    }

    /// What it has logged, all its lives one after the other.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log()).unwrap_or_default()).into_owned()
    }

    /// The server that it takes for the meta leader, by name.
    pub(super) fn meta_leader(&self) -> Option<String> {
        self.is_running().then(|| monitor::meta_leader(self.monitor))?
    }

    /// Whether it says that it leads this stream.
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

    /// The sweeper knows our processes by this name.
    fn config(&self) -> PathBuf {
        self.dir.join(format!("server-{}.conf", self.name))
    }

    /// Everything is written before it is acknowledged, as whoever runs a fleet should have it.
    pub(super) fn configure(&self, routes: &[SocketAddr]) {
        let (name, clients, monitor) = (&self.name, self.clients, self.monitor);
        let (store, cluster) = (self.store(), self.cluster(routes));
        let authorization = match self.place {
            Place::Loopback(_) => String::new(),
            Place::Node { .. } => {
                format!("authorization {{ user: {USER}, password: {PASSWORD} }}\n")
            }
        };
        fs::create_dir_all(&store).expect("the folder is ours");
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
        fs::write(self.config(), text).expect("the folder is ours");
    }

    /// Takes a configuration of the test, made for its place for clients, for servers and its store.
    pub(super) fn configure_with(
        &self,
        configuration: impl FnOnce(SocketAddr, SocketAddr, &Path) -> String,
    ) {
        let text = configuration(self.clients, self.routes, &self.store());
        let text = format!("{text}\nhttp: \"{}\"\n", self.monitor);
        fs::write(self.config(), text).expect("the folder is ours");
    }

    /// One alone has no leader to choose and would wait for one.
    fn cluster(&self, routes: &[SocketAddr]) -> String {
        if routes.len() == 1 {
            return String::new();
        }
        let ours = self.routes;
        let routes: Vec<_> = routes.iter().map(|it| format!("\"nats://{it}\"")).collect();
        let routes = routes.join(", ");
        format!("cluster {{ name: jackfield, listen: \"{ours}\", routes: [{routes}] }}\n")
    }

    /// Starts the process and does not wait for it.
    pub(super) fn launch(&mut self) {
        assert!(!self.is_running(), "{} runs already", self.name);
        let log = File::options().create(true).append(true).open(self.log());
        let mut command = self.place.command();
        command.arg("-c").arg(self.config()).current_dir(&self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("the folder is ours"));
        self.process = Some(command.spawn().expect("nats-server starts"));
    }

    pub(super) fn wait_until_it_greets(&mut self) {
        wait_for(&format!("the greeting of {}", self.name), BOUND, || {
            let process = self.process.as_mut().expect("it was launched");
            let ended = process.try_wait().expect("our own child");
            assert!(ended.is_none(), "{} ended at once: {ended:?}", self.name);
            monitor::greets(self.clients).then_some(())
        });
    }

    pub(super) fn kill_9(&mut self) {
        self.signal(Signal::KILL);
        self.wait_until_it_ends();
    }

    pub(super) fn signal(&self, signal: Signal) {
        let Some(process) = &self.process else { panic!("{} does not run", self.name) };
        // It is not reaped yet, so its number is nobody else's.
        let _ended_by_itself = kill_process(Pid::from_child(process), signal);
    }

    pub(super) fn wait_until_it_ends(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        wait_for(&format!("the end of {}", self.name), BOUND, || {
            process.try_wait().expect("our own child")
        });
    }
}

impl Place {
    /// So many on this address, at ports that nobody has. All are held together, so that they differ.
    pub(super) fn on_loopback(address: Ipv4Addr, size: usize) -> Vec<Place> {
        let bind = || TcpListener::bind((address, 0)).expect("there are free ports");
        let held: Vec<_> = iter::repeat_with(|| [bind(), bind(), bind()]).take(size).collect();
        let port = |it: &TcpListener| it.local_addr().expect("it is bound");
        held.iter().map(|it| Place::Loopback(it.each_ref().map(port))).collect()
    }

    fn ports(&self) -> Ports {
        match self {
            Place::Loopback(ports) => *ports,
            Place::Node { address, .. } => [4222, 6222, 8222].map(|it| (*address, it).into()),
        }
    }

    fn command(&self) -> Command {
        match self {
            Place::Loopback(_) => Command::new(program()),
            Place::Node { namespace, .. } => command_in(namespace, program()),
        }
    }
}

/// Where `scripts/install-nats.sh` put it.
pub fn program() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = tools.join("nats/nats-server");
    assert!(path.exists(), "nats-server is missing: run scripts/install-nats.sh");
    path
}
