//! Agents by name: a file of five lines and nothing else, through the real daemon.

use jackfield_e2e::{Home, client::PATIENCE, home::binary};
use serde_json::json;
use std::{fs, os::unix::fs::symlink, process::Output};

/// A home whose agent is found where installers put programs, which is not on `PATH`.
fn home() -> Home {
    let home = Home::new();
    let bin = home.path().join(".local/bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(binary("fake-agent"), bin.join("fake-cli")).unwrap();
    fs::create_dir_all(home.path().join("config/agents")).unwrap();
    home
}

/// Writes `agents/NAME.toml`: five lines, and what else is given.
fn agent(home: &Home, name: &str, bin: &str, flags: &[&str], more: &str) {
    let flags: Vec<String> = flags.iter().map(|it| format!(", {it:?}")).collect();
    let text = format!(
        "id = {name:?}\nname = {name:?}\nbins = [{bin:?}]\n[[launch]]\nargs = [\"--marker\", {:?}{}]\n{more}",
        home.mark(),
        flags.concat(),
    );
    fs::write(home.path().join(format!("config/agents/{name}.toml")), text).unwrap();
}

fn run(home: &Home, args: &[&str]) -> Output {
    home.run(&[&["run", "--format", "quiet"], args].concat(), PATIENCE)
}

/// What the agent said to a prompt.
fn said(home: &Home, args: &[&str]) -> String {
    let output = run(home, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn refused(home: &Home, args: &[&str]) -> String {
    let output = run(home, args);
    assert!(!output.status.success(), "{args:?} worked");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_of_five_lines_is_an_agent_at_the_next_connection() {
    let home = home();
    let daemon = home.serve(&[]);
    assert!(refused(&home, &["-a", "mine", "hello"]).contains("unknown agent `mine`"));
    agent(&home, "mine", "fake-cli", &[], "");
    assert_eq!(said(&home, &["-a", "mine", "hello"]), "you said: hello");
    agent(&home, "mine", "no-such-cli", &[], "");
    let why = refused(&home, &["-a", "mine", "hello"]);
    assert!(why.contains("`no-such-cli` was not found") && why.contains("/usr/bin"), "{why}");
    fs::write(home.path().join("config/agents/mine.toml"), "id = \"mine\"\nbinz = []\n").unwrap();
    let why = refused(&home, &["-a", "mine", "hello"]);
    assert!(why.contains("mine.toml`: line 2: unknown field `binz`"), "{why}");
    agent(&home, "mine", "fake-cli", &[], "");
    assert_eq!(said(&home, &["-a", "mine", "again"]), "you said: again");
    daemon.stop();
}

#[test]
fn keys_reach_only_the_agent_that_is_meant_to_have_them() {
    let home = home();
    agent(&home, "one", "fake-cli", &[], "[env]\npass = [\"ONE_*\"]\n");
    agent(
        &home,
        "two",
        "fake-cli",
        &[],
        "[env]\npass = [\"TWO_*\"]\n[env.set]\nTWO_TRUST = \"1\"\n",
    );
    fs::write(
        home.path().join("config/config.toml"),
        "default_agent = \"two\"\n[agents.two]\npass_env = [\"EXTRA\"]\nenv = { GIVEN = \"yes\" }\n",
    )
    .unwrap();
    let variables = [("ONE_KEY", "1"), ("TWO_KEY", "2"), ("EXTRA", "3"), ("NOBODYS_KEY", "4")];
    let started = home.command(&["daemon", "start"]).envs(variables).status().unwrap();
    assert!(started.success());
    let words = "env ONE_KEY then env TWO_KEY then env EXTRA then env GIVEN then env TWO_TRUST \
                 then env NOBODYS_KEY then env JACKFIELD_STATE_DIR";
    let see = |args: &[&str]| -> Vec<String> {
        let said = said(&home, &[args, &[words]].concat());
        let names = [
            "ONE_KEY",
            "TWO_KEY",
            "EXTRA",
            "GIVEN",
            "TWO_TRUST",
            "NOBODYS_KEY",
            "JACKFIELD_STATE_DIR",
        ];
        let seen = names.iter().filter(|it| said.contains(&format!("{it}=")));
        seen.map(|it| (*it).to_owned()).collect()
    };
    assert_eq!(see(&["-a", "one"]), ["ONE_KEY"]);
    assert_eq!(see(&[]), ["TWO_KEY", "EXTRA", "GIVEN", "TWO_TRUST"]);
    assert!(home.run(&["daemon", "stop"], PATIENCE).status.success());
}

#[test]
fn a_session_of_a_named_agent_is_woken_by_name_after_the_daemon_was_killed() {
    let home = home();
    let state = home.path().join("agent");
    let state = state.to_str().unwrap();
    agent(&home, "mine", "fake-cli", &["--state", state], "");
    let daemon = home.serve(&[]);
    let id = said(&home, &["-a", "mine", "--no-wait", "first"]);
    assert!(run(&home, &["-s", &id, "second"]).status.success());
    daemon.kill_9();
    // The program moved meanwhile: it is looked for again.
    let (old, new) = (home.path().join(".local/bin/fake-cli"), home.path().join(".cargo/bin"));
    fs::create_dir_all(&new).unwrap();
    fs::rename(old, new.join("fake-cli")).unwrap();
    let daemon = home.serve(&[]);
    let said = said(&home, &["-s", &id, "history"]);
    assert!(said.contains("first | second"), "{said}");
    daemon.stop();
}

#[test]
fn a_session_that_began_with_a_command_goes_on_with_it_although_the_catalogue_has_that_name() {
    let home = home();
    let state = home.path().join("agent");
    let goose = home.path().join("goose");
    symlink(binary("fake-agent"), &goose).unwrap();
    let command = [goose.to_str().unwrap(), "--marker", home.mark()];
    let command = [&command[..], &["--state", state.to_str().unwrap()]].concat();
    let daemon = home.serve(&[]);
    let id = said(&home, &[&["--no-wait", "first", "--"], &command[..]].concat());
    assert!(run(&home, &["-s", &id, "second"]).status.success());
    daemon.kill_9();
    let daemon = home.serve(&[]);
    let said = said(&home, &["-s", &id, "history"]);
    assert!(said.contains("first | second"), "{said}");
    // A client that only names the session gets the command too, from the journal.
    let mut client = home.dial();
    client.hello();
    assert!(home.run(&["sessions", "close", &id], PATIENCE).status.success());
    client.result(
        "session/resume",
        &json!({ "sessionId": id, "cwd": home.path(), "mcpServers": [] }),
    );
    assert_eq!(client.prompt(&id, "hello"), "end_turn");
    drop(client);
    daemon.stop();
}

#[test]
fn a_wild_program_is_probed_without_leaving_anything_behind() {
    let home = home();
    let flags = ["--ignore-eof", "--ignore-term"];
    agent(&home, "mine", "fake-cli", &flags, "[models]\nfrom = \"acp\"\n");
    let output = home.run(&["models", "mine", "--probe", "--format", "quiet"], PATIENCE);
    let models = String::from_utf8(output.stdout).unwrap();
    assert_eq!(models, "default\nfake-fast\nfake-smart\n");
    assert_eq!(home.alive(&[]), Vec::<u32>::new());
}

#[test]
fn an_agent_that_never_asks_is_named_and_refused_where_rules_deny_something() {
    let home = home();
    agent(&home, "silent", "fake-cli", &[], "never_asks = true\n");
    let daemon = home.serve(&[]);
    let output = run(&home, &["-a", "silent", "hello"]);
    let warning = "warning: silent never asks before it acts: policy is not enforced";
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.contains(warning), "{stderr}");
    let rules = "[[rule]]\ndo = \"deny\"\nrun = \"git push\"\n";
    fs::write(home.path().join("config/policy.toml"), rules).unwrap();
    let why = refused(&home, &["-a", "silent", "hello"]);
    assert!(why.contains("silent never asks") && why.contains("--unenforced"), "{why}");
    assert_eq!(said(&home, &["-a", "silent", "--unenforced", "hello"]), "you said: hello");
    let shown = home.run(&["agents", "show", "silent"], PATIENCE);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("rules cannot be enforced"), "{shown}");
    daemon.stop();
}
