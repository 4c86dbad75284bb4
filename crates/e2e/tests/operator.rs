//! An agent is not the operator: what a process below an agent tries with the real `jackfield`
//! command, and that the same commands work for the user.

use jackfield_e2e::{Client, Daemon, Home, client::PATIENCE, home::binary, wait_for};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A child of the agent that runs the scripts whose paths come out of a pipe, one after the other.
const SCRIPT_RUNNER: &str = r#"
while read -r script; do
    sh "$script" >"$script.out" 2>&1 </dev/null
    echo $? >"$script.part"
    mv "$script.part" "$script.code"
done <"$1" >/dev/null 2>&1 &
shift
exec "$@"
"#;

/// A daemon, a client of the user, and a session whose agent has a child that runs commands.
struct Scene {
    user: Client,
    session: String,
    scripts: File,
    scripts_run: usize,
    daemon: Daemon,
    home: Home,
}

impl Scene {
    fn start() -> Scene {
        let home = Home::new();
        let daemon = home.serve(&[]);
        let pipe = home.path().join("scripts");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success(), "{made}");
        // Open for both, so that neither side waits for the other.
        let scripts = File::options().read(true).write(true).open(&pipe).unwrap();
        let mut user = home.dial();
        user.connect(&agent_with_script_runner(&home, &pipe));
        let session = user.open(home.path());
        Scene { user, session, scripts, scripts_run: 0, daemon, home }
    }

    /// Runs a shell script as a child of the agent; returns its exit code and what it printed.
    fn run_below_agent(&mut self, script: &str) -> (i32, String) {
        self.scripts_run += 1;
        let file = self.home.path().join(format!("script-{}", self.scripts_run));
        fs::write(&file, format!("{}{script}\n", variables(&self.home))).unwrap();
        writeln!(self.scripts, "{}", file.display()).unwrap();
        let code = wait_for("a script below the agent to end", PATIENCE, || {
            fs::read_to_string(file.with_extension("code")).ok()
        });
        let printed = fs::read_to_string(file.with_extension("out")).unwrap();
        (code.trim().parse().unwrap(), printed)
    }

    /// The same for one `jackfield` command.
    fn command_below_agent(&mut self, args: &str) -> (i32, String) {
        self.run_below_agent(&format!("{} {args}", binary("jackfield").display()))
    }

    /// The same command, run by the user.
    fn command_of_user(&self, args: &[&str]) -> (i32, String) {
        let output = self.home.run(args, PATIENCE);
        let printed = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// Makes the agent ask for a permission; returns the id of the prompt.
    fn open_ask(&mut self) -> u64 {
        let prompt = self.user.send_prompt(&self.session.clone(), "ask");
        self.user.until("the ask", |it| it["method"] == "session/request_permission");
        prompt
    }

    fn open_ask_count(&mut self) -> usize {
        let asks = self.user.result("_jackfield/asks", &json!({}));
        asks["asks"].as_array().unwrap().len()
    }

    /// The events of the session that have this name, as the user reads them.
    fn events(&self, name: &str) -> Vec<Value> {
        let mut reader = self.home.dial();
        reader.hello_aware();
        let params = json!({ "sessionId": self.session, "after": 0, "observe": true });
        reader.result("_jackfield/attach", &params);
        let heard = reader.heard.iter().map(|it| &it["params"]);
        heard.filter(|it| it["is"] == name).cloned().collect()
    }

    fn finish(self) {
        drop(self.user);
        self.daemon.stop();
    }
}

fn agent_with_script_runner(home: &Home, pipe: &Path) -> Vec<String> {
    let pipe = pipe.display().to_string();
    let mut argv: Vec<String> =
        ["/bin/sh", "-c", SCRIPT_RUNNER, "sh", &pipe].map(str::to_owned).into();
    argv.extend(home.fake_agent(&[]));
    argv
}

/// What a process must know to find the daemon of this home.
fn variables(home: &Home) -> String {
    let dirs = [("CONFIG", "config"), ("STATE", "state"), ("RUNTIME", "run")];
    let line = |(name, dir): (&str, &str)| {
        format!("export JACKFIELD_{name}_DIR='{}'\n", home.path().join(dir).display())
    };
    dirs.map(line).concat()
}

fn assert_refused((code, printed): &(i32, String)) {
    assert_ne!(*code, 0, "{printed}");
    assert!(printed.contains("below an agent"), "{printed}");
    assert!(printed.contains("own terminal"), "{printed}");
}

#[test]
fn process_below_an_agent_cannot_answer_the_ask_of_its_agent() {
    let mut scene = Scene::start();
    let prompt = scene.open_ask();
    let session = scene.session.clone();
    let tried = scene.command_below_agent(&format!("answer {session} y"));
    assert_refused(&tried);
    assert_eq!(scene.open_ask_count(), 1);
    let refused = scene.events("refused");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["operation"], "_jackfield/answer");
    assert!(refused[0]["by"].as_str().unwrap().starts_with("jackfield-answer"), "{refused:?}");
    let exe = binary("jackfield");
    assert_eq!(refused[0]["peer"]["exe"], json!(exe.canonicalize().unwrap()));
    assert!(scene.home.said().contains("refused"), "{}", scene.home.said());

    let (code, printed) = scene.command_of_user(&["answer", &session, "n"]);
    assert_eq!(code, 0, "{printed}");
    assert_eq!(scene.user.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(scene.user.text(), "ask 1: reject-once");
    let answered = scene.events("answered");
    let peer = &answered[0]["peer"];
    assert!(peer["pid"].is_u64() && peer["uid"].is_u64(), "{answered:?}");
    assert_eq!(peer["exe"], json!(exe.canonicalize().unwrap()));
    for command in [&["log"][..], &["sessions", "show"]] {
        let (_, printed) = scene.command_of_user(&[command, &[&session]].concat());
        assert!(printed.contains(&format!("pid {}", peer["pid"])), "{command:?}: {printed}");
    }
    scene.finish();
}

