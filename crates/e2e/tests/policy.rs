//! Rules about what agents may do, with the real command: a deny beats everything, an Always is a
//! rule that outlives the daemon, and whoever does not ask is named.

use jackfield_e2e::{Daemon, Home};
use serde_json::{Value, json};
use std::{fs, time::Duration};

const BOUND: Duration = Duration::from_secs(20);

struct Told {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn told(home: &Home, args: &[&str]) -> Told {
    let output = home.run(args, BOUND);
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    Told { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// One prompt to the fake agent, which asks to change `/fake/file`.
fn run(home: &Home, flags: &[&str], prompt: &str) -> Told {
    let agent = home.fake_agent(&[]);
    let mut args = [&["run"], flags, &[prompt, "--"]].concat();
    args.extend(agent.iter().map(String::as_str));
    told(home, &args)
}

fn with_rules(rules: &str) -> (Home, Daemon) {
    let home = Home::new();
    write_rules(&home, rules);
    let daemon = home.serve(&[]);
    (home, daemon)
}

fn write_rules(home: &Home, rules: &str) {
    fs::create_dir_all(home.path().join("config")).unwrap();
    fs::write(home.path().join("config/policy.toml"), rules).unwrap();
}

fn only_session(home: &Home) -> String {
    told(home, &["sessions", "list", "--format", "quiet"]).stdout.trim().to_owned()
}

#[test]
fn a_deny_beats_approve_all_and_is_explained() {
    let rules = "[[rule]]\ndo = \"allow\"\n[[rule]]\ndo = \"deny\"\nname = \"hands off\"\n\
                 path = \"/fake/**\"\n";
    let (home, daemon) = with_rules(rules);
    let ran = run(&home, &["--approve", "all"], "ask");
    assert!(ran.stdout.contains("ask 1: reject-once"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    for part in ["denied by a policy rule: touch a file", "`hands off`", "jackfield policy explain"]
    {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let id = only_session(&home);
    let why = told(&home, &["policy", "explain", &id, "1"]);
    assert!(why.stdout.contains("`hands off`"), "{}{}", why.stdout, why.stderr);
    assert!(why.stdout.contains("policy.toml:3"), "{}", why.stdout);
    assert!(why.stdout.contains("reject-once by policy"), "{}", why.stdout);
    let missing = told(&home, &["policy", "explain", &id, "7"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    daemon.stop();
}

#[test]
fn an_allow_needs_nobody_and_an_ask_needs_a_person_even_under_approve_all() {
    let (home, daemon) = with_rules("[[rule]]\ndo = \"allow\"\nkind = \"edit\"\n");
    let ran = run(&home, &[], "ask");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("ask 1: allow-once"), "{}", ran.stdout);
    // Rules are read again when a client comes.
    write_rules(&home, "[[rule]]\ndo = \"ask\"\nkind = \"edit\"\n");
    let ran = run(&home, &["--approve", "all", "--on-ask", "fail"], "ask");
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("touch a file"), "{}", ran.stderr);
    daemon.stop();
}

#[test]
fn new_rules_hold_at_once_for_a_session_that_runs() {
    let (home, daemon) = with_rules("");
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    write_rules(&home, "[[rule]]\ndo = \"deny\"\nkind = \"edit\"\n");
    client.prompt(&id, "ask");
    assert_eq!(client.text(), "ask 1: reject-once");
    write_rules(&home, "[[rule]]\ndo = \"allow\"\nkind = \"edit\"\n");
    client.prompt(&id, "ask");
    assert!(client.text().ends_with("allow-once"), "{}", client.text());
    drop(client);
    daemon.stop();
}

#[test]
fn denies_of_a_trusted_project_hold_behind_a_link_and_without_its_file() {
    let (home, daemon) = with_rules("");
    let (project, link) = (home.path().join("project"), home.path().join("link"));
    fs::create_dir(&project).unwrap();
    std::os::unix::fs::symlink(&project, &link).unwrap();
    let file = project.join(".jackfield.toml");
    fs::write(&file, "[[rule]]\ndo = \"deny\"\nkind = \"edit\"\n").unwrap();
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(&link);
    assert_eq!(told(&home, &["trust", project.to_str().unwrap()]).code, Some(0));
    fs::rename(&file, project.join("renamed")).unwrap();
    client.prompt(&id, "ask");
    assert_eq!(client.text(), "ask 1: reject-once");
    drop(client);
    daemon.stop();
}

#[test]
fn an_always_is_learned_narrowly_and_outlives_the_daemon() {
    let (home, daemon) = with_rules("");
    let state = home.path().join("agent");
    let mut client = home.dial();
    client.connect(&home.fake_agent(&["--state", state.to_str().unwrap()]));
    let id = client.open(home.path());
    let prompt = client.send_prompt(&id, "ask");
    let asked = client.until("the ask", |it| it["method"] == "session/request_permission");
    client.respond(&asked, &chosen("allow-always"));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "ask 1: allow-once", "the agent gets no permanent grant");
    drop(client);
    daemon.kill_9();

    let daemon = home.serve(&[]);
    let ran = told(&home, &["run", "-s", &id, "ask"]);
    assert!(ran.stdout.contains("ask 1: allow-once"), "{}{}", ran.stdout, ran.stderr);
    let json = told(&home, &["policy", "explain", &id, "1", "--format", "json"]);
    let story: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(story["learned"]["path"], json!(["/fake/file"]), "{story}");
    let why = told(&home, &["policy", "explain", &id, "--format", "quiet"]);
    assert!(why.stdout.contains("learned in this session"), "{}", why.stdout);
    daemon.stop();
}

fn chosen(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[test]
fn who_does_not_ask_is_named() {
    let (home, daemon) = with_rules("[[rule]]\ndo = \"deny\"\npath = \"/fake/**\"\n");
    let ran = run(&home, &["--keep"], "tool");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let id = only_session(&home);
    let why = "fake-agent ran `edit /fake/file` without asking: policy is not enforced";
    let shown = told(&home, &["sessions", "show", &id]);
    assert!(shown.stdout.contains(why), "{}", shown.stdout);
    let ps = told(&home, &["ps"]);
    assert!(ps.stderr.contains(why), "{}{}", ps.stdout, ps.stderr);
    daemon.stop();
}

#[test]
fn a_project_speaks_only_when_it_is_trusted() {
    let (home, daemon) = with_rules("");
    let file = home.path().join(".jackfield.toml");
    fs::write(&file, "[[rule]]\ndo = \"allow\"\nkind = \"edit\"\n").unwrap();
    assert_eq!(run(&home, &[], "ask").code, Some(5));
    let trusted = told(&home, &["trust"]);
    assert!(trusted.stdout.contains("allow kind edit"), "{}{}", trusted.stdout, trusted.stderr);
    assert_eq!(run(&home, &[], "ask").code, Some(0));
    // What was trusted stays, whatever the file says now.
    fs::write(&file, "[[rule]]\ndo = \"deny\"\n").unwrap();
    assert!(told(&home, &["trust", "--list"]).stdout.contains("the file has changed"));
    assert_eq!(run(&home, &[], "ask").code, Some(0));
    assert_eq!(told(&home, &["trust", "--revoke"]).code, Some(0));
    assert_eq!(run(&home, &[], "ask").code, Some(5));
    daemon.stop();
}
