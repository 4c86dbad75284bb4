//! Directories with spaces, quotes and other scripts, such as a home directory of Windows that WSL mounts: everything
//! is below one, including the daemon's own files and the program of the agent.

use jackfield_e2e::{Client, Home, Web, home::finish, wait_for};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(20);
const WINDOWS_HOME: &str = "mnt/c/Users/Zoë O'Neil";

/// The fake agent under a path with spaces.
fn agent_in(home: &Home) -> Vec<String> {
    let mut argv = home.fake_agent(&[]);
    let program = home.path().join("My Agents/fake agent");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    symlink(&argv[0], &program).unwrap();
    program.to_str().unwrap().clone_into(&mut argv[0]);
    argv
}

/// A repository with one commit.
fn project_in(home: &Home, dir: &Path) -> PathBuf {
    let project = dir.join("my project 一");
    fs::create_dir_all(&project).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x"]).args(args);
        git.current_dir(&project).env("HOME", home.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(finish(git, BOUND).status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    fs::write(project.join("größe 1.txt"), "one\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    project
}

/// `jackfield acp`, as an editor starts it.
fn editor(home: &Home, agent: &[String]) -> (Client, Child) {
    let mut command = home.command(&["acp", "--"]);
    command.args(agent).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shim = command.spawn().unwrap();
    let (stdin, stdout) = (shim.stdin.take().unwrap(), shim.stdout.take().unwrap());
    let mut client = Client::new(Box::new(stdout), Box::new(stdin));
    client.hello();
    (client, shim)
}

/// What the agent says in one turn.
fn say(client: &mut Client, session: &str, prompt: &str) -> String {
    let before = client.text().len();
    assert_eq!(client.prompt(session, prompt), "end_turn", "{prompt}");
    client.text()[before..].to_owned()
}

fn json_string(path: &Path) -> String {
    json!(path).to_string()
}

/// The text for the query of a URL.
fn escape(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|it| format!("%{it:02x}")).collect();
    bytes.concat()
}

#[test]
fn session_below_a_windows_home_runs_commands_files_git_and_rules() {
    let home = Home::in_directory(WINDOWS_HOME);
    fs::create_dir_all(home.path().join("config")).unwrap();
    let rules = "[[rule]]\ndo = \"deny\"\npath = \"Private Files/**\"\n";
    fs::write(home.path().join("config/policy.toml"), rules).unwrap();
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    let (agent, project) = (agent_in(&home), project_in(&home, home.path()));
    let shown = project.canonicalize().unwrap().display().to_string();

    let mut run = home.command(&["run", "--cwd", &shown, "cwd", "--"]);
    run.args(&agent);
    let output = finish(run, BOUND);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&shown), "{said}{}", String::from_utf8_lossy(&output.stderr));

    let (mut client, mut shim) = editor(&home, &agent);
    let session = client.open(&project);
    let file = json_string(&project.join("größe 1.txt"));
    assert_eq!(say(&mut client, &session, &format!("fs-read {file}")), "fs-read: one\n");
    assert_eq!(say(&mut client, &session, &format!("fs-write {file} two")), "fs-write: done");
    let new = json_string(&project.join("new dir/a \"b\".txt"));
    assert_eq!(say(&mut client, &session, &format!("fs-write {new} x")), "fs-write: done");
    let private = json_string(&project.join("private files/a"));
    let denied = say(&mut client, &session, &format!("fs-write {private} x"));
    assert!(denied.starts_with("fs-write: error -31017 "), "{denied}");
    let said = say(&mut client, &session, "terminal pwd");
    assert_eq!(said, format!("terminal: exit 0 signal null: {shown}\n"));
    let said = say(&mut client, &session, "terminal-line cat 'new dir/a \"b\".txt'");
    assert_eq!(said, "terminal: exit 0 signal null: x");

    let web = Web::of(&home);
    let changes = web.get(&format!("/api/sessions/{session}/changes")).good();
    let paths: Vec<_> = changes["git"]["files"].as_array().unwrap().iter().collect();
    assert_eq!(paths.len(), 2, "{changes}");
    let path = escape("größe 1.txt");
    let diff = web.get(&format!("/api/sessions/{session}/changes/diff?path={path}")).good();
    assert!(diff["diff"].as_str().unwrap().contains("-one\n+two"), "{diff}");

    drop(client);
    wait_for("the end of `jackfield acp`", BOUND, || shim.try_wait().unwrap());
    daemon.stop();

    // The next daemon finds everything again.
    let daemon = home.serve(&[]);
    let mut client = home.dial();
    client.hello();
    client.result("session/resume", &json!({ "sessionId": session, "cwd": project }));
    assert!(say(&mut client, &session, "cwd").ends_with(&format!("process {shown}")));
    let told = home.run(&["sessions", "show", &session], BOUND);
    let told = String::from_utf8_lossy(&told.stdout);
    let quoted = format!("'{}'", agent[0].replace('\'', r"'\''"));
    assert!(told.contains(&quoted) && told.contains(&shown), "{told}");
    let log = home.run(&["log", &session], BOUND);
    let log = String::from_utf8_lossy(&log.stdout);
    assert!(log.contains("run `cat 'new dir/a \"b\".txt'`"), "{log}");
    drop(client);
    daemon.stop();
}

