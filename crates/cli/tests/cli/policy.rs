//! `jackfield policy check`: rules as they are understood, flaws with their lines.

use crate::home::Home;
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

fn home(file: &str, text: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path().join("config/jackfield")).unwrap();
    fs::write(home.path().join(file), text).unwrap();
    home
}

#[test]
fn the_rules_of_a_file_are_listed_as_they_are_understood() {
    let home = home("project/policy.toml", RULES);
    insta::assert_snapshot!("policy_check", home.run(&["policy", "check", "policy.toml"]).told());
    let json = home.run(&["policy", "check", "policy.toml", "--format", "json"]);
    insta::assert_snapshot!("policy_check_json", json.told());
    let quiet = home.run(&["policy", "check", "policy.toml", "--format", "quiet"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, ""));
}

#[test]
fn the_users_own_file_needs_no_name() {
    let home = home("config/jackfield/policy.toml", RULES);
    assert_eq!(home.run(&["policy", "check"]).code, 0);
    assert!(!home.socket().exists(), "no daemon is started for it");
    fs::write(home.path().join("config/jackfield/policy.toml"), "").unwrap();
    insta::assert_snapshot!("policy_check_empty", home.run(&["policy", "check"]).told());
}

#[test]
fn a_projects_file_may_hold_other_things() {
    let home = home("project/.jackfield.toml", "agent = \"goose\"\n[[rule]]\ndo = \"ask\"\n");
    let did = home.run(&["policy", "check", ".jackfield.toml"]);
    assert_eq!(did.code, 0, "{}", did.stderr);
}

#[test]
fn all_flaws_are_told_with_their_lines() {
    let text = "[[rule]]\ndo = \"forbid\"\nrun = \"a && b\"\ncommand = \"ls\"\n";
    let home = home("project/policy.toml", text);
    let did = home.run(&["policy", "check", "policy.toml"]);
    insta::assert_snapshot!("policy_check_flaws", did.told());
    assert_eq!(did.code, 2);
    let did = home.run(&["policy", "check", "policy.toml", "--format", "json"]);
    assert_eq!(did.code, 2);
    let json: Value = serde_json::from_str(&did.stdout).unwrap();
    let lines: Vec<&Value> =
        json["flaws"].as_array().unwrap().iter().map(|it| &it["line"]).collect();
    assert_eq!(lines, [&json!(2), &json!(3), &json!(4)]);
}

#[test]
fn a_file_that_is_not_there_is_told_with_a_way_out() {
    insta::assert_snapshot!(
        "policy_check_missing",
        Home::new().run(&["policy", "check", "x"]).told()
    );
}
