//! `jackfield config`: shows, checks and changes config.toml.

use crate::home::{CommandOutcome, TestHome};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

fn config_file(home: &TestHome) -> PathBuf {
    home.path().join("config/jackfield/config.toml")
}

fn read_config(home: &TestHome) -> String {
    fs::read_to_string(config_file(home)).unwrap_or_default()
}

/// Runs `config edit` with an editor that runs a shell command on the file `$1`.
fn edit(home: &TestHome, script: &str) -> CommandOutcome {
    home.write_program("editor", script);
    let mut command = home.command(&["config", "edit"]);
    let output = command.env("PATH", "/bin:/usr/bin").env("EDITOR", home.path().join("bin/editor"));
    let output = output.output().unwrap();
    home.outcome("config edit", &output)
}

#[test]
fn show_names_the_origin_of_each_setting() {
    let home = TestHome::new();
    home.write_config("idle_after = 5\n[agents.goose]\nwarm = 1\nenv = { KEY = \"secret\" }\n");
    insta::assert_snapshot!("config_show", home.run(&["config", "show"]).to_snapshot());
    let mut command = home.command(&["config", "show", "--format", "json"]);
    let output = command.env("JACKFIELD_AGENT", "codex").output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|it| it["key"] == key).cloned().unwrap()
    };
    assert_eq!(find("idle_after")["origin"], "file");
    assert_eq!(find("idle_after")["line"], 1);
    assert_eq!(find("durability")["origin"], "default");
    assert_eq!(find("default_agent")["variable"], "JACKFIELD_AGENT");
    assert_eq!(shown["flags"][0]["flag"], "--agent");
    assert!(!shown.to_string().contains("secret"));
}

#[test]
fn path_is_printed_even_if_the_file_is_missing() {
    let home = TestHome::new();
    insta::assert_snapshot!("config_path", home.run(&["config", "path"]).to_snapshot());
}

#[test]
fn check_reports_all_errors_with_lines_and_fails() {
    let home = TestHome::new();
    let missing = home.run(&["config", "check"]);
    assert_eq!(missing.code, 0, "{missing:?}");
    home.write_config("idle_after = 5\n");
    insta::assert_snapshot!("config_check_valid", home.run(&["config", "check"]).to_snapshot());
    home.write_config("default_agents = \"x\"\n[http]\ncert = \"a.pem\"\nroots = 1\n");
    insta::assert_snapshot!("config_check_errors", home.run(&["config", "check"]).to_snapshot());
    let checked: Value =
        serde_json::from_str(&home.run(&["config", "check", "--format", "json"]).stdout).unwrap();
    assert_eq!(checked["errors"][0]["line"], 1);
    home.write_config("[agents.codex]\nfallback = \"nobody\"\n");
    let semantic = home.run(&["config", "check"]);
    assert!(
        semantic.stderr.contains("line 2: `fallback` of [agents.codex]"),
        "{}",
        semantic.stderr
    );
    let absent = home.run(&["config", "check", "absent.toml"]);
    assert_eq!((absent.code, absent.stderr.contains("does not exist")), (2, true));
}

#[test]
fn set_keeps_comments_and_refuses_invalid_values() {
    let home = TestHome::new();
    home.write_config("# mine\nidle_after = 5 # short\n");
    insta::assert_snapshot!(
        "config_set",
        home.run(&["config", "set", "idle_after", "60"]).to_snapshot()
    );
    assert_eq!(read_config(&home), "# mine\nidle_after = 60 # short\n");
    let same = home.run(&["config", "set", "idle_after", "60"]);
    assert!(same.stderr.contains("no setting has changed"), "{}", same.stderr);
    let unknown = home.run(&["config", "set", "default_agent", "nobody"]);
    insta::assert_snapshot!("config_set_invalid", unknown.to_snapshot());
    assert_eq!(read_config(&home), "# mine\nidle_after = 60 # short\n");
    let misspelled = home.run(&["config", "set", "idle_afters", "1"]);
    insta::assert_snapshot!("config_set_unknown_key", misspelled.to_snapshot());
}

#[test]
fn edit_replaces_the_file_only_if_the_text_is_valid() {
    let home = TestHome::new();
    home.write_config("idle_after = 5\n");
    let edited = edit(&home, "echo 'durability = \"power\"' >> \"$1\"");
    assert_eq!(edited.code, 0, "{}", edited.stderr);
    assert_eq!(read_config(&home), "idle_after = 5\ndurability = \"power\"\n");
    insta::assert_snapshot!(
        "config_edit_invalid",
        edit(&home, "echo 'x = 1' >> \"$1\"").to_snapshot()
    );
    assert_eq!(read_config(&home), "idle_after = 5\ndurability = \"power\"\n");
    let failed = edit(&home, "exit 3");
    assert_eq!((failed.code, failed.stderr.contains("exit status: 3")), (1, true));
    let unset = home.run(&["config", "edit"]);
    insta::assert_snapshot!("config_edit_without_editor", unset.to_snapshot());
}

#[test]
fn running_daemon_applies_a_change_or_the_command_says_that_it_needs_a_restart() {
    let home = TestHome::new();
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    let applied = home.run(&["config", "set", "sessions.max_live", "3"]);
    insta::assert_snapshot!("config_set_applied", applied.to_snapshot());
    let restart = home.run(&["config", "set", "http.roots", "/srv"]);
    insta::assert_snapshot!("config_set_needs_restart", restart.to_snapshot());
    let log = fs::read_to_string(home.path().join("state/jackfield/daemon.log")).unwrap();
    assert!(log.contains("reloaded the configuration") && log.contains("sessions"), "{log}");
    assert!(log.contains("changed settings need a restart") && log.contains("http"), "{log}");
    // Also without the command: the file is read when a client connects.
    home.write_config("[agents.mine]\ncommand = [\"goose\", \"acp\"]\n");
    let status = home.run(&["daemon", "status", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&status.stdout).unwrap()["stopping"], json!(false));
    let log = fs::read_to_string(home.path().join("state/jackfield/daemon.log")).unwrap();
    assert!(log.contains("agents, sessions"), "{log}");
    home.run(&["daemon", "stop"]);
}

#[test]
fn value_from_the_environment_is_named_in_errors() {
    let home = TestHome::new();
    let run = |args: &[&str], variable: &str, value: &str| {
        let output = home.command(args).env(variable, value).output().unwrap();
        home.outcome(&args.join(" "), &output)
    };
    let invalid = run(&["sessions", "prune"], "JACKFIELD_KEEP_SESSIONS", "many");
    insta::assert_snapshot!("invalid_variable", invalid.to_snapshot());
    let conflict = run(&["run", "--isolated", "hi", "--", "goose"], "JACKFIELD_SESSION", "s-1");
    insta::assert_snapshot!("conflicting_variable", conflict.to_snapshot());
    let typed = run(&["sessions", "prune", "--keep", "x"], "JACKFIELD_KEEP_SESSIONS", "1");
    assert!(!typed.stderr.contains("JACKFIELD_KEEP_SESSIONS"), "{}", typed.stderr);
}
