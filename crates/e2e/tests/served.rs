//! Files and terminals that no client serves: the daemon does, inside the session's directories, and
//! nothing that it runs outlives the agent it runs for.

use jackfield_e2e::{Client, Daemon, Home, wait_for};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);

/// A session whose client announced nothing.
struct World {
    home: Home,
    daemon: Daemon,
    client: Client,
    session: String,
    work: PathBuf,
}

impl World {
    fn new() -> World {
        World::with_rules("")
    }

    /// With a policy file of the user.
    fn with_rules(rules: &str) -> World {
        let home = Home::new();
        fs::create_dir_all(home.path().join("config")).unwrap();
        fs::write(home.path().join("config/policy.toml"), rules).unwrap();
        let daemon = home.serve(&[]);
        let work = home.path().join("project");
        fs::create_dir(&work).unwrap();
        let mut client = home.dial();
        client.connect(&home.fake_agent(&[]));
        let session = client.open(&work);
        World { home, daemon, client, session, work }
    }

    /// What the agent says in one turn.
    fn say(&mut self, prompt: &str) -> String {
        let before = self.client.text().len();
        assert_eq!(self.client.prompt(&self.session, prompt), "end_turn");
        self.client.text()[before..].to_owned()
    }

    fn read(&mut self, path: &Path) -> String {
        self.say(&format!("fs-read {}", path.display()))
    }

    /// Who runs now; a terminal comes in addition.
    fn quiet(&self) -> Vec<u32> {
        self.home.alive(&[])
    }

    /// Waits for a guard and the command below it.
    fn terminal_runs(&self, except: &[u32]) -> Vec<u32> {
        wait_for("the terminal", BOUND, || {
            let pids = self.home.alive(except);
            (2 <= pids.len()).then_some(pids)
        })
    }

    fn gone(&self, except: &[u32]) {
        wait_for("the terminal's end", BOUND, || self.home.alive(except).is_empty().then_some(()));
    }

    fn end(self) {
        let World { home, daemon, client, .. } = self;
        drop(client);
        daemon.stop();
        let ledger = fs::read_dir(home.path().join("state/ledger"));
        let left = ledger.into_iter().flatten().count();
        assert_eq!((left, home.alive(&[])), (0, Vec::new()));
    }
}

#[test]
fn a_file_inside_is_read_and_every_way_out_is_refused_with_its_reason() {
    let mut world = World::new();
    let outside = world.home.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    let at = |name: &str| world.work.join(name);
    fs::write(at("a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(at("binary"), [0xff, 0xfe]).unwrap();
    fs::write(at("big"), "0123456789abcdef".repeat((8 << 16) + 1)).unwrap();
    fs::create_dir(at("dir")).unwrap();
    symlink(&outside, at("out")).unwrap();
    symlink(at("a.txt"), at("link")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());

    let (a, link) = (at("a.txt"), at("link"));
    assert_eq!(world.read(&a), "fs-read: one\ntwo\nthree\n");
    assert_eq!(world.read(&link), "fs-read: one\ntwo\nthree\n");
    assert_eq!(world.say(&format!("fs-read {} 2 1", a.display())), "fs-read: two\n");
    let cases: [(&str, i32, &str); 9] = [
        ("../secret", -32602, "outside the session's directories"),
        ("dir/../../secret", -32602, "outside the session's directories"),
        ("out", -32602, "outside the session's directories"),
        ("../missing", -32602, "outside the session's directories"),
        ("pipe", -32602, "not a regular file"),
        ("dir", -32602, "is a directory"),
        ("missing", -32002, "no file"),
        ("big", -32602, "use `line` and `limit`"),
        ("binary", -32602, "not UTF-8 text"),
    ];
    for (name, code, why) in cases {
        let path = world.work.join(name);
        let said = world.read(&path);
        let is_it = said.starts_with(&format!("fs-read: error {code} ")) && said.contains(why);
        assert!(is_it && !said.contains("secret\n"), "{name}: {said}");
    }
    assert!(world.read(Path::new("/etc/passwd")).contains("outside the session's directories"));
    assert!(world.read(Path::new("a.txt")).contains("not absolute"));

    // What was inside a moment ago is judged again.
    fs::remove_file(&link).unwrap();
    symlink(&outside, &link).unwrap();
    assert!(world.read(&link).contains("outside the session's directories"));
    world.end();
}

#[test]
fn a_file_is_written_whole_and_only_inside() {
    let mut world = World::new();
    let path = world.work.join("new/deep/file.txt");
    assert_eq!(world.say(&format!("fs-write {} first text", path.display())), "fs-write: done");
    let both = format!("fs-write {0} second\nfs-read {0}", path.display());
    assert_eq!(world.say(&both), "fs-write: donefs-read: second");
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a draft was left");

    let outside = world.home.path().join("outside.txt");
    symlink(world.home.path(), world.work.join("up")).unwrap();
    for way in
        [outside.clone(), world.work.join("../outside.txt"), world.work.join("up/outside.txt")]
    {
        let said = world.say(&format!("fs-write {} no", way.display()));
        assert!(said.contains("outside the session's directories"), "{said}");
    }
    assert!(!outside.exists());
    world.end();
}

#[test]
fn a_client_that_can_is_asked_and_when_it_left_the_daemon_serves() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let path = home.path().join("file");
    fs::write(&path, "on disk").unwrap();
    let mut editor = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": home.fake_agent(&[]) } });
    editor.notify("_jackfield/connect", &agent);
    let can = json!({ "fs": { "readTextFile": true }, "terminal": true });
    editor.result("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": can }));
    let session = editor.open(home.path());
    let prompt = format!("fs-read {}", path.display());
    let id = editor.send_prompt(&session, &prompt);
    let asked = editor.until("the ask", |it| it["method"] == "fs/read_text_file");
    editor.respond(&asked, &json!({ "content": "in the editor" }));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text(), "fs-read: in the editor");
    drop(editor);

    let mut phone = home.dial();
    phone.hello();
    phone.result("session/resume", &json!({ "sessionId": session, "cwd": home.path() }));
    phone.prompt(&session, &prompt);
    assert!(phone.text().ends_with("fs-read: on disk"), "{}", phone.text());
    drop(phone);
    daemon.stop();
}

