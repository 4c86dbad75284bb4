//! A service manager binds the socket, passes it to the daemon and is told about its state. The test is the
//! service manager.

use jackfield_e2e::{
    Home,
    client::{Client, PATIENCE},
    home::{binary, finish},
    procs, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _},
            net::{UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);
/// Passes its stdin as descriptor 3, under the pid that the program will have.
const LAUNCH: &str = r#"export LISTEN_FDS=1 LISTEN_PID=$$; exec "$0" serve 3<&0 0</dev/null"#;

struct ServiceManager {
    home: Home,
    listener: UnixListener,
    messages: UnixDatagram,
}

impl ServiceManager {
    fn new() -> ServiceManager {
        let home = Home::new();
        fs::DirBuilder::new().mode(0o700).create(home.path().join("run")).unwrap();
        let listener = UnixListener::bind(home.socket()).unwrap();
        let messages = UnixDatagram::bind(home.path().join("notify")).unwrap();
        messages.set_read_timeout(Some(PATIENCE)).unwrap();
        ServiceManager { home, listener, messages }
    }

    fn command(&self, passed: OwnedFd) -> Command {
        let mut command = Command::new("/bin/sh");
        let ours = self.home.command(&[]);
        let variables = ours.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.current_dir(self.home.path()).env_clear().envs(variables);
        command.env("NOTIFY_SOCKET", self.home.path().join("notify"));
        command.args(["-c", LAUNCH]).arg(binary("jackfield"));
        command.stdin(passed).stdout(Stdio::null());
        command
    }

    fn start(&self) -> Child {
        let passed = self.listener.try_clone().unwrap();
        self.command(passed.into()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn next_message(&self) -> String {
        let mut buffer = [0; 4096];
        let bytes = self.messages.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..bytes]).into_owned()
    }

    /// A client that connects whether or not a daemon runs.
    fn dial(&self) -> Client {
        let stream = UnixStream::connect(self.home.socket()).unwrap();
        let reader = stream.try_clone().unwrap();
        Client::new(Box::new(reader), Box::new(stream))
    }

    fn socket_inode(&self) -> u64 {
        fs::symlink_metadata(self.home.socket()).unwrap().ino()
    }
}

fn wait_for_end(daemon: &mut Child) {
    let status = wait_for("the end of the daemon", BOUND, || daemon.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[test]
fn clients_that_connect_before_the_daemon_runs_are_answered_and_the_socket_stays() {
    let manager = ServiceManager::new();
    let inode = manager.socket_inode();
    let mut early = manager.dial();
    early
        .send("initialize", &serde_json::json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    let mut daemon = manager.start();
    assert_eq!(manager.next_message(), "READY=1");
    assert_eq!(early.answer(1)["result"]["protocolVersion"], 1);

    let output = manager.home.run(&["daemon", "status", "--format", "json"], BOUND);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["pid"], daemon.id());

    kill_process(Pid::from_child(&daemon), Signal::HUP).unwrap();
    assert!(manager.next_message().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(manager.next_message(), "READY=1");

    let output = manager.home.run(&["daemon", "stop"], BOUND);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(manager.next_message(), "STOPPING=1");
    wait_for_end(&mut daemon);
    assert_eq!(manager.socket_inode(), inode, "the socket file is the service manager's");

    let mut next = manager.dial();
    let id = next
        .send("initialize", &serde_json::json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    let mut daemon = manager.start();
    assert_eq!(next.answer(id)["result"]["protocolVersion"], 1);
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    wait_for_end(&mut daemon);
}

#[test]
fn agents_do_not_inherit_the_socket_that_was_passed() {
    let manager = ServiceManager::new();
    let mut daemon = manager.start();
    assert_eq!(manager.next_message(), "READY=1");
    let mut client = manager.dial();
    client.connect(&manager.home.fake_agent(&["--grandchild"]));
    let session = client.open(manager.home.path());
    assert_eq!(client.prompt(&session, "hello"), "end_turn");
    let descriptor = format!("/proc/self/fd/{}", manager.listener.as_raw_fd());
    let socket = fs::read_link(descriptor).unwrap();
    let has_socket = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|it| fs::read_link(it.path()).ok()).any(|it| it == socket)
    };
    let processes = procs::marked(manager.home.mark());
    assert!(3 <= processes.len(), "daemon, guard and agent: {processes:?}");
    let holders: Vec<u32> = processes.into_iter().filter(has_socket).collect();
    assert_eq!(holders, [daemon.id()]);
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    wait_for_end(&mut daemon);
}

#[test]
fn descriptor_that_is_not_a_listening_unix_socket_is_refused() {
    let manager = ServiceManager::new();
    let (stream, _other) = UnixStream::pair().unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = fs::File::open(manager.home.path()).unwrap();
    for passed in [OwnedFd::from(stream), OwnedFd::from(tcp), OwnedFd::from(file)] {
        let mut command = manager.command(passed);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("the socket that was passed to this process cannot be used"),
            "{said}"
        );
        assert!(said.contains("jackfield.socket"), "{said}");
    }
}

fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

#[test]
fn user_units_listen_where_commands_look_and_systemd_accepts_them() {
    let socket = fs::read_to_string(deployed("jackfield.socket")).unwrap();
    for line in ["ListenStream=%t/jackfield/hub.sock", "SocketMode=0600", "DirectoryMode=0700"] {
        assert!(socket.lines().any(|it| it == line), "jackfield.socket has no {line}");
    }
    let service = fs::read_to_string(deployed("jackfield.service")).unwrap();
    for line in ["Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "Delegate=yes"] {
        assert!(service.lines().any(|it| it == line), "jackfield.service has no {line}");
    }
    let verify = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if verify.is_err() {
        return;
    }
    let home = Home::new();
    let program = binary("jackfield").display().to_string();
    fs::write(home.path().join("jackfield.socket"), &socket).unwrap();
    let service = service.replace("/usr/local/bin/jackfield", &program);
    fs::write(home.path().join("jackfield.service"), service).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user", "--man=no"]);
    verify.args(["jackfield.socket", "jackfield.service"].map(|it| home.path().join(it)));
    verify.env("XDG_RUNTIME_DIR", home.path()).env("HOME", home.path());
    let output = finish(verify, BOUND);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("jackfield"), "{said}");
}
