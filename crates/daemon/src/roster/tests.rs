//! Names to commands, on a machine that is a folder.

use super::*;
use jackfield_hub::Environment;
use std::os::unix::fs::PermissionsExt as _;

struct Machine {
    dir: tempfile::TempDir,
    settings: Settings,
}

const FIVE: &str =
    "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\n[[launch]]\nargs = [\"acp\"]\n";

impl Machine {
    fn new(config: &str) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("config/agents")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        Machine { dir, settings: toml::from_str(config).unwrap() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.path("config/agents").join(name), text).unwrap();
    }

    fn program(&self, name: &str) -> String {
        let path = self.path("bin").join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        shown(&path)
    }

    fn roster(&self) -> Roster {
        Roster::new(self.settings.clone(), Paths::below(self.dir.path()), "/jackfield".into())
    }

    fn env(&self) -> Vec<(String, String)> {
        let path = shown(&self.path("bin"));
        let own = [("PATH", path.as_str()), ("JACKFIELD_PROGRAM_DIRS", "")];
        let keys = [("OPENAI_API_KEY", "k"), ("SECRET", "s")];
        let all = own.into_iter().chain(keys);
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn start(&self, name: &str) -> Result<Start, String> {
        let roster = self.roster();
        let launch = roster.launches()[name].clone();
        roster.start(&launch, self.env().into_iter())
    }
}

fn names(start: &Start) -> Vec<&str> {
    start.env.iter().map(|it| it.0.as_str()).collect()
}

#[test]
fn an_agent_of_five_lines_is_started_with_what_every_program_expects() {
    let machine = Machine::new("");
    machine.file("mine.toml", FIVE);
    let program = machine.program("mine-cli");
    let start = machine.start("mine").unwrap();
    assert_eq!(start.argv, [program.as_str(), "acp"]);
    assert_eq!(names(&start), ["PATH"]);
}

#[test]
fn a_native_program_comes_before_an_adapter_and_keys_go_where_they_belong() {
    let machine = Machine::new("");
    machine.program("codex");
    let start = machine.start("codex").unwrap();
    assert_eq!(start.argv, ["/jackfield", "adapt", "codex"]);
    assert!(names(&start).contains(&"OPENAI_API_KEY") && !names(&start).contains(&"SECRET"));
    assert!(names(&start).contains(&"JACKFIELD_CONFIG_DIR"), "the adapter reads the same files");
    let native = machine.program("codex-acp");
    let start = machine.start("codex").unwrap();
    assert_eq!(start.argv, [native]);
    assert!(!names(&start).iter().any(|it| it.starts_with("JACKFIELD_")));
}

#[test]
fn settings_adjust_an_agent_of_the_catalogue() {
    let machine =
        Machine::new("[agents.goose]\nenv = { GOOSE_MODE = \"auto\" }\npass_env = [\"SECRET\"]\n");
    let program = machine.program("goose");
    let start = machine.start("goose").unwrap();
    assert_eq!(start.argv[..2], [program.as_str(), "acp"]);
    assert!(start.env.contains(&("GOOSE_MODE".into(), "auto".into())));
    assert!(start.env.contains(&("SECRET".into(), "s".into())));
}

#[test]
fn a_configured_command_replaces_the_catalogue_s() {
    let machine = Machine::new("[agents.goose]\ncommand = [\"my-goose\", \"x\"]\n");
    let start = machine.start("goose").unwrap();
    assert_eq!((start.argv, start.env.len()), (vec!["my-goose".into(), "x".into()], 1));
}

#[test]
fn the_environment_of_the_client_is_searched_if_it_sent_one() {
    let machine = Machine::new("");
    machine.file("mine.toml", FIVE);
    let program = machine.program("mine-cli");
    let roster = machine.roster();
    let env = Some(std::sync::Arc::new(Environment(machine.env())));
    let launch = Launch { env, ..roster.launches()["mine"].clone() };
    let start = roster.start(&launch, std::iter::empty()).unwrap();
    assert_eq!((start.argv[0].as_str(), names(&start)), (program.as_str(), vec!["PATH"]));
}

