//! `jackfield policy check`.

use crate::home::TestHome;
use serde_json::{Value, json};
use std::fs;

const RULES: &str = r#"reseed = false

[[rule]]
do = "deny"
name = "no pushes"
run = ["git push", "rm"]

[[rule]]
do = "allow"
kind = "read"
path = "src/**"
grant = "always"

[[rule]]
do = "ask"
"#;

fn home_with_file(file: &str, text: &str) -> TestHome {
    let home = TestHome::new();
    fs::create_dir_all(home.path().join("config/jackfield")).unwrap();
    fs::write(home.path().join(file), text).unwrap();
    home
}

#[test]
fn policy_check_lists_the_rules_of_a_file() {
    let home = home_with_file("project/policy.toml", RULES);
    insta::assert_snapshot!(
        "policy_check",
        home.run(&["policy", "check", "policy.toml"]).to_snapshot()
    );
    let json = home.run(&["policy", "check", "policy.toml", "--format", "json"]);
    insta::assert_snapshot!("policy_check_json", json.to_snapshot());
    let quiet = home.run(&["policy", "check", "policy.toml", "--format", "quiet"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, ""));
}

#[test]
fn policy_check_uses_the_users_file_by_default() {
    let home = home_with_file("config/jackfield/policy.toml", RULES);
    assert_eq!(home.run(&["policy", "check"]).code, 0);
    assert!(!home.socket().exists(), "no daemon is started");
    fs::write(home.path().join("config/jackfield/policy.toml"), "").unwrap();
    insta::assert_snapshot!("policy_check_empty", home.run(&["policy", "check"]).to_snapshot());
}

#[test]
fn project_file_may_contain_other_settings() {
    let home =
        home_with_file("project/.jackfield.toml", "agent = \"goose\"\n[[rule]]\ndo = \"ask\"\n");
    let outcome = home.run(&["policy", "check", ".jackfield.toml"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn all_policy_errors_are_reported_with_their_lines() {
    let text = "[[rule]]\ndo = \"forbid\"\nrun = \"a && b\"\ncommand = \"ls\"\n";
    let home = home_with_file("project/policy.toml", text);
    let outcome = home.run(&["policy", "check", "policy.toml"]);
    insta::assert_snapshot!("policy_check_flaws", outcome.to_snapshot());
    assert_eq!(outcome.code, 2);
    let outcome = home.run(&["policy", "check", "policy.toml", "--format", "json"]);
    assert_eq!(outcome.code, 2);
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let lines: Vec<&Value> =
        json["flaws"].as_array().unwrap().iter().map(|it| &it["line"]).collect();
    assert_eq!(lines, [&json!(2), &json!(3), &json!(4)]);
}

#[test]
fn missing_policy_file_is_reported_with_a_hint() {
    insta::assert_snapshot!(
        "policy_check_missing",
        TestHome::new().run(&["policy", "check", "x"]).to_snapshot()
    );
    let outcome = TestHome::new().run(&["policy", "check"]);
    assert_eq!(outcome.code, 2);
    let (error, hint) = outcome.stderr.split_once("\nhint: ").unwrap();
    assert!(error.starts_with("error: no file given, and you have no policy file: `"), "{error}");
    assert!(error.ends_with("/config/jackfield/policy.toml` does not exist"), "{error}");
    assert!(hint.contains("`jackfield policy check FILE`"), "{hint}");
}
