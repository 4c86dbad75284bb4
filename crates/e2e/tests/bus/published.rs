//! The Python SDK of the published bus with our bus in place of its kernel: its own tests run
//! unchanged, and its client uses a plain ACP agent.

use super::write;
use jackfield_e2e::{
    Home,
    cli::installed,
    home::{binary, finish},
};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const BOUND: Duration = Duration::from_mins(1);

/// Starts a session of a plain ACP agent and prints the text of a turn, and how many messages did
/// not have the session id of the client.
const ACP_CLIENT: &str = r#"
import asyncio, json, sys
from stdiobus import AsyncStdioBus, SubprocessOptions

async def main():
    bus = AsyncStdioBus(
        config_path=sys.argv[1], backend="subprocess",
        subprocess=SubprocessOptions(binary_path=sys.argv[2]), timeout_ms=20000)
    without = []
    bus.on_message(lambda line: without.append(line)
        if json.loads(line).get("sessionId") != bus.client_session_id else None)
    await bus.start()
    capabilities = {"protocolVersion": 1, "clientCapabilities": {}}
    await bus.request("initialize", capabilities)
    session = (await bus.request("session/new", {"cwd": "/tmp", "mcpServers": []}))["sessionId"]
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
    async for event in bus.stream_request("session/prompt", prompt):
        if event.type == "chunk":
            print(event.text, end="", flush=True)
    print()
    print(len(without), "without the session id")
    await bus.stop()
    bus.destroy()

asyncio.run(main())
"#;

/// A copy of the SDK in the home, whose tests find our bus where they expect the kernel.
struct PublishedSdk {
    python: PathBuf,
    source: PathBuf,
    kernel: PathBuf,
}

impl PublishedSdk {
    fn new(home: &Home) -> PublishedSdk {
        let source = home.path().join("sdk/python");
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(installed("stdiobus-source")).arg(&source);
        assert!(finish(copy, BOUND).status.success());
        fs::create_dir(home.path().join("build")).unwrap();
        let kernel = write_kernel(&home.path().join("build/stdio_bus"));
        write_kernel(&source.join("kernel/dist/stdio_bus"));
        PublishedSdk { python: installed("stdiobus/bin/python"), source, kernel }
    }

    /// Runs Python with the SDK and returns what it printed.
    fn run(&self, home: &Home, args: &[&str]) -> String {
        let ours = home.command(&[]);
        let mut python = Command::new(&self.python);
        python.args(args).current_dir(&self.source).env_clear();
        python.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        python.env("PYTHONPATH", &self.source).env("PYTHONDONTWRITEBYTECODE", "1");
        python.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let output = finish(python, BOUND);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}\n{errors}");
        printed
    }
}

fn write_kernel(path: &Path) -> PathBuf {
    let script = format!("#!/bin/sh\nexec '{}' bus \"$@\"\n", binary("jackfield").display());
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

#[test]
fn published_test_script_passes() {
    let home = Home::new();
    let sdk = PublishedSdk::new(&home);
    let printed = sdk.run(&home, &["tests/real_e2e_test.py"]);
    assert!(printed.contains("ALL REAL E2E TESTS PASSED"), "{printed}");
}

#[test]
fn published_tests_of_the_kernel_pass() {
    let home = Home::new();
    let sdk = PublishedSdk::new(&home);
    let files = ["tests/test_real_e2e.py", "tests/test_subprocess_backend.py"];
    let args = [&["-m", "pytest", "-q", "-p", "no:cacheprovider"], &files[..]].concat();
    let printed = sdk.run(&home, &args);
    let summary = printed.lines().last().unwrap_or_default();
    assert!(summary.contains(" passed") && !summary.contains("skipped"), "{printed}");
}

#[test]
fn published_client_uses_a_plain_acp_agent() {
    let home = Home::new();
    let sdk = PublishedSdk::new(&home);
    let agent = home.fake_agent(&[]);
    let pool = json!({ "id": "agent", "command": agent[0], "args": agent[1..], "instances": 1,
        "outer_session_id": "restore" });
    let config = write(&home, "bus.json", &json!({ "pools": [pool] }).to_string());
    let script = write(&home, "client.py", ACP_CLIENT);
    let paths = [&script, &config, &sdk.kernel].map(|it| it.to_str().unwrap());
    let printed = sdk.run(&home, &paths);
    assert_eq!(printed, "you said: hello\n0 without the session id\n");
}
