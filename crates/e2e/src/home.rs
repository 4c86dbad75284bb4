//! One Jackfield installation in a folder of its own, with nothing of the surrounding environment.

use crate::{
    Client,
    procs::{self, peer_pid},
    wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Configuration, state and runtime folders. At the end, every process that still carries the mark is killed and
/// reported, and the folders are removed.
pub struct Home {
    /// Removed at the end.
    _dir: tempfile::TempDir,
    /// It, or a directory below it.
    path: PathBuf,
    mark: String,
}

/// The file of the daemons' stderr, below the home.
const SAID: &str = "serve.stderr";

/// A guard whose agent has just exited is about to exit, too.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// A running daemon.
pub struct Daemon {
    child: Child,
}

impl Default for Home {
    fn default() -> Home {
        Home::new()
    }
}

impl Home {
    pub fn new() -> Home {
        Home::in_directory("")
    }

    /// An installation in a directory of this name, such as `mnt/c/Users/Some Name`, below a temporary one.
    pub fn in_directory(relative: &str) -> Home {
        let dir = tempfile::Builder::new().prefix("jf-").tempdir().expect("a temporary directory");
        let mark = dir.path().file_name().expect("it has a name").to_string_lossy().into_owned();
        // The name of the folder, which is in `HOME` and `TMPDIR`, so that agents inherit it, too.
        let path: PathBuf = dir.path().join(relative).components().collect();
        fs::create_dir_all(&path).expect("a temporary directory can be written");
        Home { mark, _dir: dir, path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Occurs in the environment or the arguments of every process that this home started.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    pub fn socket(&self) -> PathBuf {
        self.path().join("run/hub.sock")
    }

    /// The `jackfield` command in a cleared environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.dress(Command::new(binary("jackfield")));
        command.args(args);
        command
    }

    /// Gives a command the folders of this home and nothing else of the environment.
    fn dress(&self, mut command: Command) -> Command {
        command.current_dir(self.path()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.path());
        command.env("LANG", "C.UTF-8").env("TMPDIR", self.path()).env("E2E_MARK", &self.mark);
        command.env("JACKFIELD_CONFIG_DIR", self.path().join("config"));
        command.env("JACKFIELD_STATE_DIR", self.path().join("state"));
        command.env("JACKFIELD_RUNTIME_DIR", self.path().join("run"));
        command
    }

    /// Runs a command to its end, within `bound`.
    pub fn run(&self, args: &[&str], bound: Duration) -> Output {
        finish(self.command(args), bound)
    }

    /// The stderr of all daemons of this home, one after the other.
    pub fn said(&self) -> String {
        let bytes = fs::read(self.path().join(SAID)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Starts `jackfield serve` and waits until it answers.
    pub fn serve(&self, args: &[&str]) -> Daemon {
        self.serve_in(args, &[])
    }

    /// The same with additional environment variables.
    pub fn serve_in(&self, args: &[&str], env: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&["serve"]);
        command.args(args).envs(env.iter().copied());
        self.start(command)
    }

    /// The same through a launcher, which runs our binary in another place.
    pub fn serve_by(&self, launcher: Command, args: &[&str]) -> Daemon {
        let mut command = self.dress(launcher);
        // Launchers are administration tools.
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.arg("serve").args(args);
        self.start(command)
    }

    fn start(&self, command: Command) -> Daemon {
        let mut daemon = self.spawn(command);
        self.wait_until_it_answers(&mut daemon);
        daemon
    }

    /// Starts `jackfield serve` and does not wait for it.
    pub fn launch(&self, args: &[&str]) -> Daemon {
        let mut command = self.command(&["serve"]);
        command.args(args);
        self.spawn(command)
    }

    fn spawn(&self, mut command: Command) -> Daemon {
        let said = File::options().create(true).append(true).open(self.path().join(SAID));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.expect("the home takes a file"))
            .spawn()
            .expect("the binary starts");
        Daemon { child }
    }

    pub fn wait_until_it_answers(&self, daemon: &mut Daemon) {
        wait_for("the daemon's socket", Duration::from_secs(20), || {
            let ended = daemon.child.try_wait().expect("our own child");
            assert!(ended.is_none(), "the daemon ended at once: {ended:?}");
            // Processes that a killed daemon was starting may hold its socket for a moment.
            let stream = UnixStream::connect(self.socket()).ok()?;
            (peer_pid(&stream)? == daemon.child.id()).then_some(())
        });
        // Other addresses come up after the socket; the daemon answers when all of them are ready.
        self.dial().hello();
    }

    /// A client on the daemon's socket that has sent nothing yet.
    pub fn dial(&self) -> Client {
        let stream = UnixStream::connect(self.socket()).expect("the daemon listens");
        let reader = stream.try_clone().expect("a second handle");
        Client::new(Box::new(reader), Box::new(HangsUp(stream)))
    }

    /// The command line of the fake agent with its flags; its processes carry our mark.
    pub fn fake_agent(&self, flags: &[&str]) -> Vec<String> {
        let mut argv = vec![binary("fake-agent").to_string_lossy().into_owned()];
        argv.extend(["--marker".to_owned(), self.mark.clone()]);
        argv.extend(flags.iter().map(|it| (*it).to_owned()));
        argv
    }

    /// Prints the log after a failure.
    #[expect(clippy::print_stderr, reason = "a failed test prints what is known")]
    fn tell(&self) {
        let said = self.said();
        let lines: Vec<_> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(30)..];
        eprintln!("last words of the daemons of {}:\n{}", self.mark, last.join("\n"));
    }

    /// Running processes of this home, except for the given ones.
    pub fn alive(&self, except: &[u32]) -> Vec<u32> {
        let mut pids = procs::marked(&self.mark);
        pids.retain(|it| !except.contains(it));
        pids
    }
}

/// A stream that is closed when it is dropped, although the reading thread has its own handle.
struct HangsUp(UnixStream);

impl Write for HangsUp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for HangsUp {
    fn drop(&mut self) {
        // The daemon may have closed it already.
        let _gone = self.0.shutdown(Shutdown::Both);
    }
}

/// Runs a command to its end, within `bound`.
pub fn finish(mut command: Command, bound: Duration) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let out = collect(child.stdout.take().expect("piped"));
    let err = collect(child.stderr.take().expect("piped"));
    let words: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
    let what = format!("`{} {}` to end", command.get_program().display(), words.join(" "));
    let status = wait_for(&what, bound, || child.try_wait().expect("our own child"));
    let collected = |it: JoinHandle<Vec<u8>>| it.join().expect("the reader");
    Output { status, stdout: collected(out), stderr: collected(err) }
}

