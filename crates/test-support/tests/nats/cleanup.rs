//! Clusters, disks and networks are removed, however their test ends.

use super::network::{remaining_names, wait_until};
use jackfield_test_support::{
    nats::{Cluster, Server},
    netns::Network,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// Set in the environment of a test that is started to be killed.
const VICTIM: &str = "JACKFIELD_TESTKIT_VICTIM";

/// The prefix of the line that such a test prints.
const WORD: &str = "alive: ";

/// The folder of the server with this pid, from its command line.
fn dir_of(pid: u32) -> PathBuf {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let config = words.split('\0').find(|it| it.contains("/server-")).expect("it has one");
    Path::new(config).parent().unwrap().to_owned()
}

fn pids_of(cluster: &Cluster) -> Vec<u32> {
    cluster.servers().iter().filter_map(Server::pid).collect()
}

/// Processes with this folder in their command line; the cleanup shell is one.
fn processes_naming(dir: &Path) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let names = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(dir.to_str().unwrap())
    };
    pids.filter(names).collect()
}

#[test]
fn dropped_cluster_is_removed() {
    let mut cluster = Cluster::start(3);
    cluster.kill_9(1);
    let pids = pids_of(&cluster);
    assert_eq!(pids.len(), 2);
    let dir = dir_of(pids[0]);
    assert!(dir.is_dir());
    assert_eq!(processes_naming(&dir).len(), 3, "two servers and the cleanup shell");
    drop(cluster);
    assert!(processes_naming(&dir).is_empty());
    assert!(!dir.exists());
}

#[test]
fn cluster_of_a_panicking_test_is_removed() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        let cluster = Cluster::start(1);
        sender.send(dir_of(pids_of(&cluster)[0])).unwrap();
        panic!("on purpose");
    });
    assert!(test.join().is_err());
    let dir = receiver.recv().unwrap();
    assert!(processes_naming(&dir).is_empty());
    assert!(!dir.exists());
}

#[test]
fn cluster_of_a_killed_test_is_removed() {
    let dir = killed("nats::cleanup::cluster_of_a_killed_test_is_removed", || {
        let cluster = Cluster::start(3);
        let dir = dir_of(pids_of(&cluster)[0]);
        assert_eq!(processes_naming(&dir).len(), 4, "three servers and the cleanup shell");
        Some((dir.display().to_string(), cluster))
    });
    let dir = PathBuf::from(dir.expect("this test does not need root"));
    wait_until("nothing", || !dir.exists() && processes_naming(&dir).is_empty());
}

#[test]
fn small_disk_of_a_killed_test_is_removed() {
    let dir = killed("nats::cleanup::small_disk_of_a_killed_test_is_removed", || {
        let cluster = Cluster::start_with_small_disk(1, 0, 1 << 24)?;
        Some((dir_of(pids_of(&cluster)[0]).display().to_string(), cluster))
    });
    let Some(dir) = dir else { return };
    let mounts = || fs::read_to_string("/proc/mounts").unwrap();
    wait_until("nothing", || !mounts().contains(&dir) && !fs::exists(&dir).unwrap());
}

#[test]
fn network_of_a_killed_test_is_removed() {
    let word = killed("nats::cleanup::network_of_a_killed_test_is_removed", || {
        let network = Network::new(3)?;
        let cluster = Cluster::start_in(&network, &[0, 1, 2]);
        Some((format!("jf{}-", std::process::id()), (cluster, network)))
    });
    let Some(word) = word else { return };
    wait_until("nothing", || remaining_names(&word).is_empty());
}

/// Runs the test with this name again in a process that only calls `live` and is killed when it prints its
/// text; returns that text, or `None` if the test is skipped.
fn killed<T>(test: &str, live: impl FnOnce() -> Option<(String, T)>) -> Option<String> {
    if env::var_os(VICTIM).is_some() {
        if let Some((word, _alive)) = live() {
            writeln!(io::stderr(), "{WORD}{word}").unwrap();
            let _eof = io::stdin().read(&mut [0]);
        }
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(VICTIM, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut victim = command.spawn().unwrap();
    let mut lines = BufReader::new(victim.stderr.take().unwrap()).lines().map_while(Result::ok);
    let word = lines.find_map(|it| it.strip_prefix(WORD).map(str::to_owned));
    let _ended_already = kill_process(Pid::from_child(&victim), Signal::KILL);
    let status = victim.wait().unwrap();
    assert!(word.is_some() || status.success(), "it failed before it could be killed: {status}");
    word
}
