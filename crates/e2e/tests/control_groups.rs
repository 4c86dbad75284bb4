//! Control groups that the system has delegated to the daemon: a process that has left its session, its parents and
//! its environment is ended with its agent all the same.

use jackfield_e2e::{Client, Daemon, Home, home::binary, procs, wait_for};
use rustix::fs::{XattrFlags, setxattr};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const SOON: Duration = Duration::from_secs(20);

/// A group as systemd makes one for a unit with `Delegate=yes`.
struct DelegatedGroup(PathBuf);

impl DelegatedGroup {
    /// `None` only where groups cannot be created; the test says so.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    fn create(name: &str) -> Option<DelegatedGroup> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mut fields = mounts.lines().map(|it| it.split(' ').collect::<Vec<_>>());
        let mount = fields.find(|it| it[2] == "cgroup2").map(|it| PathBuf::from(it[1]));
        let group = mount?.join(format!("jf-test-{name}-{}", std::process::id()));
        let created = fs::create_dir(&group)
            .and_then(|()| Ok(setxattr(&group, "user.delegate", b"1", XattrFlags::CREATE)?));
        if let Err(error) = created {
            eprintln!("left out: control groups cannot be created here: {error}");
            return None;
        }
        Some(DelegatedGroup(group))
    }

    /// A daemon in it.
    fn serve(&self, home: &Home) -> Daemon {
        let mut launcher = Command::new("sh");
        let enter = format!("echo 0 > {}/cgroup.procs; exec \"$@\"", self.0.display());
        launcher.args(["-c", &enter, "sh"]).arg(binary("jackfield"));
        home.serve_by(launcher, &[])
    }

    fn agents(&self) -> usize {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())).count()
    }
}

impl Drop for DelegatedGroup {
    fn drop(&mut self) {
        // Only what this test has started is in it.
        let _nobody = fs::write(self.0.join("cgroup.kill"), "1");
        wait_for("the end of the group", SOON, || {
            let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
            for entry in entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
                let _in_use = fs::remove_dir(entry.path());
            }
            fs::remove_dir(&self.0).ok()
        });
    }
}

/// An agent that starts a process with a session of its own and an empty environment, writes its pid to a file,
/// and then does something else.
fn agent(home: &Home, pid_file: &Path, then: &str) -> Vec<String> {
    let path = home.path().join("agent.sh");
    let script = format!(
        "env -i setsid sleep 4000 </dev/null >/dev/null 2>&1 &\n\
         echo $! > {0}.new; mv {0}.new {0}\n{then}\nsleep 4000\n",
        pid_file.display()
    );
    fs::write(&path, script).unwrap();
    ["sh", path.to_str().unwrap()].map(str::to_owned).to_vec()
}

fn escaped(pid_file: &Path) -> u32 {
    wait_for("the process", SOON, || fs::read_to_string(pid_file).ok()?.trim().parse().ok())
}

/// The agent is started for the first request, which it never answers.
fn start_agent(home: &Home, agent: &[String]) -> Client {
    let mut client = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": agent } });
    client.notify("_jackfield/connect", &agent);
    client.send("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    client
}

#[test]
fn process_that_left_its_tree_is_ended_when_the_agent_kills_its_guard() {
    let Some(group) = DelegatedGroup::create("guard") else { return };
    let home = Home::new();
    let pid_file = home.path().join("pid");
    let daemon = group.serve(&home);
    let _client = start_agent(&home, &agent(&home, &pid_file, "kill -9 $PPID"));
    let pid = escaped(&pid_file);
    wait_for("the end of the process", SOON, || (!procs::is_alive(pid)).then_some(()));
    wait_for("the end of its group", SOON, || (group.agents() == 0).then_some(()));
    daemon.stop();
}

#[test]
fn process_that_outlived_daemon_guard_and_watcher_is_ended_at_the_next_start() {
    let Some(group) = DelegatedGroup::create("start") else { return };
    let home = Home::new();
    let (pid_file, guard_file) = (home.path().join("pid"), home.path().join("guard"));
    let daemon = group.serve(&home);
    let _client = start_agent(
        &home,
        &agent(
            &home,
            &pid_file,
            &format!("echo $PPID > {0}.new; mv {0}.new {0}", guard_file.display()),
        ),
    );
    let pid = escaped(&pid_file);
    let guard = escaped(&guard_file);
    // It has its name only when it runs.
    let watcher = wait_for("the watcher", SOON, || procs::child_named(daemon.pid(), "jf-watcher"));
    procs::kill_9(watcher);
    // A guard that is stopped does not end the process when the daemon is killed, and a daemon that is dead does not when
    // the guard is.
    procs::stop(guard);
    daemon.kill_9();
    procs::kill_9(guard);
    assert!(procs::is_alive(pid), "no process was left to end it");
    let daemon = group.serve(&home);
    wait_for("the end of the process", SOON, || (!procs::is_alive(pid)).then_some(()));
    wait_for("the end of its group", SOON, || (group.agents() == 0).then_some(()));
    daemon.stop();
}
