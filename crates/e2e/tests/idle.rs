//! A daemon with nothing alive ends itself; one that serves a session does not.

use jackfield_e2e::{Home, procs, wait_for};
use std::time::Duration;

#[test]
fn an_idle_daemon_ends_itself_and_a_busy_one_stays() {
    let home = Home::new();
    let daemon = home.serve(&["--idle-after", "1"]);
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let id = client.open(home.path());
    // Twice as long as it would wait if nothing were alive.
    client.prompt(&id, "slow 20 100");
    assert!(procs::is_alive(daemon.pid()), "it left in the middle of a turn");
    let closed = serde_json::json!({ "sessionId": id });
    client.result("session/close", &closed);
    drop(client);
    wait_for("the idle daemon to end", Duration::from_secs(20), || {
        (!procs::is_alive(daemon.pid())).then_some(())
    });
    assert!(!home.socket().exists(), "its socket is gone with it");
}