#[test]
fn orphan_without_the_mark_of_its_agent_is_refused_all_the_same() {
    let mut scene = Scene::start();
    let prompt = scene.open_ask();
    let session = scene.session.clone();
    let done = scene.home.path().join("orphan");
    let jackfield = binary("jackfield");
    // A session of its own, no parent but the guard, and nothing inherited in its environment.
    let script = format!(
        "mkfifo {done}.pipe\nsetsid -f env -i PATH=\"$PATH\" \
         JACKFIELD_RUNTIME_DIR=\"$JACKFIELD_RUNTIME_DIR\" \
         sh -c '{jackfield} answer {session} y >{done}.out 2>&1; echo $? >{done}.pipe' \n\
         read -r code <{done}.pipe\ncat {done}.out\nexit $code",
        done = done.display(),
        jackfield = jackfield.display(),
    );
    assert_refused(&scene.run_below_agent(&script));
    assert_eq!(scene.open_ask_count(), 1);
    scene.command_of_user(&["answer", &session, "n"]);
    assert_eq!(scene.user.answer(prompt)["result"]["stopReason"], "end_turn");
    scene.finish();
}

#[test]
fn response_of_a_process_below_an_agent_does_not_settle_a_permission() {
    let mut scene = Scene::start();
    let prompt = scene.open_ask();
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let resume = json!({ "sessionId": scene.session, "cwd": scene.home.path() });
    let choice = json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/resume", "params": resume }),
        // The first request that the hub sends on a connection has the id 1.
        json!({ "jsonrpc": "2.0", "id": 1, "result": choice }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "_jackfield/asks", "params": {} }),
    ];
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let file = scene.home.path().join("messages");
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    // `jackfield acp` would not pass on a response to a request that it has not seen.
    let program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                   s.sendall(open(sys.argv[2], \"rb\").read()); s.shutdown(socket.SHUT_WR); \
                   print(b\"\".join(iter(lambda: s.recv(65536), b\"\")).decode())";
    let socket = scene.home.path().join("run/hub.sock");
    let script = format!("python3 -c '{program}' {} {}", socket.display(), file.display());
    let (_, printed) = scene.run_below_agent(&script);
    assert!(printed.contains("session/request_permission"), "{printed}");
    assert_eq!(scene.open_ask_count(), 1, "{printed}");
    let refused = scene.events("refused");
    assert_eq!(refused[0]["operation"], "session/request_permission", "{refused:?}");
    let session = scene.session.clone();
    scene.command_of_user(&["answer", &session, "n"]);
    assert_eq!(scene.user.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(scene.user.text(), "ask 1: reject-once");
    scene.finish();
}

#[test]
fn process_below_an_agent_cannot_stop_the_daemon() {
    let mut scene = Scene::start();
    assert_refused(&scene.command_below_agent("daemon stop"));
    assert_eq!(scene.events("refused")[0]["operation"], "_jackfield/stop");
    assert!(scene.daemon.ended().is_none());
    let (code, printed) = scene.command_of_user(&["daemon", "stop"]);
    assert_eq!(code, 0, "{printed}");
    wait_for("the end of the daemon", PATIENCE, || scene.daemon.ended());
}

#[test]
fn process_below_an_agent_cannot_open_a_session_but_can_prompt_one() {
    let mut scene = Scene::start();
    let witness = scene.home.path().join("witness");
    let command = format!("run hello -- /bin/sh -c 'touch {}'", witness.display());
    assert_refused(&scene.command_below_agent(&command));
    assert!(!witness.exists());
    assert_eq!(scene.events("refused")[0]["operation"], "_jackfield/connect");

    let mut other = scene.home.dial();
    other.connect(&scene.home.fake_agent(&[]));
    let own = other.open(scene.home.path());
    let (code, printed) = scene.command_below_agent(&format!("run --session {own} hello"));
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("hello"), "{printed}");
    assert_eq!(scene.events("refused").len(), 1, "prompting is no attempt at anything");
    drop(other);

    let agent = scene.home.fake_agent(&[]);
    let mut args = vec!["run", "hello", "--"];
    args.extend(agent.iter().map(String::as_str));
    let (code, printed) = scene.command_of_user(&args);
    assert_eq!(code, 0, "{printed}");
    scene.finish();
}

#[test]
fn process_below_an_agent_gets_no_token_and_trusts_no_project() {
    let mut scene = Scene::start();
    let project: PathBuf = scene.home.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join(".jackfield.toml"), "[[rule]]\ndo = \"allow\"\n").unwrap();
    let project = project.to_str().unwrap();
    let [trust, revoke] = ["trust", "trust --revoke"].map(|it| format!("{it} {project}"));
    for command in ["token", "token --rotate", &trust, &revoke] {
        assert_refused(&scene.command_below_agent(command));
    }
    // Without the mark in its environment the daemon still knows.
    let command = format!("env -u JACKFIELD_AGENT_MARK {} token", binary("jackfield").display());
    assert_refused(&scene.run_below_agent(&command));
    let (_, trusted) = scene.command_of_user(&["trust", "--list"]);
    assert!(!trusted.contains(project), "{trusted}");
    for args in [&["token"][..], &["trust", project], &["trust", "--revoke", project]] {
        let (code, printed) = scene.command_of_user(args);
        assert_eq!(code, 0, "{printed}");
    }
    scene.finish();
}
