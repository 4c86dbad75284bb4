//! Agents in a sandbox, with the real daemon and the real layers: what an agent does at its start, what its terminals
//! and files may do, and what is left when the daemon is killed.

use jackfield_e2e::{Client, Daemon, Home, app::readable_tree, wait_for};
use serde_json::json;
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// A layer, and what its sessions can do with protected files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TestedLayer {
    Bubblewrap,
    /// It cannot protect files in a writable directory, so the profile must not ask for it.
    Landlock,
}

impl TestedLayer {
    /// The configuration of the daemon, and keys of the profile.
    fn settings(self) -> (&'static str, &'static str) {
        match self {
            TestedLayer::Bubblewrap => ("sandbox_layer = \"bubblewrap\"\n", ""),
            TestedLayer::Landlock => ("sandbox_layer = \"landlock\"\n", "protect_files = false\n"),
        }
    }
}

/// A daemon, a project with a Git repository, and a secret beside it.
pub(crate) struct SandboxScene {
    pub(crate) home: Home,
    pub(crate) daemon: Daemon,
    pub(crate) work: PathBuf,
    /// A server that no profile allows.
    pub(crate) server: TcpListener,
}

impl SandboxScene {
    pub(crate) fn new(layer: TestedLayer) -> SandboxScene {
        SandboxScene::with_variables(layer, &[])
    }

    /// With these variables in the environment of the daemon.
    pub(crate) fn with_variables(layer: TestedLayer, variables: &[(&str, &str)]) -> SandboxScene {
        let home = Home::new();
        let (config, keys) = layer.settings();
        let policy = format!("[sandbox.workspace]\n{keys}{}", readable_tree());
        let folder = home.path().join("config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        fs::write(folder.join("policy.toml"), policy).unwrap();
        let work = home.path().join("project");
        fs::create_dir_all(work.join(".git/hooks")).unwrap();
        fs::create_dir_all(home.path().join("outside")).unwrap();
        fs::write(home.path().join("secret"), "hunter2").unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let daemon = home.serve_in(&[], variables);
        SandboxScene { home, daemon, work, server }
    }

    /// A client whose agents have this profile.
    pub(crate) fn connect(&self, argv: &[String], profile: &str) -> Client {
        let mut client = self.home.dial();
        let agent = json!({ "name": "fake", "argv": argv });
        let params = json!({ "agent": agent, "cwd": self.work, "sandbox": profile });
        client.notify("_jackfield/connect", &params);
        client.hello();
        client
    }

    /// A script that tries everything, and prints a line for each attempt.
    pub(crate) fn attacks(&self) -> String {
        let path = |name: &str| self.home.path().join(name).display().to_string();
        let (secret, outside) = (path("secret"), path("outside"));
        let (socket, state) = (path("run/hub.sock"), path("state"));
        let port = self.server.local_addr().unwrap().port();
        let connect =
            "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])";
        format!(
            r#"
            try() {{ name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name worked"; else echo "$name refused"; fi; }}
            try read-secret cat '{secret}'
            try read-state cat '{state}/journal.db'
            try write-outside sh -c ": > '{outside}/made'"
            try write-hook sh -c ": > .git/hooks/pre-commit"
            try write-inside sh -c ": > made"
            try call-daemon /usr/bin/python3 -c '{connect}' '{socket}'
            try connect bash -c ": < /dev/tcp/127.0.0.1/{port}"
            try signal-daemon kill -0 {daemon}
            "#,
            daemon = self.daemon.pid()
        )
    }

    /// An agent that makes the attempts and then serves as usual.
    pub(crate) fn hostile_agent(&self, script: &str) -> Vec<String> {
        self.hostile_agent_with(script, &[])
    }

    /// With these flags of the fake agent.
    pub(crate) fn hostile_agent_with(&self, script: &str, flags: &[&str]) -> Vec<String> {
        let fake = self.home.fake_agent(flags);
        let script = format!("{{ {script}\n}} > attempts; exec \"$@\"");
        ["/bin/sh", "-c", &script, "sh"].map(str::to_owned).into_iter().chain(fake).collect()
    }
}

pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|it| !it.is_empty()).collect()
}

pub(crate) const ALL_WORK: [&str; 8] = [
    "read-secret worked",
    "read-state worked",
    "write-outside worked",
    "write-hook worked",
    "write-inside worked",
    "call-daemon worked",
    "connect worked",
    "signal-daemon worked",
];

/// What is refused inside `workspace`. A hook can be written only where files cannot be protected.
pub(crate) fn expected(layer: TestedLayer) -> [&'static str; 8] {
    let write_hook = match layer {
        TestedLayer::Bubblewrap => "write-hook refused",
        TestedLayer::Landlock => "write-hook worked",
    };
    [
        "read-secret refused",
        "read-state refused",
        "write-outside refused",
        write_hook,
        "write-inside worked",
        "call-daemon refused",
        "connect refused",
        "signal-daemon refused",
    ]
}

#[test]
fn attempts_of_an_agent_work_without_a_sandbox() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let mut client = scene.connect(&scene.hostile_agent(&scene.attacks()), "open");
    client.open(&scene.work);
    let attempts = fs::read_to_string(scene.work.join("attempts")).unwrap();
    assert_eq!(lines(&attempts), ALL_WORK);
    scene.daemon.stop();
}

