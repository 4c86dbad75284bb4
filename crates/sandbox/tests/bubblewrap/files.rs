//! Files: what can be read and written.

use crate::fixture::{SandboxFixture, stdout};
use std::{fs, process::Command};

/// Runs commands one by one and prints for each whether it succeeded.
fn try_all(commands: &[&str]) -> String {
    let tried =
        commands.iter().map(|it| format!("if ( {it} ) >&2; then echo yes; else echo no; fi"));
    tried.collect::<Vec<_>>().join("\n")
}

fn answers(text: &str) -> Vec<bool> {
    text.lines().map(|it| it == "yes").collect()
}

#[test]
fn only_the_project_and_folders_of_the_agent_are_writable() {
    let fixture = SandboxFixture::new();
    let outside = fixture.path("outside/file").display().to_string();
    let commands = [
        "echo new > src/main.rs",
        "echo new > created",
        "echo new > ~/.agent/state",
        "echo new > /tmp/created && cat /tmp/created",
        "mkdir ~/.cache/tool",
        &format!("echo new > {outside}"),
        &format!("mv {outside} moved"),
        "echo new > ~/created",
        "echo new > ~/.cargo/config.toml",
        "echo new > /etc/created",
        "mount -o remount,rw /",
        "echo h > /proc/sysrq-trigger",
    ];
    let output = fixture.run(&try_all(&commands));
    let expected = [[true; 5].as_slice(), &[false; 7]].concat();
    assert_eq!(answers(&stdout(&output)), expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fixture.read("project/src/main.rs").trim(), "new");
    assert_eq!(fixture.read("project/created").trim(), "new");
    assert_eq!(fixture.read("home/.agent/state").trim(), "new");
    assert_eq!(fixture.read("outside/file"), "old");
    assert!(!fs::exists("/tmp/created").unwrap());
    assert!(!fs::exists(fixture.path("home/.cache")).unwrap(), "no mount point is left behind");
}

#[test]
fn folders_of_the_system_with_secrets_are_hidden() {
    let fixture = SandboxFixture::new();
    let on_tmp = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let commands = [
        "cat ~/.cargo/config.toml",
        "cat ~/.rustup/settings",
        "cat /etc/shadow",
        &format!("ls {}", on_tmp.path().display()),
        "ls /run | grep .",
        // The file system outside of the sandbox.
        "ls /proc/1/root/run | grep .",
        "cat /proc/1/root/etc/shadow",
    ];
    let output = fixture.run(&try_all(&commands));
    let expected = [[true; 2].as_slice(), &[false; 5]].concat();
    assert_eq!(answers(&stdout(&output)), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn protected_files_cannot_be_replaced() {
    let fixture = SandboxFixture::new();
    let output = fixture.run(&try_all(&[
        "echo new > .git/HEAD",
        "mv .git/hooks .git/old",
        "rm -rf .git/hooks",
        "mv src/main.rs .git/config",
        "ln -sfn /tmp .git/hooks/x",
        "mv .vscode old",
        "chmod 777 .git/config",
    ]));
    let expected = [[true].as_slice(), &[false; 6]].concat();
    assert_eq!(answers(&stdout(&output)), expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fixture.read("project/.git/hooks/pre-commit"), "old");
    assert_eq!(fixture.read("project/.git/config"), "old");
    assert_eq!(fixture.read("project/.vscode/tasks.json"), "old");
}

#[test]
fn git_commits_and_branches_but_does_not_change_its_configuration() {
    let mut fixture = SandboxFixture::new();
    let repository = fixture.path("repository");
    let git = |args: &[&str]| {
        assert!(
            Command::new("git").args(args).current_dir(&repository).status().unwrap().success()
        );
    };
    fs::create_dir(&repository).unwrap();
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Ann"]);
    git(&["config", "user.email", "ann@example.com"]);
    let before = fixture.read("repository/.git/config");
    fixture.facts.session_directories.push(repository.clone());
    let commands = [
        "echo text > file && git add file && git commit --quiet -m one",
        "git checkout --quiet -b other && git gc --quiet",
        "git config core.fsmonitor /bin/true",
    ];
    let script = format!("cd {}\n{}", repository.display(), try_all(&commands));
    let output = fixture.run(&script);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(answers(&stdout(&output)), [true, true, false], "{stderr}");
    assert_eq!(fixture.read("repository/.git/config"), before);
    git(&["fsck"]);
}

#[test]
fn launch_leaves_no_file_in_the_project() {
    let fixture = SandboxFixture::new();
    let list = || {
        let names =
            fs::read_dir(fixture.path("project")).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let before = list();
    assert!(fixture.run("true").status.success());
    assert_eq!(list(), before);
}

#[test]
fn size_of_files_is_limited() {
    let fixture = SandboxFixture::new();
    let plan = fixture.plan("network = \"none\"\nlimits = { disk = \"64KiB\", cpu = 60 }");
    let script = "head -c 100000 /dev/zero > big; ulimit -t";
    let output = fixture.command(&plan, script).output().unwrap();
    assert_eq!(stdout(&output), "60");
    assert_eq!(fs::metadata(fixture.path("project/big")).unwrap().len(), 64 << 10);
}
