//! A daemon that runs and cannot be reached: its socket is gone, or it hangs.

mod force;
mod hang;
mod socket;

use jackfield_e2e::{Client, Home, client::PATIENCE, home::finish, procs::peer_pid, wait_for};
use rustix::process::Signal;
use std::{os::unix::net::UnixStream, process::Output, time::Duration};

/// A command waits 5 s for a socket, or 10 s for an answer, and may be slowed by other tests.
const BOUND: Duration = Duration::from_secs(25);

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The process that listens on the socket of a home.
fn listening_pid(home: &Home) -> Option<u32> {
    let stream = UnixStream::connect(home.socket()).ok()?;
    peer_pid(&stream)
}

/// A client with a session whose turn runs until something ends it.
fn hanging_turn(home: &Home) -> (Client, String) {
    let mut client = home.dial();
    client.connect(&home.fake_agent(&["--grandchild"]));
    let session = client.open(home.path());
    client.send_prompt(&session, "hang");
    wait_for("daemon, guard, agent and tool", PATIENCE, || {
        (4 <= home.alive(&[]).len()).then_some(())
    });
    (client, session)
}

/// Runs commands at the same time, and returns what each did.
fn run_all(home: &Home, commands: &[&[&str]]) -> Vec<Output> {
    std::thread::scope(|scope| {
        let run = |args: &[&str]| finish(home.command(args), BOUND);
        let running: Vec<_> = commands.iter().map(|args| scope.spawn(move || run(args))).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// Asserts that each command failed because the daemon cannot be reached, with its pid and a way out.
fn assert_locked_out(home: &Home, pid: u32, commands: &[&[&str]]) -> Vec<String> {
    let outputs = run_all(home, commands);
    let check = |(args, output): (&&[&str], &Output)| {
        let said = said(output);
        assert_eq!(output.status.code(), Some(6), "{args:?}: {said}");
        assert!(said.contains(&format!("(pid {pid})")), "{args:?}: {said}");
        assert!(said.contains("caused by: "), "{args:?}: {said}");
        assert!(said.contains("jackfield daemon stop --force"), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}: it printed a list");
        said
    };
    commands.iter().zip(&outputs).map(check).collect()
}

/// Ends the daemon by force, and asserts that nothing is left of it.
fn stop_by_force(home: &Home, mut daemon: jackfield_e2e::Daemon) -> String {
    let output = home.run(&["daemon", "stop", "--force"], BOUND);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    wait_for("the end of the daemon", PATIENCE, || daemon.ended());
    wait_for("the end of its agents", PATIENCE, || home.alive(&[]).is_empty().then_some(()));
    said
}

/// A stopped process gets no other signal but SIGKILL until it continues.
fn freeze(daemon: &jackfield_e2e::Daemon) {
    daemon.signal(Signal::STOP);
}
