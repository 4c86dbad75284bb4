//! Everything that Jackfield creates is closed to other users, whatever the umask is.

use jackfield_e2e::{Client, Home, home::finish, wait_for};
use jackfield_test_support::fake_model::FakeModel;
use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);
const REGISTRY: &str = r#"{"version":"1.0.0","agents":[{"id":"painter","name":"Painter","version":"1.0.0",
    "description":"Paints.","distribution":{"npx":{"package":"painter@1.0.0","args":["--acp"]}}}]}"#;

/// The command as `home` gives it, run with umask 000.
fn open_umask(inner: &Command) -> Command {
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(inner.get_program());
    outer.args(inner.get_args()).env_clear();
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(inner.get_current_dir().expect("a home has a directory"));
    outer
}

fn run(home: &Home, args: &[&str]) -> String {
    let output = finish(open_umask(&home.command(args)), BOUND);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `jackfield agent` without a daemon: one turn with a model.
fn talk_to_standalone_agent(home: &Home) {
    let model = FakeModel::start();
    let mut command = home.command(&["agent"]);
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url())).env("OPENAI_API_KEY", "test-key");
    let mut command = open_umask(&command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the agent starts");
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut client = Client::new(Box::new(stdout), Box::new(stdin));
    client.hello();
    let session = client.open(home.path());
    client.prompt(&session, "hello");
    // The WAL and its index exist only while the agent runs.
    assert_private(home.path());
    drop(client);
    wait_for("the agent's end", BOUND, || child.try_wait().expect("our own child"));
}

/// All files and directories below `dir` that others can use, with their modes.
fn open_to_others(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let metadata = entry.path().symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let private = if metadata.is_dir() { 0o700 } else { 0o600 };
        if mode != private && !metadata.is_symlink() {
            found.push((entry.path(), mode));
        }
        if metadata.is_dir() {
            found.extend(open_to_others(&entry.path()));
        }
    }
    found
}

fn assert_private(dir: &Path) {
    let found = open_to_others(dir);
    let lines = found.iter().map(|(path, mode)| format!("{mode:o} {}", path.display()));
    assert!(found.is_empty(), "not private:\n{}", lines.collect::<Vec<_>>().join("\n"));
}

/// What the test writes itself is private, too, so that whatever is not was written by Jackfield.
fn write_input(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn all_created_files_and_directories_are_private_with_umask_000() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(at("project")).unwrap();
    write_input(&home.path().join("project/.jackfield.toml"), "");
    write_input(&home.path().join("registry.json"), REGISTRY);

    // Before a daemon has made the directories.
    run(&home, &["trust", &at("project")]);
    run(&home, &["agents", "import", &at("registry.json")]);
    talk_to_standalone_agent(&home);
    run(&home, &["daemon", "start"]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let session = client.open(home.path());
    client.prompt(&session, "tool");
    run(&home, &["sessions", "export", &session, "-o", &at("export.ndjson")]);
    run(&home, &["sessions", "export", &session, "--format", "markdown", "-o", &at("export.md")]);
    run(&home, &["bugreport", &session, "-o", &at("report.txt")]);
    run(&home, &["tenants", "token", "acme"]);
    run(&home, &["agents"]);
    assert!(!run(&home, &["token"]).is_empty());
    // While the daemon runs: socket, lock, ledger, the journal's WAL.
    assert_private(home.path());
    drop(client);
    run(&home, &["daemon", "stop"]);
    assert_private(home.path());
    for name in ["state/journal.db", "state/agent/agent.db", "state/trusted.json", "config/agents"]
    {
        assert!(home.path().join(name).exists(), "{name} was not created");
    }
}