#[test]
fn a_command_runs_and_tells_what_it_printed_and_how_it_ended() {
    let mut world = World::new();
    assert_eq!(world.say("terminal echo a b"), "terminal: exit 0 signal null: a b\n");
    let said = world.say("terminal-line echo one; echo two >&2; echo three; exit 3");
    assert_eq!(said, "terminal: exit 3 signal null: one\ntwo\nthree\n");
    let project = world.work.canonicalize().unwrap();
    let said = world.say("terminal pwd");
    assert_eq!(said, format!("terminal: exit 0 signal null: {}\n", project.display()));
    let said = world.say("terminal-limit 5 printf aaaaabbbbb");
    assert_eq!(said, "terminal: exit 0 signal null: bbbbb");
    let said = world.say("terminal-line yes | head -c 20000000 | tail -c 20000000; echo end");
    let said = said.strip_prefix("terminal: exit 0 signal null: ").unwrap_or(&said);
    assert!(said.len() <= 1 << 20 && said.ends_with("y\nend\n"), "{} bytes", said.len());
    assert_eq!(world.say("terminal-kill sleep 600"), "terminal: exit null signal \"SIGTERM\": ");
    let said = world.say("terminal no-such-program");
    assert!(said.starts_with("terminal: error -32602 "), "{said}");
    assert!(said.contains("`no-such-program` was not found on PATH"), "{said}");
    let said = world.say("terminal-look jackfield-terminal-99");
    assert!(said.contains("error -32602") && said.contains("`jackfield-terminal-99`"), "{said}");
    // It reads nothing and hears so at once, and what it leaves behind ends with it.
    assert_eq!(world.say("terminal cat"), "terminal: exit 0 signal null: ");
    let before = world.quiet();
    assert_eq!(world.say("terminal-line sleep 600 & exit 0"), "terminal: exit 0 signal null: ");
    world.gone(&before);
    world.end();
}

