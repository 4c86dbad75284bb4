//! The host of a session is offline and no other host may own the session: commands through a gateway report it and read
//! the log from the journal.

use super::{Member, agent};
use jackfield_e2e::wait_for;
use jackfield_test_support::nats::Cluster;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// Runs a command on this member; returns whether it succeeded, its stdout and its stderr.
fn output(member: &Member, args: &[&str]) -> (bool, String, String) {
    let done = member.home.run(args, SOON);
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn session_of_an_offline_host_is_read_from_the_journal_and_not_removed() {
    let cluster = Cluster::start(1);
    let mut one = Member::start_alone(&cluster, "one", &[]);
    let mut gateway = Member::start(&cluster, "gateway", "in");
    let memory = gateway.home.path().join("memory");
    let mut client = gateway.client(&agent(&gateway.home, &memory));
    let id = client.open(gateway.home.path());
    assert_eq!(client.prompt(&id, "remember 17"), "end_turn");
    drop(client);
    // It does not share the folder of the session.
    let mut two = Member::start_alone(&cluster, "two", &[]);
    one.stop();

    let commands = [
        &["log", &id][..],
        &["log", &id, "--view", "events"],
        &["sessions", "show", &id],
        &["sessions", "export", &id],
    ];
    for args in commands {
        let (ok, stdout, stderr) = output(&gateway, args);
        assert!(ok, "{args:?}: {stderr}");
        assert!(stderr.contains("its host `one` is away since 2"), "{args:?}: {stderr}");
        let told = if args.contains(&"show") { id.as_str() } else { "remember 17" };
        assert!(stdout.contains(told), "{args:?}: {stdout}");
    }
    let (ok, _, stderr) = output(&gateway, &["sessions", "rm", &id, "--yes"]);
    assert!(!ok);
    assert!(stderr.contains("its host `one` is away since 2"), "{stderr}");
    assert!(stderr.contains("--host-name") && !stderr.contains("does not answer"), "{stderr}");

    one.start_again(&cluster, "one");
    // The gateway's list of hosts may be outdated for a moment.
    wait_for("the host to have its session again", SOON, || {
        let (ok, stdout, stderr) = output(&gateway, &["log", &id]);
        assert!(ok && stdout.contains("remember 17"), "{stderr}");
        (!stderr.contains("away")).then_some(())
    });
    let (ok, _, stderr) = output(&gateway, &["sessions", "rm", &id, "--yes"]);
    assert!(ok, "{stderr}");
    gateway.stop();
    one.stop();
    two.stop();
}
