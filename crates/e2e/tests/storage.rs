//! Storage that fails: every way to look at the daemon shows it with the cause and the way out, what is durable can be
//! read, nothing is acknowledged that would be lost, and what waited is written when the cause is gone.

use jackfield_e2e::{Client, Home, http::Web};
use jackfield_test_support::small_disk::SmallDisk;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);
const DISK_BYTES: u64 = 4 * 1024 * 1024;

/// A state directory on a disk of its own.
struct StateDisk {
    disk: SmallDisk,
    path: PathBuf,
}

impl StateDisk {
    fn mount(home: &Home) -> Option<StateDisk> {
        let path = home.path().join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Some(StateDisk { disk: SmallDisk::mount(&path, DISK_BYTES)?, path })
    }

    fn make_read_only(&self) {
        let mut mount = Command::new("mount");
        let mount = mount.args(["-o", "remount,ro"]).arg(&self.path).status();
        assert!(mount.unwrap().success());
    }
}

impl Drop for StateDisk {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// A client that hears notices, with a session in which one turn has ended.
fn session(home: &Home) -> (Client, String) {
    let mut client = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": home.fake_agent(&[]) } });
    client.notify("_jackfield/connect", &agent);
    client.hello_aware();
    let session = client.open(home.path());
    client.prompt(&session, "say before");
    (client, session)
}

fn is_notice(ok: bool) -> impl Fn(&Value) -> bool {
    move |it| it["method"] == "_jackfield/storage" && it["params"]["ok"] == ok
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_full_disk_is_shown_everywhere_and_what_waits_is_written_later() {
    let home = Home::new();
    let Some(state) = StateDisk::mount(&home) else { return };
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    let web = Web::of(&home);
    let (mut client, session) = session(&home);
    state.disk.fill();

    let waiting = client.send_prompt(&session, "say after");
    let notice = client.until("the notice", is_notice(false));
    assert_eq!(notice["params"]["cause"], "disk_full");

    let ps = home.run(&["ps"], BOUND);
    assert!(stdout(&ps).contains("stalled"), "{ps:?}");
    assert!(stdout(&ps).contains("to be written: the disk is full"), "{ps:?}");
    assert!(
        stderr(&ps).contains("the disk is full") && stderr(&ps).contains("free space"),
        "{ps:?}"
    );
    let ready = web.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.json()["error"]["message"].as_str().unwrap().contains("the disk is full"));
    let doctor = home.run(&["doctor", "daemon", "journal"], BOUND);
    assert!(!doctor.status.success());
    assert!(stdout(&doctor).contains("fix: free space"), "{doctor:?}");
    let log = home.run(&["log", &session], BOUND);
    assert!(log.status.success() && stdout(&log).contains("before"), "{log:?}");
    let export = home.run(&["sessions", "export", &session], BOUND);
    assert!(export.status.success(), "{export:?}");
    assert!(stderr(&export).contains("not written yet"), "{export:?}");
    let refused = home.run(&["run", "-s", &session, "say no"], BOUND);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("the journal cannot be written"), "{refused:?}");

    state.disk.empty();
    let answer = client.answer(waiting);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(web.get("/readyz").status, 200);
    let log = home.run(&["log", &session], BOUND);
    assert!(stdout(&log).contains("after") && !stdout(&log).contains("say no"), "{log:?}");
    drop(client);
    daemon.stop();
}

#[test]
fn a_journal_that_is_moved_away_acknowledges_nothing_until_it_is_back() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (mut client, session) = session(&home);
    let journal = home.path().join("state/journal.db");
    let aside = home.path().join("aside.db");
    fs::rename(&journal, &aside).unwrap();

    let waiting = client.send_prompt(&session, "say after");
    let notice = client.until("the notice", is_notice(false));
    assert_eq!(notice["params"]["cause"], "file_changed");
    let error = notice["params"]["error"].as_str().unwrap();
    assert!(error.contains("journal.db` was removed while it was in use"), "{error}");
    let doctor = home.run(&["doctor", "daemon", "journal"], BOUND);
    assert!(stdout(&doctor).contains("fix: put the file back"), "{doctor:?}");

    fs::rename(&aside, &journal).unwrap();
    let answer = client.answer(waiting);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    drop(client);
    daemon.kill_9();
    let daemon = home.serve(&[]);
    let log = home.run(&["log", &session], BOUND);
    assert!(stdout(&log).contains("after"), "{log:?}");
    daemon.stop();
}

#[test]
fn a_daemon_whose_journal_was_removed_for_good_still_stops() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (mut client, session) = session(&home);
    fs::remove_file(home.path().join("state/journal.db")).unwrap();
    // Before anything is written: the daemon has another file open than the one that is there.
    let doctor = home.run(&["doctor", "daemon", "journal"], BOUND);
    assert!(stdout(&doctor).contains("was removed while the daemon"), "{doctor:?}");
    client.send_prompt(&session, "say lost");
    client.until("the notice", is_notice(false));
    drop(client);
    daemon.stop();
    assert!(home.said().contains("stopped without writing these events"), "{}", home.said());
}

#[test]
fn a_wal_that_is_gone_after_a_crash_is_said_by_the_next_daemon() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let (client, _session) = session(&home);
    drop(client);
    daemon.kill_9();
    fs::remove_file(home.path().join("state/journal.db-wal")).unwrap();
    let doctor = home.run(&["doctor", "daemon", "journal"], BOUND);
    assert!(stdout(&doctor).contains("the journal lacks"), "{doctor:?}");
    let daemon = home.serve(&[]);
    let ps = home.run(&["ps"], BOUND);
    assert!(stderr(&ps).contains("were acknowledged before this start"), "{ps:?}");
    assert!(home.said().contains("lacks its last records"), "{}", home.said());
    daemon.stop();
}

#[test]
fn doctor_names_a_read_only_disk_and_does_not_touch_the_journal() {
    let home = Home::new();
    let Some(state) = StateDisk::mount(&home) else { return };
    let daemon = home.serve(&[]);
    drop(session(&home));
    daemon.stop();
    state.make_read_only();
    let doctor = home.run(&["doctor", "daemon", "journal"], BOUND);
    let said = stdout(&doctor);
    assert!(said.contains("is read-only") && said.contains("remount,rw"), "{said}");
    assert!(!said.contains(".bad"), "{said}");
    let start = home.run(&["daemon", "start"], BOUND);
    assert!(!start.status.success());
    assert!(stderr(&start).contains("Read-only file system"), "{start:?}");
}
