//! The container image: built from the program under test, run as a user would, stopped without leftovers.

use jackfield_e2e::{
    app::{in_tree, said},
    home::{binary, finish},
    wait_for,
};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

/// Files are copied several times on a slow disk.
const BOUND: Duration = Duration::from_mins(4);
const IMAGE: &str = "localhost/jackfield-e2e:test";
const NAME: &str = "jackfield-e2e";

/// Images and containers in a folder of their own.
struct ContainerStore {
    dir: tempfile::TempDir,
}

impl ContainerStore {
    fn new() -> ContainerStore {
        let dir = tempfile::Builder::new().prefix("jf-").tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        // Directories are copied: no other driver works on every file system.
        let (root, run) = (at("storage"), at("run"));
        let storage =
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = {root:?}\nrunroot = {run:?}\n");
        fs::write(dir.path().join("storage.conf"), storage).unwrap();
        let (temporary, volumes) = (at("tmp"), at("volumes"));
        let engine = format!(
            "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
             tmp_dir = {temporary:?}\nvolume_path = {volumes:?}\n"
        );
        fs::write(dir.path().join("containers.conf"), engine).unwrap();
        ContainerStore { dir }
    }

    fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        let mut command = Command::new(program.as_ref());
        command.args(args).env("CONTAINERS_STORAGE_CONF", self.dir.path().join("storage.conf"));
        command.env("CONTAINERS_CONF", self.dir.path().join("containers.conf"));
        finish(command, BOUND)
    }

    /// The stdout of `podman` with these arguments, which must succeed.
    fn podman(&self, args: &[&str]) -> String {
        said(&self.run("podman", args))
    }

    /// Everything that the container has printed.
    fn logs(&self) -> String {
        let output = self.run("podman", &["logs", NAME]);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

impl Drop for ContainerStore {
    fn drop(&mut self) {
        let _gone = self.run("podman", &["rm", "--force", "--volumes", "--ignore", NAME]);
    }
}

/// `podman run`, with limits that need no privilege and the network of the test.
fn run_args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let args = ["run", "--network", "host", "--no-healthcheck", "--read-only", "--tmpfs", "/tmp"];
    let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"];
    args.iter().chain(&limits).chain(more).copied().collect()
}

/// The program without symbols, which are two thirds of it.
fn stripped_program(dir: &Path) -> PathBuf {
    let path = dir.join("jackfield");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&path).arg(binary("jackfield"));
    said(&finish(strip, BOUND));
    path
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
#[ignore = "nightly: builds an image"]
fn image_serves_as_its_own_user_and_stops_without_leftovers() {
    let store = ContainerStore::new();
    let program = stripped_program(store.dir.path());
    let script = in_tree("scripts/build-container.sh");
    said(&store.run(script, &[program.to_str().unwrap(), IMAGE]));
    let version = store.podman(&run_args(&["--rm", IMAGE, "--version"]));
    assert!(version.starts_with("jackfield "), "{version}");

    let serve = ["--detach", "--name", NAME, IMAGE, "serve", "--listen", "http://127.0.0.1:0"];
    store.podman(&run_args(&serve));
    let address = wait_for("the address in the log", Duration::from_secs(30), || {
        let logs = store.logs();
        let rest = logs.split("listening on http://").nth(1)?;
        rest.lines().next().map(str::to_owned)
    });
    assert!(get(&address, "/readyz").contains("{\"ready\":true}"));
    let inside = |args: &[&str]| store.podman(&[&["exec", NAME], args].concat());
    assert!(
        inside(&["jackfield", "daemon", "status"]).contains("pid       1\n"),
        "its health check"
    );
    assert_eq!(inside(&["id", "-u"]), "10001\n");
    assert!(inside(&["git", "--version"]).starts_with("git version"));
    assert!(inside(&["sh", "-c", "cat /etc/ssl/certs/*.crt"]).contains("BEGIN CERTIFICATE"));

    store.podman(&["stop", "--time", "30", NAME]);
    let state =
        store.podman(&["inspect", NAME, "--format", "{{.State.ExitCode}} {{.State.Status}}"]);
    assert_eq!(state, "0 exited\n", "{}", store.logs());
    store.podman(&["rm", "--volumes", NAME]);
    assert_eq!(store.podman(&["ps", "--all", "--quiet"]), "");
    assert_eq!(store.podman(&["volume", "ls", "--quiet"]), "");
}