/// An NTFS in a file, mounted through FUSE as a drive of Windows: names have no case, files have no mode.
struct WindowsDrive {
    path: PathBuf,
    server: Child,
}

impl WindowsDrive {
    /// `None`, and prints so, where it cannot be mounted.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported")]
    fn mount(home: &Home) -> Option<WindowsDrive> {
        let (image, path) = (home.path().join("drive.img"), home.path().join("mnt/c"));
        fs::create_dir_all(&path).unwrap();
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let mut format = Command::new("/usr/sbin/mkntfs");
        format.args(["-F", "-q"]).arg(&image).stdout(Stdio::null()).stderr(Stdio::null());
        let mut serve = Command::new("lowntfs-3g");
        serve.args(["-o", "no_detach,ignore_case,umask=0000"]).args([&image, &path]);
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let is_formatted = format.status().is_ok_and(|it| it.success());
        let Some(mut server) = is_formatted.then(|| serve.spawn().ok()).flatten() else {
            eprintln!("skipped: NTFS is not installed: run scripts/install-ntfs.sh");
            return None;
        };
        let inside = fs::metadata(home.path()).unwrap().dev();
        let is_mounted = wait_for("the drive", BOUND, || {
            let is_mounted = fs::metadata(&path).is_ok_and(|it| it.dev() != inside);
            (is_mounted || server.try_wait().unwrap().is_some()).then_some(is_mounted)
        });
        if !is_mounted {
            eprintln!("skipped: NTFS cannot be mounted here: that needs root and /dev/fuse");
            return None;
        }
        Some(WindowsDrive { path, server })
    }
}

impl Drop for WindowsDrive {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.arg(&self.path);
        // A process that a failed test left may still use it.
        if !finish(unmount, BOUND).status.success() {
            let _gone = self.server.kill();
        }
        let _status = self.server.wait();
    }
}

#[test]
#[ignore = "nightly: mounts a file system of Windows"]
fn session_on_a_windows_drive_works_and_denied_paths_have_no_case() {
    let home = Home::new();
    let Some(drive) = WindowsDrive::mount(&home) else { return };
    fs::create_dir_all(home.path().join("config")).unwrap();
    let rules = "[[rule]]\ndo = \"deny\"\npath = \"**/Größe/**\"\n";
    fs::write(home.path().join("config/policy.toml"), rules).unwrap();
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    let project = project_in(&home, &drive.path.join("Users/Zoë O'Neil"));
    let mut client = home.dial();
    client.connect(&home.fake_agent(&[]));
    let session = client.open(&project);
    let at = |name: &str| json_string(&project.join(name));
    for text in ["two", "three"] {
        let said = say(&mut client, &session, &format!("fs-write {} {text}", at("größe 1.txt")));
        assert_eq!(said, "fs-write: done");
    }
    let said = say(&mut client, &session, &format!("fs-read {}", at("GRÖSSE 1.txt")));
    assert!(said.contains("no file"), "{said}");
    let said = say(&mut client, &session, &format!("fs-read {}", at("GRÖßE 1.TXT")));
    assert_eq!(said, "fs-read: three");
    let denied = say(&mut client, &session, &format!("fs-write {} x", at("GRÖßE/A")));
    assert!(denied.starts_with("fs-write: error -31017 "), "{denied}");
    let said = say(&mut client, &session, "terminal-line echo x > Übung && cat üBUNG");
    assert_eq!(said, "terminal: exit 0 signal null: x\n");
    let changes = Web::of(&home).get(&format!("/api/sessions/{session}/changes")).good();
    let files = changes["git"]["files"].as_array().map(Vec::len);
    assert_eq!(files, Some(2), "{changes}");
    drop(client);
    daemon.stop();
    drop(drive);
}