#[test]
fn a_configured_command_sees_no_more_of_a_client_s_environment_than_of_ours() {
    let machine = Machine::new("[agents.goose]\ncommand = [\"g\"]\npass_env = [\"SECRET\"]\n");
    let roster = machine.roster();
    let env = Some(std::sync::Arc::new(Environment(machine.env())));
    let launch = Launch { env, ..roster.launches()["goose"].clone() };
    let start = roster.start(&launch, std::iter::empty()).unwrap();
    assert_eq!(names(&start), ["PATH", "SECRET"]);
    let theirs = Launch { argv: vec!["other".into()], ..launch };
    let start = roster.start(&theirs, std::iter::empty()).unwrap();
    assert!(names(&start).contains(&"OPENAI_API_KEY"), "a command of the client's sees all of it");
}

#[test]
fn what_cannot_be_started_says_why_and_what_to_do() {
    let machine = Machine::new("[agents.nobody]\npass_env = []\n");
    machine.file("mine.toml", FIVE);
    machine.file("bad.toml", "id = \"bad\"\nnmae = \"Bad\"\n");
    machine.file("goose.toml", "id = 7\n");
    let why = machine.start("mine").unwrap_err();
    assert!(why.contains("`mine-cli` was not found") && why.contains("/bin"), "{why}");
    let why = machine.start("codex").unwrap_err();
    assert!(why.contains("npm install -g @openai/codex"), "{why}");
    let why = machine.start("bad").unwrap_err();
    assert!(why.contains("bad.toml`: line 2: unknown field `nmae`"), "{why}");
    let why = machine.start("goose").unwrap_err();
    assert!(why.contains("goose.toml"), "a bad file does not give way to ours: {why}");
    let why = machine.start("nobody").unwrap_err();
    assert!(why.contains("[agents.nobody]") && why.contains("no `command`"), "{why}");
    let gone = Launch { name: "gone".into(), ..machine.roster().launches()["mine"].clone() };
    let why = machine.roster().start(&gone, machine.env().into_iter()).unwrap_err();
    assert!(why.contains("put its file back"), "{why}");
}

#[test]
fn the_settings_come_before_the_spec_that_says_how_many_sessions_a_process_serves() {
    let seats = |config: &str| {
        let machine = Machine::new(config);
        machine.file("mine.toml", &format!("sessions_per_process = 3\n{FIVE}"));
        machine.roster().pools()["mine"].sessions_per_process
    };
    assert_eq!(seats(""), 3);
    assert_eq!(seats("[agents.mine]\nwarm = 1\n"), 3);
    assert_eq!(seats("[agents.mine]\nsessions_per_process = 2\n"), 2);
}

#[test]
fn a_file_that_comes_changes_or_goes_is_seen() {
    let machine = Machine::new("");
    let mut roster = machine.roster();
    let before = roster.launches().len();
    assert!(roster.refresh().is_none());
    machine.file("mine.toml", FIVE);
    machine.file("readme.md", "no agent");
    assert_eq!(roster.refresh().unwrap().len(), before + 1);
    assert!(roster.refresh().is_none());
    machine.file("mine.toml", &FIVE.replace("\"mine\"", "\"other\""));
    assert!(roster.refresh().unwrap().contains_key("other"));
    fs::remove_file(machine.path("config/agents/mine.toml")).unwrap();
    assert_eq!(roster.refresh().unwrap().len(), before);
}

#[test]
fn a_command_that_a_session_began_with_sees_what_is_meant_for_its_agent() {
    let machine = Machine::new("");
    let roster = machine.roster();
    let argv = vec!["/old/codex-acp".to_owned()];
    let launch = Launch { argv: argv.clone(), ..roster.launches()["codex"].clone() };
    let start = roster.start(&launch, machine.env().into_iter()).unwrap();
    assert_eq!((start.argv.clone(), names(&start)), (argv, vec!["OPENAI_API_KEY", "PATH"]));
}