#[test]
fn rules_hold_for_what_the_daemon_itself_does_and_the_log_has_it() {
    let rules =
        "[[rule]]\ndo = \"deny\"\nrun = \"touch\"\n\n[[rule]]\ndo = \"deny\"\npath = \"**/.env\"\n";
    let mut world = World::with_rules(rules);
    let at = |name: &str| world.work.join(name).display().to_string();
    let (env, other, marker) = (at(".env"), at("notes.txt"), at("marker"));
    fs::write(&env, "KEY=1").unwrap();
    // A program of this name does not make the line another command.
    let program = world.work.join("echo a; touch marker");
    fs::write(&program, "#!/bin/sh\ntouch marker\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (prompt, answer) in [
        (format!("terminal touch {marker}"), "terminal: error -31017 "),
        (format!("terminal-line env touch {marker}"), "terminal: error -31017 "),
        ("terminal-line echo a; touch marker".to_owned(), "terminal: error -31017 "),
        (format!("fs-read {env}"), "fs-read: error -31017 "),
        (format!("fs-write {env} KEY=2"), "fs-write: error -31017 "),
        (format!("fs-write {other} text"), "fs-write: done"),
        ("terminal echo a".to_owned(), "terminal: exit 0 signal null: a\n"),
    ] {
        let said = world.say(&prompt);
        assert!(said.starts_with(answer), "{prompt}: {said}");
    }
    assert_eq!(
        (fs::read_to_string(&env).unwrap().as_str(), Path::new(&marker).exists()),
        ("KEY=1", false)
    );
    let log = world.home.run(&["log", &world.session], BOUND);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    for line in [
        format!("daemon denied the agent's request: run `touch {marker}`: a rule of the user"),
        format!("daemon denied the agent's request: read {env}: a rule of the user"),
        format!("daemon handled the agent's request: write {other}"),
        "daemon handled the agent's request: run `echo a`".to_owned(),
    ] {
        assert!(log.contains(&line), "`{line}` is missing in\n{log}");
    }
    world.end();
}

#[test]
fn terminals_see_what_the_agent_sees_and_no_token() {
    let mut world = World::new();
    let said = world.say("terminal env");
    assert!(said.contains("HOME="), "{said}");
    let theirs = said.lines().filter(|it| it.starts_with("JACKFIELD")).count();
    // The mark by which its processes are found.
    assert_eq!(theirs, 1, "{said}");
    world.end();
}

#[test]
fn a_terminal_that_is_left_can_be_looked_at_until_the_agent_has_too_many() {
    let mut world = World::new();
    let before = world.quiet();
    let said = world.say("terminal-leave sleep 600");
    let id = said.strip_prefix("terminal: left ").unwrap().to_owned();
    let said = world.say(&format!("terminal-look {id}"));
    assert_eq!(said, r#"terminal: {"output":"","truncated":false}"#);
    for _ in 1..32 {
        assert!(world.say("terminal-leave true").starts_with("terminal: left "));
    }
    let said = world.say("terminal-leave true");
    assert!(said.contains("32 terminals are open, which is the limit: release some"), "{said}");
    assert!(!world.home.alive(&before).is_empty());
    world.end();
}

#[test]
fn a_terminal_ends_with_the_turn_that_is_cancelled_and_an_older_one_stays() {
    let mut world = World::new();
    world.say("terminal-leave sleep 601");
    let before = wait_for("the first terminal", BOUND, || {
        let pids = world.quiet();
        let runs = |it: &u32| fs::read_to_string(format!("/proc/{it}/comm")).ok();
        pids.iter().any(|it| runs(it).as_deref() == Some("sleep\n")).then_some(pids)
    });
    let id = world.client.send_prompt(&world.session, "terminal sleep 602");
    world.terminal_runs(&before);
    world.client.notify("session/cancel", &json!({ "sessionId": world.session }));
    assert_eq!(world.client.answer(id)["result"]["stopReason"], "cancelled");
    world.gone(&before);
    assert!(before.iter().all(|it| jackfield_e2e::procs::is_alive(*it)));
    world.end();
}

#[test]
fn a_terminal_ends_with_its_agent_however_that_ends() {
    let mut world = World::new();
    let before = world.quiet();
    let id = world.client.send_prompt(&world.session, "terminal-leave sleep 603\ndie kill");
    let answer = world.client.answer(id);
    assert!(answer.get("error").is_some(), "{answer}");
    world.gone(&before);
    world.end();
}

#[test]
fn terminals_do_not_survive_a_daemon_that_is_killed() {
    let mut world = World::new();
    let before = world.quiet();
    world.client.send_prompt(&world.session, "terminal-line sleep 604 & sleep 605");
    wait_for("both commands", BOUND, || (3 <= world.home.alive(&before).len()).then_some(()));
    let World { home, daemon, client, .. } = world;
    daemon.kill_9();
    wait_for("everything to be gone", Duration::from_secs(5), || {
        home.alive(&[]).is_empty().then_some(())
    });
    drop(client);
}

#[test]
fn a_terminal_that_floods_does_not_hold_up_anybody() {
    let mut world = World::new();
    world.say("terminal-leave yes");
    let mut other = world.home.dial();
    other.hello();
    for _ in 0..20 {
        let rows: Value = other.result("_jackfield/sessions", &json!({}));
        assert_eq!(rows["sessions"].as_array().map(Vec::len), Some(1));
    }
    drop(other);
    world.end();
}
