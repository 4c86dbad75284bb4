//! Servers of a session, as real processes: the reference server of MCP's makers, and broken ones.

mod broken;
mod changing;
mod real;
mod web;

use super::{Ground, Servers, Work};
use crate::{
    model::Call,
    tool::{Job, Outcome},
};
use agent_client_protocol::v1::schema::{McpServer, McpServerStdio};
use jackfield_agents::GuardCommand;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::timeout;

/// Nothing here takes so long, unless it is broken or the machine is very busy.
const BOUND: Duration = Duration::from_mins(1);

/// A session's ground of its own, and a mark by which its processes are found.
struct Rig {
    dir: TempDir,
    ground: Ground,
}

impl Rig {
    fn new() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let env = [("PATH", std::env::var("PATH").unwrap()), ("HOME", home)];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let guard = GuardCommand { program: example("chat-guard"), args: Vec::new() };
        let ledger = dir.path().join("ledger");
        let ground = Ground { dir: dir.path().to_owned(), guard, ledger, env };
        Rig { dir, ground }
    }

    fn start(&self, servers: impl Into<Vec<McpServer>>, limit: Duration) -> Servers {
        Servers::start(servers.into(), &self.ground, limit)
    }

    /// One server that is a script, and is up.
    async fn script(&self, script: &str) -> Servers {
        let servers = self.start([sh("script", script)], BOUND);
        assert_eq!(settled(&servers).await, [""; 0]);
        servers
    }

    /// Processes of this session: each has its home in the environment.
    fn processes(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.dir.path().display());
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|it| *it == 0).any(|it| it == home.as_bytes())
        };
        pids.filter(is_ours).collect()
    }

    async fn wait_until(&self, what: &str, is_so: impl Fn(&Rig) -> bool) {
        let wait = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(BOUND, wait).await.is_ok(), "{what}: {:?}", self.processes());
    }

    /// Ends the session; nothing of it may stay.
    async fn end(self, servers: Servers) {
        drop(servers);
        self.wait_until("processes are left", |it| it.processes().is_empty()).await;
        let is_closed =
            |it: &Rig| fs::read_dir(&it.ground.ledger).map_or(0, |it| it.flatten().count()) == 0;
        self.wait_until("the ledger has entries", is_closed).await;
    }
}

/// Examples are built next to the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "build the examples first: cargo build -p jackfield-chat --examples");
    path
}

fn sh(name: &str, script: &str) -> McpServer {
    let args = ["-c", script].map(str::to_owned).to_vec();
    McpServer::Stdio(McpServerStdio::new(name, "/bin/sh").args(args))
}

async fn settled(servers: &Servers) -> Vec<String> {
    timeout(BOUND, servers.settled()).await.expect("it settles")
}

fn names(servers: &Servers) -> Vec<String> {
    let name = |it: &Value| it["function"]["name"].as_str().unwrap().to_owned();
    servers.offered().iter().map(name).collect()
}

fn prepare(servers: &Servers, name: &str, arguments: &Value) -> Result<Job<Work>, String> {
    let (id, arguments) = ("1".to_owned(), arguments.to_string());
    let call = Call { id, name: name.to_owned(), arguments };
    servers.prepare(&call).expect("it is one of theirs")
}

async fn call(servers: &Servers, name: &str, arguments: &Value) -> Outcome {
    let job = prepare(servers, name, arguments).unwrap();
    timeout(BOUND, servers.run(job.work)).await.expect("an answer")
}

fn content(outcome: &Outcome) -> Value {
    json!(outcome.content)
}
