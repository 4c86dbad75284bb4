//! Completions in a real shell: agents, sessions and options as they are now.

use crate::{
    fake_hub::{FakeHub, session_row},
    home::TestHome,
};
use serde_json::json;
use std::{path::Path, process::Command};

/// Runs a script in a shell in whose PATH is the program.
fn run_shell(home: &TestHome, shell: &str, args: &[&str], script: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_jackfield"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let template = home.command(&[]);
    let mut command = Command::new(shell);
    command.args(args).arg(script).env_clear();
    for (name, value) in template.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = command.env("PATH", path).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The candidates of bash for the last word of a line.
fn complete_in_bash(home: &TestHome, words: &[&str]) -> Vec<String> {
    let script = format!(
        "source <(jackfield completions bash)\n\
         COMP_WORDS=(jackfield {}) COMP_CWORD={} COMP_TYPE=9 COMP_KEY=9\n\
         spec=$(complete -p jackfield); function=$(sed 's/.*-F \\([^ ]*\\).*/\\1/' <<<\"$spec\")\n\
         $function jackfield \"${{COMP_WORDS[$COMP_CWORD]}}\" \"\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>().join(" "),
        words.len()
    );
    let candidates = run_shell(home, "bash", &["--norc", "-c"], &script);
    candidates.lines().map(|it| it.trim().to_owned()).collect()
}

fn home() -> TestHome {
    let home = TestHome::new();
    home.write_config("[agents.my-own-agent]\ncommand = [\"goose\", \"acp\"]\n");
    let mut named = session_row("s-7f3abcdefghi", "goose", "idle", "fix the parser");
    named["name"] = json!("parser");
    let rows = [named, session_row("s-b20abcdefghi", "codex", "asleep", "")];
    FakeHub::new().with_sessions(&rows).start(&home);
    home
}

#[test]
fn bash_completes_commands_options_agents_sessions_and_keys() {
    let home = home();
    assert_eq!(complete_in_bash(&home, &["att"]), ["attach"]);
    assert_eq!(complete_in_bash(&home, &["run", "--agent", "my-"]), ["my-own-agent"]);
    assert_eq!(complete_in_bash(&home, &["attach", "par"]), ["parser"]);
    assert_eq!(complete_in_bash(&home, &["log", "s-b"]), ["s-b20abcdefghi"]);
    assert_eq!(complete_in_bash(&home, &["run", "--start-"]), ["--start-timeout"]);
    assert_eq!(complete_in_bash(&home, &["config", "set", "default_"]), ["default_agent"]);
    assert_eq!(complete_in_bash(&home, &["ps", "--state", "asl"]), ["asleep"]);
}

#[test]
fn zsh_and_fish_load_their_scripts() {
    let home = home();
    let is_installed = |it: &str| Path::new("/usr/bin").join(it).exists();
    if is_installed("fish") {
        let script = "jackfield completions fish | source; complete -C 'jackfield attach par'";
        assert!(run_shell(&home, "fish", &["-N", "-c"], script).contains("parser"));
    }
    if is_installed("zsh") {
        let script = "autoload -U compinit; compinit -u -D; source <(jackfield completions zsh); \
                      (( $+_comps[jackfield] )) && echo loaded";
        assert!(run_shell(&home, "zsh", &["-f", "-c"], script).contains("loaded"));
        // From a directory in `fpath`, already the first completion has candidates.
        let script = "jackfield completions zsh >_jackfield; fpath=($PWD $fpath); \
                      autoload -U compinit; compinit -u -D; _describe() { print -l ${(P)3} }; \
                      words=(jackfield att); CURRENT=2; $_comps[jackfield]";
        assert!(run_shell(&home, "zsh", &["-f", "-c"], script).contains("attach:"));
    }
}
