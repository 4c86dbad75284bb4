//! Folders for one attack, and the means to run it with and without the sandbox.

use jackfield_sandbox::plan::{
    EnforcementLayer, NetworkPlan, PathAccess, PathRule, ResourceLimits, SandboxPlan,
};
use jackfield_sandbox::subcommand::run_args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A writable workspace, a read-only folder and a hidden one.
pub(crate) struct AttackWorld {
    folder: TempDir,
    pub(crate) network: NetworkPlan,
}

impl AttackWorld {
    pub(crate) fn new(network: NetworkPlan) -> AttackWorld {
        let folder = tempfile::tempdir().unwrap();
        for name in ["workspace", "readonly", "hidden", "temporary"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("file"), "text").unwrap();
        }
        AttackWorld { folder, network }
    }

    /// A path below the folder of this world.
    pub(crate) fn path(&self, below: &str) -> String {
        self.folder.path().join(below).to_str().unwrap().into()
    }

    pub(crate) fn plan(&self) -> SandboxPlan {
        let rule = |name: &str, access| PathRule { path: self.folder.path().join(name), access };
        SandboxPlan {
            profile: "test".into(),
            layer: EnforcementLayer::Landlock,
            paths: vec![
                PathRule { path: "/".into(), access: PathAccess::ReadOnly },
                rule("workspace", PathAccess::Writable),
                rule("hidden", PathAccess::Hidden),
                rule("temporary", PathAccess::Temporary),
            ],
            links: Vec::new(),
            env: vec!["*".into()],
            network: self.network.clone(),
            proxies_loopback: false,
            limits: ResourceLimits::default(),
            unprotected: Vec::new(),
        }
    }

    /// A command that attacks without the sandbox.
    pub(crate) fn free_attack(&self, args: &[String]) -> Command {
        let mut command = Command::new(example("attacker"));
        command.args(args).current_dir(self.path("workspace"));
        command
    }

    /// A command that attacks from inside.
    pub(crate) fn attack(&self, args: &[String]) -> Command {
        self.sandboxed(&self.plan(), &example("attacker"), args)
    }

    pub(crate) fn sandboxed(&self, plan: &SandboxPlan, program: &Path, args: &[String]) -> Command {
        let mut command = Command::new(example("sandbox_program"));
        command.args(run_args(plan)).arg(program).args(args);
        command.current_dir(self.path("workspace")).env("TMPDIR", self.path("temporary"));
        command
    }
}

/// Asserts that an attack works without the sandbox and fails inside it. Each run has a world of its own.
pub(crate) fn assert_refused(network: &NetworkPlan, attack: impl Fn(&AttackWorld) -> Vec<String>) {
    let free = AttackWorld::new(network.clone());
    let args = attack(&free);
    let output = free.free_attack(&args).output().unwrap();
    assert!(output.status.success(), "without the sandbox: {args:?}: {}", text_of(&output));
    let world = AttackWorld::new(network.clone());
    let args = attack(&world);
    let output = world.attack(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "inside: {args:?}: {}", text_of(&output));
    assert!(!text_of(&output).contains("unknown attack"), "{args:?}");
    assert!(!text_of(&output).contains("failed to"), "{args:?}: {}", text_of(&output));
}

/// Asserts that something works inside the sandbox, and returns its output.
pub(crate) fn assert_works(world: &AttackWorld, args: &[String]) -> String {
    let output = world.attack(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

pub(crate) fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program that Cargo builds with the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "build the examples first: cargo build -p jackfield-sandbox --examples");
    path
}
