//! A bus in a home of its own, and clients of it.

use jackfield_e2e::{Home, procs, wait_for};
use jackfield_test_support::line_client::LineClient;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Nothing is this long on its way: whoever waits longer has lost something.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bus {
    pub(crate) home: Home,
    child: Child,
}

impl Bus {
    /// Starts it with this file, in a directory of its own for its workers, and waits until it listens.
    pub(crate) fn start(home: Home, config: &Path, prepare: impl FnOnce(&mut Command)) -> Bus {
        let socket = socket(&home);
        let (config, path) = (config.to_str().unwrap(), socket.to_str().unwrap());
        let mut command = home.command(&["bus", "--config", config, "--unix", path]);
        prepare(&mut command);
        let said = File::create(home.path().join("bus.stderr")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let mut child = command.spawn().unwrap();
        wait_for("the socket of the bus", Duration::from_secs(20), || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the bus ended at once: {ended:?}: {}", said_by(&home));
            UnixStream::connect(&socket).ok()
        });
        Bus { home, child }
    }

    /// With these pools of `bench-worker`, each of which has the pool's name among its words.
    pub(crate) fn of_pools(pools: &[(&str, usize)], limits: &serde_json::Value) -> Bus {
        let home = Home::new();
        let worker = jackfield_e2e::home::binary("bench-worker");
        let pools = pools.iter().map(|(id, instances)| {
            serde_json::json!({ "id": id, "command": worker, "args": [id], "instances": instances })
        });
        let config = serde_json::json!({ "pools": pools.collect::<Vec<_>>(), "limits": limits });
        let file = home.path().join("bus.json");
        fs::write(&file, config.to_string()).unwrap();
        Bus::start(home, &file, |_| {})
    }

    pub(crate) fn dial(&self) -> LineClient {
        LineClient::unix(&socket(&self.home), PATIENCE).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Living workers of a pool of [`Bus::of_pools`].
    pub(crate) fn workers(&self, pool: &str) -> Vec<u32> {
        let mut pids = self.home.alive(&[self.pid()]);
        pids.retain(|pid| {
            let words = procs::words(*pid);
            words.len() == 2 && words[0].ends_with("bench-worker") && words[1] == pool
        });
        pids
    }

    /// SIGTERM: it ends well, and leaves neither its socket nor a process.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).unwrap(), Signal::TERM).unwrap();
        let end = wait_for("the end of the bus", Duration::from_secs(40), || {
            self.child.try_wait().unwrap()
        });
        assert!(end.success(), "the bus ended with {end}: {}", said_by(&self.home));
        assert!(!socket(&self.home).exists(), "the socket was left behind");
        assert_eq!(self.home.alive(&[]), [0; 0], "processes were left behind");
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // Only after a failure: a test that passes stops its bus.
        if self.child.try_wait().is_ok_and(|it| it.is_none()) {
            let _gone = self.child.kill();
            let _gone = self.child.wait();
        }
    }
}

fn socket(home: &Home) -> PathBuf {
    home.path().join("bus.sock")
}

fn said_by(home: &Home) -> String {
    fs::read_to_string(home.path().join("bus.stderr")).unwrap_or_default()
}
