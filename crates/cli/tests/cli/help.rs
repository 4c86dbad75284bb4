//! The help of every command, the manual and the completions.

use crate::home::Home;

const COMMANDS: &[&str] = &[
    "run",
    "acp",
    "attach",
    "ps",
    "sessions",
    "sessions list",
    "sessions show",
    "sessions fork",
    "sessions close",
    "sessions rm",
    "sessions export",
    "sessions import",
    "sessions prune",
    "log",
    "asks",
    "answer",
    "cancel",
    "queue",
    "serve",
    "daemon",
    "daemon start",
    "daemon stop",
    "daemon restart",
    "daemon status",
    "fleet",
    "fleet status",
    "fleet audit",
    "fleet hosts",
    "fleet sessions",
    "host",
    "host drain",
    "host resume",
    "token",
    "tenants",
    "tenants token",
    "tenants check",
    "agent",
    "adapt",
    "bus",
    "agents",
    "agents show",
    "agents import",
    "models",
    "models probe",
    "policy",
    "policy check",
    "policy explain",
    "trust",
    "doctor",
    "bugreport",
    "completions",
    "man",
];

#[test]
fn every_command_explains_itself() {
    let home = Home::new();
    insta::assert_snapshot!("help", home.run(&["--help"]).told());
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let did = home.run(&args);
        assert_eq!((did.code, did.stderr.as_str()), (0, ""));
        insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), did.told());
    }
}

#[test]
fn no_command_is_forgotten_here() {
    let listed = Home::new().run(&["--help"]).stdout;
    let listed = listed.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    for line in listed.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(name == "help" || COMMANDS.contains(&name), "{name}");
    }
}

#[test]
fn the_version_is_data() {
    insta::assert_snapshot!("version", Home::new().run(&["--version"]).told());
}

#[test]
fn the_manual_and_the_completions_come_from_the_same_tree() {
    let home = Home::new();
    let manual = home.run(&["man"]);
    assert!(manual.stdout.contains(".SH NAME") && manual.stdout.contains("jackfield\\-run(1)"));
    let page = home.run(&["man", "sessions", "rm"]);
    assert!(
        page.stdout.contains("jackfield\\-sessions\\-rm \\- Remove a session"),
        "{}",
        page.stdout
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let did = home.run(&["completions", shell]);
        assert_eq!(did.code, 0);
        assert!(did.stdout.contains("jackfield") && did.stdout.contains("attach"), "{shell}");
    }
    insta::assert_snapshot!("man_unknown", home.run(&["man", "nonsense"]).told());
}