/// Reads a stream to its end on a thread, so that its writer never blocks.
fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _broken = from.read_to_end(&mut bytes);
        bytes
    })
}

impl Drop for Home {
    fn drop(&mut self) {
        let begin = Instant::now();
        let left =
            wait_for("the end of all processes, or for long enough", LEAVING_MAX * 4, || {
                let left = self.alive(&[]);
                (left.is_empty() || LEAVING_MAX < begin.elapsed()).then_some(left)
            });
        for pid in &left {
            procs::kill_9(*pid);
        }
        if std::thread::panicking() {
            self.tell();
        } else {
            assert!(left.is_empty(), "processes were left behind: {left:?}");
        }
    }
}

impl Daemon {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, unless the daemon has exited.
    pub fn signal(&self, signal: Signal) {
        let _gone = kill_process(Pid::from_child(&self.child), signal);
    }

    /// The exit status, if it has exited.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// Sends SIGKILL and reaps the process.
    pub fn kill_9(mut self) {
        procs::kill_9(self.pid());
        let _status = self.child.wait();
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn stop(mut self) {
        self.terminate();
    }

    fn terminate(&mut self) {
        self.signal(Signal::TERM);
        // A failed test may have left it stopped by SIGSTOP.
        self.signal(Signal::CONT);
        wait_for("the daemon's end", Duration::from_secs(20), || {
            self.child.try_wait().expect("our own child")
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|it| it.is_none()) {
            self.terminate();
        }
    }
}

/// A program of this workspace, built beside the running test; `examples/NAME` is an example.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let dir = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let path = dir.join(name);
    assert!(
        path.exists(),
        "build it first: cargo build --workspace --bins --examples ({name} is missing)"
    );
    path
}
