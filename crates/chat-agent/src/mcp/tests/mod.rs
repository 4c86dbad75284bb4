//! Tests with MCP servers as real processes: the reference server of the MCP project, and broken
//! ones.

mod failures;
mod http_servers;
mod reference_server;
mod script_server;

use super::{McpServers, McpWork};
use crate::spawn_context::ServerSpawnContext;
use crate::{
    model::ModelToolCall,
    tool::{PreparedCall, ToolOutcome},
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

/// Nothing here takes this long, unless it is broken or the machine is very busy.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A session in a temporary directory. The directory identifies its processes.
struct McpTestSession {
    dir: TempDir,
    context: ServerSpawnContext,
}

impl McpTestSession {
    fn new() -> McpTestSession {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let env = [("PATH", std::env::var("PATH").unwrap()), ("HOME", home)];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let guard = GuardCommand { program: example_path("chat-guard"), args: Vec::new() };
        let ledger_dir = dir.path().join("ledger");
        let dir_path = dir.path().to_owned();
        let context = ServerSpawnContext { dir: dir_path, guard, ledger_dir, env };
        McpTestSession { dir, context }
    }

    fn start(&self, servers: impl Into<Vec<McpServer>>, limit: Duration) -> McpServers {
        McpServers::start(servers.into(), &self.context, limit)
    }

    /// Starts one server that is a shell script.
    async fn start_script(&self, script: &str) -> McpServers {
        let servers = self.start([shell_server("script", script)], TEST_TIMEOUT);
        assert_eq!(wait_for_start(&servers).await, [""; 0]);
        servers
    }

    /// Returns the processes of this session: each has the directory as `HOME` in its environment.
    fn processes(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.dir.path().display());
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        let is_in_session = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|it| *it == 0).any(|it| it == home.as_bytes())
        };
        pids.filter(is_in_session).collect()
    }

    async fn wait_until(&self, goal: &str, condition: impl Fn(&McpTestSession) -> bool) {
        let wait = async {
            while !condition(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(TEST_TIMEOUT, wait).await.is_ok(), "{goal}: {:?}", self.processes());
    }

    /// Ends the session and checks that nothing of it is left.
    async fn end(self, servers: McpServers) {
        drop(servers);
        self.wait_until("processes are left", |it| it.processes().is_empty()).await;
        let is_ledger_empty = |it: &McpTestSession| {
            fs::read_dir(&it.context.ledger_dir).map_or(0, |it| it.flatten().count()) == 0
        };
        self.wait_until("the ledger has entries", is_ledger_empty).await;
    }
}

/// Examples are built next to the tests.
fn example_path(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "build the examples first: cargo build -p jackfield-chat-agent --examples"
    );
    path
}

fn shell_server(name: &str, script: &str) -> McpServer {
    let args = ["-c", script].map(str::to_owned).to_vec();
    McpServer::Stdio(McpServerStdio::new(name, "/bin/sh").args(args))
}

async fn wait_for_start(servers: &McpServers) -> Vec<String> {
    timeout(TEST_TIMEOUT, servers.wait_for_start())
        .await
        .expect("the servers start or fail in time")
}

fn names(servers: &McpServers) -> Vec<String> {
    let name = |it: &Value| it["function"]["name"].as_str().unwrap().to_owned();
    servers.tool_specs().iter().map(name).collect()
}

fn prepare(
    servers: &McpServers,
    name: &str,
    arguments: &Value,
) -> Result<PreparedCall<McpWork>, String> {
    let (id, arguments) = ("1".to_owned(), arguments.to_string());
    let call = ModelToolCall { id, name: name.to_owned(), arguments };
    servers.prepare_call(&call).expect("the tool is one of an MCP server")
}

async fn call(servers: &McpServers, name: &str, arguments: &Value) -> ToolOutcome {
    let prepared = prepare(servers, name, arguments).unwrap();
    timeout(TEST_TIMEOUT, servers.run_work(prepared.work)).await.expect("an answer")
}

fn content_json(outcome: &ToolOutcome) -> Value {
    json!(outcome.content)
}
