//! `jackfield bus` as its users meet it. Every fault of the published kernel has a test here that it
//! does not have.

mod config;
mod death;
mod docs;
mod flow;
mod mcp;
mod network;
mod published;
mod reload;
mod routes;
mod slow;
mod stop;

use jackfield_e2e::{Client, Home, wait_for};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

const WORKER: &str = include_str!("worker.py");
const SAID: &str = "bus.stderr";
const SOON: Duration = Duration::from_secs(20);

/// A bus of ours.
pub(crate) struct Bus<'a> {
    home: &'a Home,
    child: Child,
}

/// A pool of Python workers, with more fields if need be.
pub(crate) fn pool(home: &Home, id: &str, instances: usize, more: &Value) -> Value {
    let worker = home.path().join("worker.py");
    fs::write(&worker, WORKER).unwrap();
    // The mark stands in the arguments, as in those of every process of this home.
    let args = json!(["-u", worker, home.mark()]);
    let mut pool = json!({ "id": id, "command": "python3", "args": args, "instances": instances });
    for (name, value) in more.as_object().unwrap() {
        pool[name] = value.clone();
    }
    pool
}

/// A bus with these many workers in one pool.
fn one_pool(home: &Home, instances: usize) -> Value {
    json!({ "pools": [pool(home, "echo", instances, &json!({}))] })
}

fn write_config(home: &Home, config: &Value) -> PathBuf {
    let path = home.path().join("bus.json");
    fs::write(&path, serde_json::to_string_pretty(config).unwrap()).unwrap();
    path
}

impl<'a> Bus<'a> {
    /// Starts it and waits until it listens.
    fn start(home: &'a Home, config: &Value, args: &[&str]) -> Bus<'a> {
        let (bus, _, _) = Bus::spawn(home, config, args);
        bus
    }

    fn spawn(home: &'a Home, config: &Value, args: &[&str]) -> (Bus<'a>, ChildStdin, ChildStdout) {
        Bus::spawn_command(home, config, args, home.command(&["bus", "--config"]))
    }

    /// On a socket in the home, with more programs on `PATH`.
    fn with_programs(home: &'a Home, config: &Value, programs: &Path) -> Bus<'a> {
        let mut command = home.command(&["bus", "--config"]);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()));
        let socket = socket(home);
        Bus::spawn_command(home, config, &["--unix", socket.to_str().unwrap()], command).0
    }

    fn spawn_command(
        home: &'a Home,
        config: &Value,
        args: &[&str],
        mut command: Command,
    ) -> (Bus<'a>, ChildStdin, ChildStdout) {
        let path = write_config(home, config);
        let said = File::create(home.path().join(SAID)).unwrap();
        command.arg(path).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut bus = Bus { home, child };
        wait_for("the bus to listen", SOON, || {
            let ended = bus.child.try_wait().unwrap();
            assert!(ended.is_none(), "the bus ended at once: {ended:?}: {}", bus.said());
            bus.said().contains("listening on ").then_some(())
        });
        (bus, stdin, stdout)
    }

    /// On a socket in the home.
    pub(crate) fn on_unix(home: &'a Home, config: &Value) -> Bus<'a> {
        let socket = socket(home);
        Bus::start(home, config, &["--unix", socket.to_str().unwrap()])
    }

    /// On stdio, with its one client.
    fn on_stdio(home: &'a Home, config: &Value) -> (Bus<'a>, Client) {
        let (bus, stdin, stdout) = Bus::spawn(home, config, &["--stdio"]);
        (bus, Client::new(Box::new(stdout), Box::new(stdin)))
    }

    /// On TCP, on a port of the system's choice.
    fn on_tcp(home: &'a Home, config: &Value, args: &[&str]) -> (Bus<'a>, u16) {
        let args = [&["--tcp", "127.0.0.1:0"], args].concat();
        let bus = Bus::start(home, config, &args);
        let said = bus.said();
        let port = said.lines().find_map(|it| it.strip_prefix("listening on tcp://127.0.0.1:"));
        (bus, port.unwrap().trim().parse().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn dial(&self) -> Client {
        let stream = UnixStream::connect(socket(self.home)).unwrap();
        let reader = stream.try_clone().unwrap();
        Client::new(Box::new(reader), Box::new(stream))
    }

    fn said(&self) -> String {
        fs::read_to_string(self.home.path().join(SAID)).unwrap_or_default()
    }

    /// Waits until this was said on stderr.
    pub(crate) fn until_said(&self, what: &str) {
        wait_for(&format!("`{what}`"), SOON, || self.said().contains(what).then_some(()));
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        wait_for("the end of the bus", SOON, || self.child.try_wait().unwrap())
    }

    /// SIGTERM, and waits for the end, which must be a good one.
    pub(crate) fn stop(self) {
        self.signal(rustix::process::Signal::TERM);
        let said = self.home.path().join(SAID);
        let status = self.end();
        assert_eq!(status.code(), Some(0), "{}", fs::read_to_string(said).unwrap());
    }
}

impl Drop for Bus<'_> {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|it| it.is_none()) {
            // A test that failed: guards end the workers.
            let _gone = self.child.kill();
            let _status = self.child.wait();
            wait_for("the workers of a bus that was killed", SOON, || {
                self.home.alive(&[]).is_empty().then_some(())
            });
        }
    }
}

fn socket(home: &Home) -> PathBuf {
    home.path().join("bus.sock")
}

fn pid(answer: &Value) -> u32 {
    let pid = answer["result"]["pid"].as_u64();
    pid.unwrap_or_else(|| panic!("no worker answered: {answer}")).try_into().unwrap()
}

/// The stable name of an error.
fn fault(answer: &Value) -> String {
    let code = &answer["error"]["data"]["jackfield"]["code"];
    code.as_str().unwrap_or_else(|| panic!("no fault of the bus: {answer}")).to_owned()
}

/// Says these lines.
fn say_all(to: &mut impl std::io::Write, lines: impl IntoIterator<Item = Value>) {
    for line in lines {
        // One write for each, as most clients do it.
        to.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    to.flush().unwrap();
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn is_gone(home: &Home, within: Duration) {
    wait_for("every process to be gone", within, || home.alive(&[]).is_empty().then_some(()));
}

/// Makes a file of this text in the home.
pub(crate) fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    path
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
