//! Tests of agent resolution on a machine that is simulated by a folder.

use super::*;
use jackfield_hub::Environment;
use std::{fs, os::unix::fs::PermissionsExt as _};

struct MachineFixture {
    dir: tempfile::TempDir,
    settings: Settings,
}

const MINIMAL_SPEC: &str =
    "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\n[[launch]]\nargs = [\"acp\"]\n";

impl MachineFixture {
    fn new(config: &str) -> MachineFixture {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("config/agents")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        MachineFixture { dir, settings: toml::from_str(config).unwrap() }
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
        path_text(&path)
    }

    fn registry(&self) -> AgentRegistry {
        AgentRegistry::new(
            self.settings.clone(),
            Paths::below(self.dir.path()),
            "/jackfield".into(),
        )
    }

    fn env(&self) -> Vec<(String, String)> {
        let path = path_text(&self.path("bin"));
        let own = [("PATH", path.as_str()), ("JACKFIELD_PROGRAM_DIRS", "")];
        let keys = [("OPENAI_API_KEY", "k"), ("SECRET", "s")];
        let all = own.into_iter().chain(keys);
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn resolve(&self, name: &str) -> Result<ResolvedLaunch, String> {
        let registry = self.registry();
        let launch = registry.list_launches()[name].clone();
        registry.resolve_launch(&launch, ProcessLimits::None, self.env().into_iter())
    }
}

fn names(command: &ResolvedLaunch) -> Vec<&str> {
    command.env.iter().map(|it| it.0.as_str()).collect()
}

#[test]
fn minimal_agent_file_gets_the_default_environment() {
    let machine = MachineFixture::new("");
    machine.file("mine.toml", MINIMAL_SPEC);
    let program = machine.program("mine-cli");
    let command = machine.resolve("mine").unwrap();
    assert_eq!(command.argv, [program.as_str(), "acp"]);
    assert_eq!(names(&command), ["PATH"]);
}

#[test]
fn native_program_precedes_adapter_and_keys_go_to_their_agent() {
    let machine = MachineFixture::new("");
    machine.program("codex");
    let command = machine.resolve("codex").unwrap();
    assert_eq!(command.argv, ["/jackfield", "adapt", "codex", "--variant=app-server"]);
    assert!(names(&command).contains(&"OPENAI_API_KEY") && !names(&command).contains(&"SECRET"));
    assert!(names(&command).contains(&"JACKFIELD_CONFIG_DIR"), "the adapter reads the same files");
    let native = machine.program("codex-acp");
    let command = machine.resolve("codex").unwrap();
    assert_eq!(command.argv, [native]);
    assert!(!names(&command).iter().any(|it| it.starts_with("JACKFIELD_")));
    // Its own sandbox cannot be started inside another one, and only the adapter turns it off.
    let registry = machine.registry();
    let launch = registry.list_launches()["codex"].clone();
    let env = machine.env().into_iter();
    let command = registry.resolve_launch(&launch, ProcessLimits::Sandbox, env).unwrap();
    assert_eq!(command.argv, ["/jackfield", "adapt", "codex", "--variant=app-server"]);
}

#[test]
fn launch_variant_is_followed_by_the_next_one_unless_it_was_chosen() {
    let resolve = |config: &str, choice: VariantChoice| {
        let machine = MachineFixture::new(config);
        machine.program("gemini");
        let registry = machine.registry();
        let launch = Launch { variant: choice, ..registry.list_launches()["gemini"].clone() };
        let command =
            registry.resolve_launch(&launch, ProcessLimits::None, machine.env().into_iter())?;
        let ResolvedVariant { name, next } = command.variant.unwrap();
        Ok::<_, String>((name.to_string(), next.as_deref().map(str::to_owned)))
    };
    let pair = |name: &str, next: Option<&str>| Ok((name.to_owned(), next.map(str::to_owned)));
    assert_eq!(resolve("", VariantChoice::Any), pair("acp", Some("experimental-acp")));
    let from = VariantChoice::From("experimental-acp".into());
    assert_eq!(resolve("", from), pair("experimental-acp", Some("stream-json")));
    let last = VariantChoice::From("stream-json".into());
    assert_eq!(resolve("", last.clone()), pair("stream-json", None));
    let config = "[agents.gemini]\nvariant = \"experimental-acp\"\n";
    assert_eq!(resolve(config, VariantChoice::Any), pair("experimental-acp", None));
    assert_eq!(resolve(config, VariantChoice::Only("acp".into())), pair("acp", None));
    let preferred = VariantChoice::Preferred("gone".into());
    assert_eq!(resolve("", preferred), pair("acp", Some("experimental-acp")));
    let why = resolve("", VariantChoice::Only("gone".into())).unwrap_err();
    assert!(why.contains("choose one of `acp`, `experimental-acp`, `stream-json`"), "{why}");
}

#[test]
fn settings_adjust_an_agent_of_the_catalog() {
    let machine = MachineFixture::new(
        "[agents.goose]\nenv = { GOOSE_MODE = \"auto\" }\npass_env = [\"SECRET\"]\n",
    );
    let program = machine.program("goose");
    let command = machine.resolve("goose").unwrap();
    assert_eq!(command.argv[..2], [program.as_str(), "acp"]);
    assert!(command.env.contains(&("GOOSE_MODE".into(), "auto".into())));
    assert!(command.env.contains(&("SECRET".into(), "s".into())));
}

#[test]
fn configured_command_replaces_the_catalog_command() {
    let machine = MachineFixture::new("[agents.goose]\ncommand = [\"my-goose\", \"x\"]\n");
    let command = machine.resolve("goose").unwrap();
    assert_eq!((command.argv, command.env.len()), (vec!["my-goose".into(), "x".into()], 1));
}

#[test]
fn programs_are_searched_in_the_environment_of_the_client() {
    let machine = MachineFixture::new("");
    machine.file("mine.toml", MINIMAL_SPEC);
    let program = machine.program("mine-cli");
    let registry = machine.registry();
    let env = Some(Arc::new(Environment(machine.env())));
    let launch = Launch { env, ..registry.list_launches()["mine"].clone() };
    let command =
        registry.resolve_launch(&launch, ProcessLimits::None, std::iter::empty()).unwrap();
    assert_eq!((command.argv[0].as_str(), names(&command)), (program.as_str(), vec!["PATH"]));
}

#[test]
fn configured_command_gets_only_granted_client_variables() {
    let machine =
        MachineFixture::new("[agents.goose]\ncommand = [\"g\"]\npass_env = [\"SECRET\"]\n");
    let registry = machine.registry();
    let env = Some(Arc::new(Environment(machine.env())));
    let launch = Launch { env, ..registry.list_launches()["goose"].clone() };
    let command =
        registry.resolve_launch(&launch, ProcessLimits::None, std::iter::empty()).unwrap();
    assert_eq!(names(&command), ["PATH", "SECRET"]);
    let client_launch = Launch { argv: vec!["other".into()], ..launch };
    let command =
        registry.resolve_launch(&client_launch, ProcessLimits::None, std::iter::empty()).unwrap();
    assert!(
        names(&command).contains(&"OPENAI_API_KEY"),
        "a command of the client's sees all of it"
    );
}

#[test]
fn agent_that_cannot_start_has_reason_and_hint() {
    let machine = MachineFixture::new("[agents.nobody]\npass_env = []\n");
    machine.file("mine.toml", MINIMAL_SPEC);
    machine.file("bad.toml", "id = \"bad\"\nnmae = \"Bad\"\n");
    machine.file("goose.toml", "id = 7\n");
    let why = machine.resolve("mine").unwrap_err();
    assert!(why.contains("`mine-cli` was not found") && why.contains("/bin"), "{why}");
    let why = machine.resolve("codex").unwrap_err();
    assert!(why.contains("npm install -g @openai/codex"), "{why}");
    let why = machine.resolve("bad").unwrap_err();
    assert!(why.contains("bad.toml`: line 2: unknown field `nmae`"), "{why}");
    let why = machine.resolve("goose").unwrap_err();
    assert!(why.contains("goose.toml"), "a bad file does not give way to ours: {why}");
    let why = machine.resolve("nobody").unwrap_err();
    assert!(why.contains("[agents.nobody]") && why.contains("no `command`"), "{why}");
    let gone = Launch { name: "gone".into(), ..machine.registry().list_launches()["mine"].clone() };
    let why = machine
        .registry()
        .resolve_launch(&gone, ProcessLimits::None, machine.env().into_iter())
        .unwrap_err();
    assert!(why.contains("put its file back"), "{why}");
}

#[test]
fn settings_override_sessions_per_process_of_the_spec() {
    let sessions_per_process = |config: &str| {
        let machine = MachineFixture::new(config);
        machine.file("mine.toml", &format!("sessions_per_process = 3\n{MINIMAL_SPEC}"));
        machine.registry().pools()["mine"].sessions_per_process
    };
    assert_eq!(sessions_per_process(""), 3);
    assert_eq!(sessions_per_process("[agents.mine]\nwarm = 1\n"), 3);
    assert_eq!(sessions_per_process("[agents.mine]\nsessions_per_process = 2\n"), 2);
}

#[test]
fn added_changed_and_removed_files_are_detected() {
    let machine = MachineFixture::new("");
    let mut registry = machine.registry();
    let before = registry.list_launches().len();
    assert!(registry.refresh().is_none());
    machine.file("mine.toml", MINIMAL_SPEC);
    machine.file("readme.md", "no agent");
    assert_eq!(registry.refresh().unwrap().len(), before + 1);
    assert!(registry.refresh().is_none());
    machine.file("mine.toml", &MINIMAL_SPEC.replace("\"mine\"", "\"other\""));
    assert!(registry.refresh().unwrap().contains_key("other"));
    fs::remove_file(machine.path("config/agents/mine.toml")).unwrap();
    assert_eq!(registry.refresh().unwrap().len(), before);
}

#[test]
fn command_of_an_old_session_gets_the_environment_of_its_agent() {
    let machine = MachineFixture::new("");
    let registry = machine.registry();
    let argv = vec!["/old/codex-acp".to_owned()];
    let launch = Launch { argv: argv.clone(), ..registry.list_launches()["codex"].clone() };
    let command =
        registry.resolve_launch(&launch, ProcessLimits::None, machine.env().into_iter()).unwrap();
    assert_eq!((command.argv.clone(), names(&command)), (argv, vec!["OPENAI_API_KEY", "PATH"]));
}

#[test]
fn missing_required_variable_is_named_and_unset_variables_stay_unset() {
    let required = format!("{MINIMAL_SPEC}[env]\nrequire = [\"MINE_KEY\"]\npass = [\"MINE_*\"]\n");
    let machine = MachineFixture::new("");
    machine.file("mine.toml", &required);
    machine.program("mine-cli");
    let why = machine.resolve("mine").unwrap_err();
    assert!(why.contains("`mine` requires the variable `MINE_KEY`"), "{why}");
    assert!(why.contains("export MINE_KEY="), "{why}");
    let machine = MachineFixture::new("[agents.mine]\nenv = { MINE_KEY = \"k\" }\n");
    machine.file("mine.toml", &required);
    machine.program("mine-cli");
    assert_eq!(names(&machine.resolve("mine").unwrap()), ["MINE_KEY", "PATH"]);
}
