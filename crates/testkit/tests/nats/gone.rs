//! Nothing is left of a cluster, however its test ends.

use jackfield_testkit::nats::{Cluster, Server};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(20);

/// In the environment of a test that was started to be killed.
const VICTIM: &str = "JACKFIELD_TESTKIT_VICTIM";

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

/// This test is also its own victim: started again by itself, it waits to be killed.
#[test]
fn nothing_is_left_of_a_cluster_whose_test_is_killed() {
    if env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start(3);
        let dir = dir_of(pids_of(&cluster)[0]);
        writeln!(std::io::stderr(), "dir {}", dir.display()).unwrap();
        let _nobody_speaks = std::io::stdin().read(&mut [0]);
        return;
    }
    let name = "gone::nothing_is_left_of_a_cluster_whose_test_is_killed";
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(VICTIM, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut victim = command.spawn().unwrap();
    let lines = BufReader::new(victim.stderr.take().unwrap()).lines();
    let dir = lines.map_while(Result::ok).find_map(|it| it.strip_prefix("dir ").map(PathBuf::from));
    let dir = dir.expect("it has started");
    assert_eq!(who_names(&dir).len(), 4, "three servers and who sweeps");
    kill_process(Pid::from_child(&victim), Signal::KILL).unwrap();
    victim.wait().unwrap();
    let begin = Instant::now();
    while dir.exists() || !who_names(&dir).is_empty() {
        assert!(begin.elapsed() < BOUND, "left behind: {} {:?}", dir.display(), who_names(&dir));
        thread::sleep(Duration::from_millis(20));
    }
}
