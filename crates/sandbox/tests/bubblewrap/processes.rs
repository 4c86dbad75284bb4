//! Stdio, exit codes, signals, and the end of all processes.

use crate::fixture::{SandboxFixture, descendants, program, stdout};
use jackfield_sandbox::{plan::EnforcementLayer, subcommand::run_args};
use jackfield_test_support::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{net::UnixListener, process::ExitStatusExt as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const BOUND: Duration = Duration::from_secs(10);

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn wait_for_end(processes: &[u32]) {
    wait_for("the end of all processes", BOUND, || {
        let is_gone = |pid: &u32| !fs::exists(format!("/proc/{pid}")).unwrap();
        processes.iter().all(is_gone).then_some(())
    });
}

/// Starts a script with the proxy's network, and waits for its first line.
fn start_ready(fixture: &SandboxFixture, script: &str) -> (Child, impl std::io::BufRead + use<>) {
    let mut command = fixture.command(&fixture.plan(""), script);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, output)
}

#[test]
fn stdio_and_exit_codes_pass_through() {
    let fixture = SandboxFixture::new();
    let plan = fixture.plan("network = \"none\"");
    let mut command = fixture.command(&plan, "cat; echo error >&2; exit 7");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"text\0\xff").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"text\0\xff"[..], &b"error\n"[..])
    );
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(fixture.run("kill -9 $$").status.code(), Some(128 + 9));
    let mut missing = Command::new(program());
    missing.args(run_args(&plan)).arg("no-such-program").current_dir(fixture.path("project"));
    let output = missing.output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("failed to execute `no-such-program`")
    );
}

#[test]
fn program_has_no_terminal_and_no_other_processes() {
    let fixture = SandboxFixture::new();
    let script =
        "(: < /dev/tty) 2>/dev/null || echo none; kill -0 2>/dev/null $PPID && echo /proc/[0-9]*";
    let output = fixture.run(script);
    assert_eq!(stdout(&output), "none\n/proc/1 /proc/2");
}

#[test]
fn program_can_save_its_work_when_all_processes_get_term() {
    let fixture = SandboxFixture::new();
    let _socket = UnixListener::bind(fixture.facts.proxy_socket.as_ref().unwrap()).unwrap();
    let script = "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.02; done";
    let (mut child, mut output) = start_ready(&fixture, script);
    let all = [vec![child.id()], descendants(child.id())].concat();
    for &pid in &all {
        // A `sleep` may have ended.
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::TERM);
    }
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "saved\n");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    wait_for_end(&all);
}

#[test]
fn killed_sandbox_leaves_no_process_and_no_mount() {
    let fixture = SandboxFixture::new();
    let _socket = UnixListener::bind(fixture.facts.proxy_socket.as_ref().unwrap()).unwrap();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let script = "setsid sleep 1000 & (sleep 1000 & exec 1>&-; wait) & echo ready; wait";
    let (mut child, _output) = start_ready(&fixture, script);
    let processes = wait_for("the processes", BOUND, || {
        let found = descendants(child.id());
        // The first process, the forwarding process, two shells and twice `sleep`.
        (6 <= found.len()).then_some(found)
    });
    send(child.id(), Signal::KILL);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    wait_for_end(&processes);
    assert_eq!(mounts(), before);
}

#[test]
fn start_cost_is_printed() {
    const ROUNDS: usize = 15;
    let fixture = SandboxFixture::new();
    let plan = fixture.plan("network = \"none\"");
    // The median of the times from the start to the first byte of output.
    let measure = |command: &mut dyn FnMut() -> Command| {
        let mut times = [(); ROUNDS].map(|()| {
            let begin = Instant::now();
            let mut child = command().stdout(Stdio::piped()).spawn().unwrap();
            child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            let time = begin.elapsed();
            child.wait().unwrap();
            time
        });
        times.sort();
        times[ROUNDS / 2]
    };
    let bare = measure(&mut || {
        let mut command = Command::new("bash");
        command.args(["-c", "echo"]);
        command
    });
    let sandboxed = measure(&mut || fixture.command(&plan, "echo"));
    let cost = sandboxed.saturating_sub(bare);
    writeln!(std::io::stderr(), "start: bare {bare:?}, sandboxed {sandboxed:?}, cost {cost:?}")
        .unwrap();
}

#[test]
fn layer_is_detected_where_these_tests_run() {
    let support = jackfield_sandbox::os::layer_support();
    let chosen = jackfield_sandbox::os::choose_layer(support);
    assert_eq!(chosen, Some(EnforcementLayer::Bubblewrap), "{support:?}");
}
