//! `jackfield run -a NAME`: the agents of the catalogue as people call them, found on the `PATH` or
//! by the variable that names the program.

use jackfield_e2e::{Cli, Home, wait_for};
use jackfield_test_support::fake_model::FakeModel;
use serde_json::Value;
use std::{
    fs,
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

/// The first prompt starts a daemon, looks for the program and asks it for its version.
const RUN_MAX: Duration = Duration::from_secs(40);

/// A user's machine with one agent.
struct Desk {
    model: FakeModel,
    cli: Cli,
    project: PathBuf,
    home: Home,
}

impl Desk {
    fn new(cli: &str) -> Desk {
        let (home, model) = (Home::new(), FakeModel::start());
        let project = home.path().join("project");
        fs::create_dir_all(&project).unwrap();
        let cli = Cli::new(cli, &home.path().join("own"), &model.url());
        // The key of a provider that the catalogue has not heard of.
        let config = "[agents.codex]\npass_env = [\"FAKE_API_KEY\"]\n";
        fs::create_dir_all(home.path().join("config")).unwrap();
        fs::write(home.path().join("config/config.toml"), config).unwrap();
        Desk { model, cli, project, home }
    }

    /// With every program that was installed on the `PATH`.
    fn with_path(mut self) -> Desk {
        let bin = self.cli.program.parent().unwrap().to_str().unwrap();
        let path = format!("{bin}:{}", self.cli.env["PATH"]);
        self.cli.env.insert("PATH".into(), path);
        self
    }

    /// With this program alone.
    fn with_variable(mut self, name: &str) -> Desk {
        self.cli.env.insert(name.into(), self.cli.program.to_str().unwrap().into());
        self
    }

    /// Runs `jackfield` to a good end: what it printed, and what it said about it.
    fn run(&self, args: &[&str]) -> (String, String) {
        let (status, out, err) = self.end_of(args);
        assert!(status.success(), "{args:?}: {status}\n{out}\n{err}");
        (out, err)
    }

    /// Runs `jackfield` to its end.
    fn end_of(&self, args: &[&str]) -> (ExitStatus, String, String) {
        let [out, err] = ["out", "err"].map(|it| self.home.path().join(it));
        let mut child = self
            .home
            .command(args)
            .envs(&self.cli.env)
            .current_dir(&self.project)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let status = wait_for(&format!("{args:?} to end"), RUN_MAX, || child.try_wait().unwrap());
        let read = |it: &Path| fs::read_to_string(it).unwrap();
        (status, read(&out), read(&err))
    }

    /// One prompt that uses a tool, then the end of everything.
    fn check(&self, agent: &str) {
        let (out, err) = self.run(&["run", "-a", agent, "--approve", "all", "TOUCH something"]);
        assert!(out.contains("The tool answered: "), "{out}\n{err}");
        assert!(self.project.join("touched-by-tool.txt").exists(), "the tool ran: {out}\n{err}");
        self.run(&["daemon", "stop"]);
        assert!(self.model.log().iter().all(|it| it["testKey"] != false), "only the dummy key");
        wait_for("all to be gone", Duration::from_secs(5), || {
            self.home.alive(&[]).is_empty().then_some(())
        });
    }
}

#[test]
#[ignore = "nightly: another agent by its name; claude, codex and goose are tested with every change"]
fn claude_is_run_through_its_acp_program() {
    let desk = Desk::new("claude-agent-acp").with_path();
    desk.check("claude");
}

#[test]
fn claude_is_run_by_itself() {
    let desk = Desk::new("claude").with_variable("CLAUDE_BIN");
    desk.check("claude");
}

#[test]
#[ignore = "nightly: another agent by its name; claude, codex and goose are tested with every change"]
fn codex_is_run_through_its_acp_program() {
    let desk = Desk::new("codex-acp").with_path();
    desk.check("codex");
}

#[test]
fn codex_is_run_by_itself() {
    let desk = Desk::new("codex").with_variable("CODEX_BIN");
    desk.check("codex");
}

#[test]
#[ignore = "nightly: another agent by its name; claude, codex and goose are tested with every change"]
fn gemini_is_run() {
    let desk = Desk::new("gemini").with_path();
    desk.check("gemini");
}

#[test]
fn goose_is_run() {
    let desk = Desk::new("goose").with_path();
    desk.check("goose");
}

/// As it is shipped it asks for nothing; the catalogue starts it in a mode that does.
#[test]
#[ignore = "nightly: opencode is installed for the nightly tier only"]
fn opencode_asks_although_its_settings_do_not_say_so() {
    let mut desk = Desk::new("opencode").with_path();
    let settings = desk.cli.env.get_mut("OPENCODE_CONFIG_CONTENT").unwrap();
    let mut config: Value = serde_json::from_str(settings).unwrap();
    assert!(config.as_object_mut().unwrap().remove("permission").is_some());
    *settings = config.to_string();
    let rules = "[[rule]]\ndo = \"deny\"\nname = \"no touching\"\nrun = \"touch\"\n";
    fs::write(desk.home.path().join("config/policy.toml"), rules).unwrap();
    let args = ["run", "-a", "opencode", "--approve", "all", "TOUCH something"];
    let (status, out, err) = desk.end_of(&args);
    assert!(!desk.project.join("touched-by-tool.txt").exists(), "{out}\n{err}");
    assert_eq!(status.code(), Some(5), "{out}\n{err}");
    desk.run(&["daemon", "stop"]);
}
