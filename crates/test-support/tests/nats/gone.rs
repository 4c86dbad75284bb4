//! Nothing is left of clusters, disks and networks, however their test ends.

use super::network::{left_of, wait_until};
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

/// In the environment of a test that was started to be killed.
const VICTIM: &str = "JACKFIELD_TESTKIT_VICTIM";

/// Before what such a test has to say.
const WORD: &str = "alive: ";

/// Where the files of the server with this pid are, as its command line tells.
fn dir_of(pid: u32) -> PathBuf {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let config = words.split('\0').find(|it| it.contains("/server-")).expect("it has one");
    Path::new(config).parent().unwrap().to_owned()
}

fn pids_of(cluster: &Cluster) -> Vec<u32> {
    cluster.servers().iter().filter_map(Server::pid).collect()
}

/// Processes that have the name of this folder in their command line; the sweeper is one.
fn who_names(dir: &Path) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let names = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(dir.to_str().unwrap())
    };
    pids.filter(names).collect()
}

#[test]
fn nothing_is_left_of_a_cluster_that_is_dropped() {
    let mut cluster = Cluster::start(3);
    cluster.kill_9(1);
    let pids = pids_of(&cluster);
    assert_eq!(pids.len(), 2);
    let dir = dir_of(pids[0]);
    assert!(dir.is_dir());
    assert_eq!(who_names(&dir).len(), 3, "two servers and who sweeps");
    drop(cluster);
    assert!(who_names(&dir).is_empty());
    assert!(!dir.exists());
}

#[test]
fn nothing_is_left_of_a_cluster_whose_test_panics() {
    let (say, heard) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        let cluster = Cluster::start(1);
        say.send(dir_of(pids_of(&cluster)[0])).unwrap();
        panic!("on purpose");
    });
    assert!(test.join().is_err());
    let dir = heard.recv().unwrap();
    assert!(who_names(&dir).is_empty());
    assert!(!dir.exists());
}

#[test]
fn nothing_is_left_of_a_cluster_whose_test_is_killed() {
    let dir = killed("nats::gone::nothing_is_left_of_a_cluster_whose_test_is_killed", || {
        let cluster = Cluster::start(3);
        let dir = dir_of(pids_of(&cluster)[0]);
        assert_eq!(who_names(&dir).len(), 4, "three servers and who sweeps");
        Some((dir.display().to_string(), cluster))
    });
    let dir = PathBuf::from(dir.expect("nothing here is for root"));
    wait_until("nothing", || !dir.exists() && who_names(&dir).is_empty());
}

#[test]
fn nothing_is_left_of_a_small_disk_whose_test_is_killed() {
    let dir = killed("nats::gone::nothing_is_left_of_a_small_disk_whose_test_is_killed", || {
        let cluster = Cluster::start_with_small_disk(1, 0, 1 << 24)?;
        Some((dir_of(pids_of(&cluster)[0]).display().to_string(), cluster))
    });
    let Some(dir) = dir else { return };
    let mounts = || fs::read_to_string("/proc/mounts").unwrap();
    wait_until("nothing", || !mounts().contains(&dir) && !fs::exists(&dir).unwrap());
}

#[test]
fn nothing_is_left_of_a_network_whose_test_is_killed() {
    let word = killed("nats::gone::nothing_is_left_of_a_network_whose_test_is_killed", || {
        let network = Network::new(3)?;
        let cluster = Cluster::start_in(&network, &[0, 1, 2]);
        Some((format!("jf{}-", std::process::id()), (cluster, network)))
    });
    let Some(word) = word else { return };
    wait_until("nothing", || left_of(&word).is_empty());
}

/// Runs the test of this name again, by `live` alone, in a process that is killed when it says that it
/// lives; gives what it said. `None` if it is left out.
fn killed<T>(test: &str, live: impl FnOnce() -> Option<(String, T)>) -> Option<String> {
    if env::var_os(VICTIM).is_some() {
        if let Some((word, _alive)) = live() {
            writeln!(io::stderr(), "{WORD}{word}").unwrap();
            let _nobody_speaks = io::stdin().read(&mut [0]);
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
