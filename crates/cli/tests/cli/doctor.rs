//! `jackfield doctor`: planted problems, their fixes, and the report.

use crate::{
    daemon::{AGENT, read_status},
    home::{CommandOutcome, TestHome},
};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::SystemTime};

/// Checks whose result does not depend on the machine.
const OWN_CHECKS: [&str; 8] =
    ["config", "state", "runtime", "socket", "token", "daemon", "journal", "ledger"];

fn run_own_checks(home: &TestHome) -> CommandOutcome {
    home.run(&[&["doctor"], &OWN_CHECKS[..]].concat())
}

/// Runs checks without a model server, so that our own agent is not started.
fn run_without_server(home: &TestHome, checks: &[&str]) -> CommandOutcome {
    let mut command = home.command(&[&["doctor"], checks].concat());
    let output = command.env_remove("OPENAI_BASE_URL").output().unwrap();
    home.outcome(&format!("doctor {}", checks.join(" ")), &output)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Runs the rest of a line of the report that starts with `fix: `.
fn run_fix(outcome: &CommandOutcome, home: &TestHome, fix: &str) {
    assert!(outcome.stdout.contains(&format!("fix: {fix}")), "{}", outcome.stdout);
    let script = fix.replace("[HOME]", &home.path().display().to_string());
    let status = std::process::Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
    assert!(status.success(), "{script}");
}

#[test]
fn doctor_passes_for_a_new_home_and_a_running_daemon() {
    let home = TestHome::new();
    insta::assert_snapshot!("doctor_new", run_own_checks(&home).to_snapshot());
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    let pid = read_status(&home)["pid"].to_string();
    let printed = run_own_checks(&home).to_snapshot().replace(&pid, "[PID]");
    insta::assert_snapshot!("doctor_running", printed);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    insta::assert_snapshot!("doctor_stopped", run_own_checks(&home).to_snapshot());
}

#[test]
fn doctor_reports_problems_with_a_fix() {
    let home = TestHome::new();
    home.write_config("[agents.x]\ncommand = [\"no-such-agent\"]\n");
    fs::remove_file(home.path().join("bin/goose")).unwrap();
    let state = home.path().join("state/jackfield");
    fs::create_dir_all(state.join("ledger")).unwrap();
    set_mode(&state, 0o755);
    fs::write(state.join("ledger/x.json"), "{}").unwrap();
    fs::write(state.join("journal.db"), "this is no database, and long enough to see it").unwrap();
    fs::write(home.path().join("run/jackfield"), "").unwrap();
    let outcome = run_without_server(&home, &[&["agents"], &OWN_CHECKS[..]].concat());
    insta::assert_snapshot!("doctor_sick", outcome.to_snapshot());
    assert_eq!(outcome.code, 1);
    home.write_config("agnets = 1\n");
    let printed = home.run(&["doctor", "config", "--format", "quiet"]).to_snapshot();
    assert!(printed.contains("unknown key `agnets`"), "{printed}");
}

#[test]
fn file_in_place_of_a_parent_directory_is_named_by_doctor_and_run() {
    let home = TestHome::new();
    for name in ["state", "run"] {
        let file = home.path().join(name);
        fs::remove_dir(&file).unwrap();
        fs::write(&file, "").unwrap();
        let outcome = run_own_checks(&home);
        assert_eq!(outcome.code, 1);
        let expected = format!("cannot be created: [HOME]/{name} is not a directory");
        assert!(outcome.stdout.contains(&expected), "{}", outcome.stdout);
        let outcome = home.run(&["run", "hi", "--", "goose"]);
        assert!(outcome.stderr.contains(&format!("[HOME]/{name}/")), "{}", outcome.stderr);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
}

/// Plants wrong modes of four files, and returns them with the modes that they should have.
fn plant_wrong_modes(home: &TestHome) -> [(std::path::PathBuf, u32); 4] {
    home.write_config("");
    let (config, state) =
        (home.path().join("config/jackfield"), home.path().join("state/jackfield"));
    fs::create_dir(&state).unwrap();
    let token = state.join("token");
    fs::write(&token, "a".repeat(64)).unwrap();
    set_mode(&state, 0o777);
    set_mode(&token, 0o644);
    set_mode(&config, 0o777);
    set_mode(&config.join("config.toml"), 0o666);
    [(state, 0o700), (token, 0o600), (config.clone(), 0o755), (config.join("config.toml"), 0o644)]
}

#[test]
fn following_each_fix_makes_wrong_modes_right() {
    let home = TestHome::new();
    let files = plant_wrong_modes(&home);
    let outcome = run_own_checks(&home);
    assert_eq!(outcome.code, 1);
    run_fix(&outcome, &home, "chmod 700 [HOME]/state/jackfield");
    run_fix(&outcome, &home, "chmod 600 [HOME]/state/jackfield/token");
    run_fix(&outcome, &home, "chmod 755 [HOME]/config/jackfield");
    let outcome = run_own_checks(&home);
    assert_eq!(outcome.stderr.lines().next(), Some("error: 1 check failed"));
    run_fix(&outcome, &home, "chmod 644 [HOME]/config/jackfield/config.toml");
    assert_eq!(run_own_checks(&home).code, 0);
    for (file, mode) in files {
        assert_eq!(mode_of(&file), mode, "{}", file.display());
    }
}

#[test]
fn fix_flag_corrects_modes_and_nothing_else() {
    let home = TestHome::new();
    let files = plant_wrong_modes(&home);
    fs::write(home.path().join("run/jackfield"), "not a directory").unwrap();
    let outcome = home.run(&["doctor", "config", "state", "runtime", "token", "--fix"]);
    assert_eq!(outcome.code, 1, "the file in place of the directory stays");
    assert!(outcome.stdout.contains("fix: rm [HOME]/run/jackfield"), "{}", outcome.stdout);
    let note = "changed the mode of [HOME]/state/jackfield/token to 600";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    for (file, mode) in files {
        assert_eq!(mode_of(&file), mode, "{}", file.display());
    }
}

/// Runs `doctor` in a shell that sets limits first.
fn run_with_limits(home: &TestHome, limits: &str, check: &str) -> CommandOutcome {
    let script = format!("{limits} && exec \"$0\" doctor {check}");
    let program = home.command(&[]).get_program().to_owned();
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", &script])
        .arg(program)
        .env_clear()
        .envs(home.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    home.outcome(check, &command.output().unwrap())
}

#[test]
fn low_limit_of_open_files_is_found_and_a_higher_one_passes() {
    let home = TestHome::new();
    let low = run_with_limits(&home, "ulimit -n 100", "files");
    assert_eq!(low.code, 1, "{low:?}");
    let found = "problem files     the daemon may open only 100 files, which is too few\n";
    assert!(low.stdout.starts_with(found), "{}", low.stdout);
    assert!(low.stdout.contains("fix: raise `nofile` to 4096 in"), "{}", low.stdout);
    let soft = run_with_limits(&home, "ulimit -Sn 256 && ulimit -Hn 4096", "files");
    assert_eq!(soft.code, 0, "a warning is not a problem: {soft:?}");
    assert!(soft.stdout.contains("fix: ulimit -n 4096"), "{}", soft.stdout);
    let high =
        run_with_limits(&home, "ulimit -Sn 256 && ulimit -Hn 4096 && ulimit -n 4096", "files");
    assert!(high.stdout.starts_with("ok      files "), "{}", high.stdout);
}

#[test]
fn path_that_is_too_long_for_a_socket_is_found() {
    let home = TestHome::new();
    let long = home.path().join("x".repeat(120));
    let mut command = home.command(&["doctor", "socket"]);
    let outcome = home.outcome("", &command.env("JACKFIELD_RUNTIME_DIR", long).output().unwrap());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("fix: set JACKFIELD_RUNTIME_DIR to a shorter"), "{outcome:?}");
}

#[test]
fn file_of_the_future_shows_a_clock_that_was_set_back() {
    let home = TestHome::new();
    assert_eq!(home.run(&["daemon", "start"]).code, 0);
    assert_eq!(home.run(&["daemon", "stop"]).code, 0);
    let right = home.run(&["doctor", "clock"]);
    assert!(right.stdout.starts_with("ok      clock "), "{right:?}");
    let log = fs::File::options().append(true).open(home.path().join("state/jackfield/daemon.log"));
    let later = SystemTime::now() + std::time::Duration::from_hours(30);
    log.unwrap().set_modified(later).unwrap();
    let wrong = home.run(&["doctor", "clock"]);
    assert!(
        wrong.stdout.starts_with("warning clock     the newest event or file is 29h"),
        "{wrong:?}"
    );
    assert_eq!(wrong.code, 0);
}

#[test]
fn program_that_does_not_speak_acp_is_found_and_a_working_one_passes() {
    let home = TestHome::new();
    let file = "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\ninstall = \"npm install -g mine\"\n[[launch]]\n";
    home.write_agent_file("mine.toml", file);
    fs::remove_file(home.path().join("bin/goose")).unwrap();
    let version = "case $1 in --version) echo 'mine 1.2'; exit;; esac\n";
    home.write_program("mine-cli", &format!("{version}echo 'Welcome! Choose a theme:'\n"));
    let outcome = run_without_server(&home, &["agents"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    insta::assert_snapshot!("doctor_agent_without_acp", outcome.to_snapshot());
    home.write_program("mine-cli", &format!("{version}{AGENT}"));
    let outcome = run_without_server(&home, &["agents"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.stdout.contains("ok      agents    mine: mine 1.2, ACP mode works\n"),
        "{outcome:?}"
    );
}

#[test]
#[ignore = "nightly: waits for the time limit of an agent"]
fn program_that_never_answers_is_found() {
    let home = TestHome::new();
    let file = "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\n[[launch]]\n";
    home.write_agent_file("mine.toml", file);
    home.write_program(
        "mine-cli",
        "case $1 in --version) echo 1;; *) while read -r line; do :; done;; esac",
    );
    let outcome = run_without_server(&home, &["agents"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("it did not answer `initialize` within 15.0 s"), "{outcome:?}");
    assert!(outcome.stdout.contains("run it in a terminal"), "{outcome:?}");
}

#[test]
fn json_has_a_verdict_and_a_fix_for_each_finding() {
    let home = TestHome::new();
    fs::create_dir(home.path().join("state/jackfield")).unwrap();
    set_mode(&home.path().join("state/jackfield"), 0o755);
    let outcome = home.run(&["doctor", "state", "locale", "daemon", "--format", "json"]);
    assert_eq!(outcome.code, 1);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    insta::assert_snapshot!("doctor_json", serde_json::to_string_pretty(&document).unwrap());
}

#[test]
fn unknown_check_is_refused_with_the_list_of_checks() {
    let outcome = TestHome::new().run(&["doctor", "everything"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("config, state, runtime"), "{}", outcome.stderr);
}
