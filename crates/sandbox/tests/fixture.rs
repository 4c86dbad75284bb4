//! A home directory, a project and a program to run in it.

use jackfield_sandbox::{
    plan::{EnforcementLayer, SandboxPlan},
    planning::{DiskLookup, LaunchFacts, make_plan},
    profile::ProfileSet,
    subcommand::run_args,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// Directories with known files. They are below the build directory, because `/tmp` is replaced.
pub(crate) struct SandboxFixture {
    top: TempDir,
    pub(crate) facts: LaunchFacts,
}

impl SandboxFixture {
    pub(crate) fn new() -> SandboxFixture {
        let top = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = |name: &str| top.path().canonicalize().unwrap().join(name);
        for (file, text) in [
            ("home/.ssh/id", "secret"),
            ("home/.cargo/config.toml", "visible"),
            ("home/.cargo/credentials.toml", "secret"),
            ("home/.agent/state", "old"),
            ("data/rustup/settings", "visible"),
            ("own/token", "secret"),
            ("outside/file", "old"),
            ("project/.git/HEAD", "old"),
            ("project/.git/config", "old"),
            ("project/.git/hooks/pre-commit", "old"),
            ("project/.vscode/tasks.json", "old"),
            ("project/src/main.rs", "old"),
        ] {
            fs::create_dir_all(path(file).parent().unwrap()).unwrap();
            fs::write(path(file), text).unwrap();
        }
        std::os::unix::fs::symlink(path("data/rustup"), path("home/.rustup")).unwrap();
        let facts = LaunchFacts {
            layer: EnforcementLayer::Bubblewrap,
            session_directories: vec![path("project")],
            home: path("home"),
            search_path: env::split_paths(&env::var_os("PATH").unwrap()).collect(),
            temporary_directory: "/tmp".into(),
            agent_folders: vec![path("home/.agent")],
            program_folders: Vec::new(),
            agent_env: Vec::new(),
            agent_hosts: Vec::new(),
            own_folders: vec![path("own")],
            proxy_socket: Some(path("own/proxy")),
        };
        SandboxFixture { top, facts }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    /// The plan of the profile `workspace` with additions to it.
    pub(crate) fn plan(&self, additions: &str) -> SandboxPlan {
        let set = ProfileSet::parse(&format!("[sandbox.workspace]\n{additions}\n")).unwrap();
        make_plan(set.find("workspace").unwrap(), &self.facts, &DiskLookup).unwrap()
    }

    /// A command that runs a shell script in the sandbox, in the project's directory.
    pub(crate) fn command(&self, plan: &SandboxPlan, script: &str) -> Command {
        let mut command = Command::new(program());
        command.args(run_args(plan)).args(["bash", "-c", script]);
        command.current_dir(self.path("project")).env("HOME", self.path("home"));
        command
    }

    /// Runs a script without network and returns its output.
    pub(crate) fn run(&self, script: &str) -> Output {
        self.command(&self.plan("network = \"none\""), script).output().unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// The example of this crate, which is built with its tests.
pub(crate) fn program() -> PathBuf {
    let test = env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples/sandbox_program");
    assert!(program.is_file(), "build {} first", program.display());
    program
}

pub(crate) fn stdout(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(!text.is_empty(), "no output; stderr: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The processes below a process.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|it| it.parse::<u32>().unwrap());
    children.flat_map(|it| [vec![it], descendants(it)].concat()).collect()
}