fn attempts_are_refused(layer: TestedLayer) {
    let scene = SandboxScene::new(layer);
    let attacks = scene.attacks();
    let mut client = scene.connect(&scene.hostile_agent(&attacks), "workspace");
    let session = client.open(&scene.work);
    let attempts = fs::read_to_string(scene.work.join("attempts")).unwrap();
    assert_eq!(lines(&attempts), expected(layer), "at the start");
    // A terminal that the daemon runs for the agent has the same limits.
    let script = scene.work.join("attacks.sh");
    fs::write(&script, &attacks).unwrap();
    let before = client.text().len();
    let prompt = format!("terminal sh {}", script.display());
    assert_eq!(client.prompt(&session, &prompt), "end_turn");
    let said = client.text()[before..].to_owned();
    for line in expected(layer) {
        assert!(said.contains(line), "in a terminal: {line} is missing in\n{said}");
    }
    assert!(!scene.home.path().join("outside/made").exists());
    assert!(scene.work.join("made").exists());
    scene.daemon.stop();
}

#[test]
fn attempts_of_an_agent_and_of_its_terminals_are_refused_by_bubblewrap() {
    attempts_are_refused(TestedLayer::Bubblewrap);
}

#[test]
fn attempts_of_an_agent_and_of_its_terminals_are_refused_by_landlock() {
    attempts_are_refused(TestedLayer::Landlock);
}

#[test]
fn files_that_the_daemon_serves_follow_the_profile() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let write = |path: &str| format!("fs-write {} text", scene.work.join(path).display());
    for (profile, path, expected) in [
        ("workspace", "made", "fs-write: done"),
        ("workspace", ".git/hooks/pre-commit", "not permitted by the sandbox profile `workspace`"),
        ("read-only", "made", "not permitted by the sandbox profile `read-only`"),
    ] {
        let mut client = scene.connect(&scene.home.fake_agent(&[]), profile);
        let session = client.open(&scene.work);
        let before = client.text().len();
        assert_eq!(client.prompt(&session, &write(path)), "end_turn");
        let said = &client.text()[before..];
        assert!(said.contains(expected), "{profile} {path}: {said}");
    }
    scene.daemon.stop();
}

/// The sockets of network proxies.
fn proxy_sockets(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.path().join("run")).unwrap().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|it| it.starts_with("proxy-")).collect()
}

#[test]
fn command_without_the_daemon_leaves_the_proxies_of_the_daemon() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let mut client = scene.connect(&scene.home.fake_agent(&[]), "workspace");
    client.open(&scene.work);
    let before = proxy_sockets(&scene.home);
    assert_eq!(before.len(), 1);
    let agent = scene.home.fake_agent(&[]);
    let mut args = vec!["run", "--isolated", "--sandbox", "workspace", "--cwd"];
    args.extend([path_text(&scene.work), "hello", "--"]);
    args.extend(agent.iter().map(String::as_str));
    let output = scene.home.run(&args, BOUND);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(proxy_sockets(&scene.home), before);
    scene.daemon.stop();
}

fn nothing_is_left(layer: TestedLayer) {
    let scene = SandboxScene::new(layer);
    let mut client = scene.connect(&scene.home.fake_agent(&["--ignore-term"]), "workspace");
    let session = client.open(&scene.work);
    assert_eq!(client.prompt(&session, "spawn"), "end_turn");
    assert!(!scene.home.alive(&[scene.daemon.pid()]).is_empty());
    scene.daemon.kill_9();
    wait_for("all processes to end", BOUND, || scene.home.alive(&[]).is_empty().then_some(()));
    let daemon = scene.home.serve(&[]);
    let sockets = proxy_sockets(&scene.home);
    assert!(sockets.is_empty(), "{sockets:?}");
    daemon.stop();
}

#[test]
fn killed_daemon_leaves_nothing_of_a_bubblewrap_sandbox() {
    nothing_is_left(TestedLayer::Bubblewrap);
}

