//! The help of every command, the manual pages and the completions.

use crate::home::TestHome;
use std::{fs, path::Path};

const COMMANDS: &[&str] = &[
    "run",
    "acp",
    "attach",
    "tui",
    "ps",
    "sessions",
    "sessions list",
    "sessions show",
    "sessions rename",
    "sessions fork",
    "sessions close",
    "sessions rm",
    "sessions export",
    "sessions import",
    "sessions prune",
    "log",
    "usage",
    "asks",
    "answer",
    "cancel",
    "queue",
    "console",
    "devices",
    "devices list",
    "devices rename",
    "devices revoke",
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
    "listen",
    "token",
    "tenants",
    "tenants token",
    "tenants check",
    "agent",
    "adapt",
    "bus",
    "setup",
    "agents",
    "agents show",
    "agents import",
    "agents install",
    "agents update",
    "agents rollback",
    "agents remove",
    "models",
    "models probe",
    "config",
    "config show",
    "config path",
    "config edit",
    "config set",
    "config check",
    "policy",
    "policy check",
    "policy explain",
    "sandbox",
    "sandbox check",
    "sandbox explain",
    "sandbox forget",
    "sandbox hosts",
    "trust",
    "doctor",
    "bugreport",
    "completions",
    "man",
];

#[test]
fn every_command_has_help() {
    let home = TestHome::new();
    insta::assert_snapshot!("help", home.run(&["--help"]).to_snapshot());
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let outcome = home.run(&args);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        insta::assert_snapshot!(
            format!("help_{}", command.replace(' ', "_")),
            outcome.to_snapshot()
        );
    }
}

#[test]
fn help_test_covers_all_commands() {
    let listed = TestHome::new().run(&["--help"]).stdout;
    let listed = listed.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    for line in listed.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(name == "help" || COMMANDS.contains(&name), "{name}");
    }
}

#[test]
fn documents_name_only_existing_commands_and_the_readme_lists_all() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|it| it.unwrap().path());
    let docs = docs.filter(|it| it.extension().is_some_and(|it| it == "md"));
    for file in docs.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&file).unwrap();
        for part in text.split("`jackfield ").skip(1).chain(text.split("$ jackfield ").skip(1)) {
            let name = part.split(|it: char| !it.is_ascii_lowercase()).next().unwrap();
            let exists = name.is_empty() || name == "help" || COMMANDS.contains(&name);
            assert!(exists, "{}: `jackfield {name}`", file.display());
        }
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for name in COMMANDS.iter().filter(|it| !it.contains(' ')) {
        assert!(readme.contains(&format!("\njackfield {name}")), "the README lacks `{name}`");
    }
}

#[test]
fn version_is_printed_on_stdout() {
    insta::assert_snapshot!("version", TestHome::new().run(&["--version"]).to_snapshot());
}

#[test]
fn manual_pages_and_completions_contain_all_commands() {
    let home = TestHome::new();
    let manual = home.run(&["man"]);
    assert!(manual.stdout.contains(".SH NAME") && manual.stdout.contains("jackfield\\-run(1)"));
    let page = home.run(&["man", "sessions", "rm"]);
    assert!(
        page.stdout.contains("jackfield\\-sessions\\-rm \\- Remove a session"),
        "{}",
        page.stdout
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = home.run(&["completions", shell]);
        assert_eq!(outcome.code, 0);
        assert!(outcome.stdout.contains("JACKFIELD_COMPLETE"), "{shell}: {}", outcome.stdout);
    }
    let pages = home.path().join("pages");
    fs::create_dir(&pages).unwrap();
    let written = home.run(&["man", "--output-dir", pages.to_str().unwrap()]);
    assert_eq!((written.code, &*written.stdout), (0, ""), "{}", written.stderr);
    for name in COMMANDS {
        let page = pages.join(format!("jackfield-{}.1", name.replace(' ', "-")));
        assert!(page.is_file(), "{}", page.display());
    }
    insta::assert_snapshot!("man_unknown", home.run(&["man", "nonsense"]).to_snapshot());
}
