//! `jackfield run … | head -1`: when the reader of stdout is gone, the turn is canceled and the agent
//! ends, also while the agent prints nothing.

use jackfield_e2e::{Home, wait_for};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(30);

/// Starts a turn that prints one line and hangs, reads the line and closes the pipe.
fn run_and_close(home: &Home, args: &[&str]) -> Child {
    let agent = home.fake_agent(&[]);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let args = [&["run", "slow 1 1 then hang"], args, &["--"], &agent].concat();
    let mut command = home.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    if args.contains(&"--format") {
        let mut line = String::new();
        while !line.contains("slow 1") {
            line.clear();
            assert!(0 < stdout.read_line(&mut line).unwrap(), "the turn ended");
        }
    } else {
        assert!(!stdout.fill_buf().unwrap().is_empty());
    }
    child
}

#[test]
fn closed_stdout_cancels_the_turn_and_ends_the_agent() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    for args in [&[][..], &["--format", "json"], &["--isolated"]] {
        let mut child = run_and_close(&home, args);
        let status = wait_for("the end of the command", BOUND, || child.try_wait().unwrap());
        assert!(status.success(), "{args:?}: {status}");
        wait_for("the end of the agent", BOUND, || {
            home.alive(&[daemon.pid()]).is_empty().then_some(())
        });
    }
    let listed = home.run(&["sessions", "list", "--format", "json"], BOUND);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    for session in listed["sessions"].as_array().unwrap() {
        assert_eq!(session["state"], "closed", "{session}");
    }
    daemon.stop();
}