#[test]
fn killed_daemon_leaves_nothing_of_a_landlock_sandbox() {
    nothing_is_left(TestedLayer::Landlock);
}

#[test]
fn profile_is_in_the_log_and_an_unknown_one_is_refused_with_the_names_of_all() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let run = |profile: &str| {
        let agent = scene.home.fake_agent(&[]);
        let mut args =
            vec!["run", "--sandbox", profile, "--cwd", path_text(&scene.work), "hello", "--"];
        args.extend(agent.iter().map(String::as_str));
        scene.home.run(&args, BOUND)
    };
    assert!(run("workspace").status.success());
    let print = |args: &[&str]| {
        let output = scene.home.run(args, BOUND);
        String::from_utf8(output.stdout).unwrap()
    };
    let rows = print(&["sessions", "list", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let session = rows["sessions"][0]["sessionId"].as_str().unwrap();
    assert_eq!(rows["sessions"][0]["sandbox"], "workspace");
    let log = print(&["log", session, "--format", "json"]);
    assert!(log.contains(r#""sandbox":"workspace""#), "{log}");
    let refused = run("homework");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(message.contains("no sandbox profile `homework`"), "{message}");
    assert!(message.contains("read-only, workspace"), "{message}");
    scene.daemon.stop();
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The answer to a request for this host, as a terminal of the agent prints it; the user answers with this option.
pub(crate) fn fetch(
    scene: &SandboxScene,
    client: &mut Client,
    session: &str,
    option: &str,
) -> (usize, String) {
    let script = scene.work.join("fetch.py");
    let text = "import urllib.request, urllib.error\n\
        try: print(urllib.request.urlopen('http://unknown.invalid/', timeout=20).status)\n\
        except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n";
    fs::write(&script, text).unwrap();
    let before = client.text().len();
    let prompt =
        client.send_prompt(session, &format!("terminal /usr/bin/python3 {}", script.display()));
    let mut asks = 0;
    loop {
        let message = client.next(BOUND).expect("the turn ends");
        if message["method"] == "session/request_permission" {
            asks += 1;
            assert_eq!(message["params"]["toolCall"]["title"], "Connect to unknown.invalid:80");
            let outcome = json!({ "outcome": "selected", "optionId": option });
            client.respond(&message, &json!({ "outcome": outcome }));
        } else if message["id"] == prompt && message["method"].is_null() {
            return (asks, client.text()[before..].to_owned());
        }
    }
}

#[test]
fn user_is_asked_about_a_host_that_no_rule_names() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let mut client = scene.connect(&scene.home.fake_agent(&[]), "workspace");
    let session = client.open(&scene.work);
    let (asks, refused) = fetch(&scene, &mut client, &session, "refuse-connection");
    assert!(asks == 1 && refused.contains("403"), "{asks} {refused}");
    // The name does not exist: an allowed connection fails at the name server.
    let (asks, allowed) = fetch(&scene, &mut client, &session, "allow-host-in-session");
    assert!(asks == 1 && allowed.contains("502"), "{asks} {allowed}");
    let (asks, allowed) = fetch(&scene, &mut client, &session, "refuse-connection");
    assert!(asks == 0 && allowed.contains("502"), "{asks} {allowed}");
    scene.daemon.stop();
}

#[test]
fn question_about_a_host_is_withdrawn_when_its_connection_ends() {
    let scene = SandboxScene::new(TestedLayer::Bubblewrap);
    let mut client = scene.connect(&scene.home.fake_agent(&[]), "workspace");
    let session = client.open(&scene.work);
    let script = scene.work.join("leave.py");
    // The connection ends after the user was asked.
    let text = "import os, socket, time, urllib.parse\n\
        proxy = urllib.parse.urlparse(os.environ['http_proxy'])\n\
        s = socket.create_connection((proxy.hostname, proxy.port))\n\
        s.sendall(b'GET http://unknown.invalid/ HTTP/1.1\\r\\nhost: unknown.invalid\\r\\n\\r\\n')\n\
        while not os.path.exists('asked'): time.sleep(0.01)\n";
    fs::write(&script, text).unwrap();
    let prompt = format!("terminal /usr/bin/python3 {}", script.display());
    client.send_prompt(&session, &prompt);
    client.until("the question", |it| it["method"] == "session/request_permission");
    fs::write(scene.work.join("asked"), "").unwrap();
    wait_for("no open question", BOUND, || {
        let asks = scene.home.run(&["asks", "--format", "json"], BOUND);
        let asks: serde_json::Value = serde_json::from_slice(&asks.stdout).ok()?;
        asks["asks"].as_array()?.is_empty().then_some(())
    });
    scene.daemon.stop();
}
