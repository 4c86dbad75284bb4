//! `jackfield agents` and `models` with missing, installed and broken programs.

use crate::{daemon::AGENT, home::TestHome};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

/// A minimal agent file.
const MINIMAL: &str =
    "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\n[[launch]]\nargs = [\"acp\"]\n";

/// An agent file that uses all features.
const FULL: &str = r#"id = "full"
name = "Full"
bins = ["full-cli"]
bin_env = "FULL_BIN"
install = "npm install -g full-cli"
docs = "https://full.example"
note = "It is made up."

[auth]
args = ["login", "status"]
env = ["FULL_API_KEY"]
missing = ["not logged in"]

[env]
pass = ["FULL_*"]
remove = ["FULL_PID"]
[env.set]
FULL_TRUST = "true"

[[launch]]
bins = ["full-acp"]

[[launch]]
dialect = "plain"
args = ["exec", "--json"]
model = ["--model", "{model}"]
[[launch.modes]]
id = "ask"
name = "Ask"
asks = true
[[launch.modes]]
id = "all"
name = "Everything"
asks = false
args = ["--yes"]

[models]
from = "command"
args = ["models"]
format = "lines"
fallback = ["old-1", "old-2"]

[reasoning]
options = ["low", "high"]

[[quirk]]
what = "It never sleeps."
"#;

const ANSWERS: &str = "case \"$*\" in --version) echo 'full 1.2.3';; 'login status') \
    echo 'Logged in';; models) echo new-1; echo new-2;; esac";

fn list(home: &TestHome, args: &[&str]) -> Value {
    let outcome = home.run(&[&["agents", "--format", "json"], args].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn agent(list: &Value, id: &str) -> Value {
    let all = list["agents"].as_array().unwrap();
    all.iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("no {id}")).clone()
}

/// Keeps only the rows of these agents, because the catalog grows.
fn filter_rows(printed: &str, ids: &[&str]) -> String {
    let kept = printed.lines().filter(|line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        !line.contains("missing") || ids.contains(&first)
    });
    let squeezed = kept.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let counted = squeezed.map(|it| match it.split_once(" agents found;") {
        Some((count, rest)) => {
            format!("{} of [N] agents found;{rest}", count.split_once(' ').unwrap().0)
        }
        None if it.contains(" not installed (") => "[N] agents not installed (…)".to_owned(),
        None => it,
    });
    counted.collect::<Vec<_>>().join("\n")
}

#[test]
fn agents_that_are_not_installed_are_listed_last_and_only_with_all() {
    let home = TestHome::new();
    let short = home.run(&["agents"]);
    assert!(short.stdout.contains("goose") && !short.stdout.contains("missing"), "{short:?}");
    assert!(short.stderr.contains("`jackfield agents --all`"), "{short:?}");
    let all = home.run(&["agents", "--all"]).stdout;
    let states: Vec<_> = all.lines().skip(1).map(|it| it.split_whitespace().nth(1)).collect();
    assert!(states.is_sorted_by_key(|it| *it == Some("missing")), "{all}");
    assert!(states.contains(&Some("missing")), "{all}");
}

#[test]
fn missing_agents_have_a_diagnostic_with_a_fix() {
    let home = TestHome::new();
    fs::remove_file(home.path().join("bin/goose")).unwrap();
    let list = list(&home, &["--probe"]);
    let all = list["agents"].as_array().unwrap();
    assert!(30 < all.len());
    assert_eq!(agent(&list, "chat")["state"], "found");
    for it in all.iter().filter(|it| it["id"] != "chat") {
        assert_eq!(it["state"], "missing", "{it}");
        assert_eq!(it["diagnostics"][0]["reason"], "not-on-path");
        assert!(it["diagnostics"][0]["message"].as_str().unwrap().contains("/bin"), "{it}");
        assert!(!it["diagnostics"][0]["fix"].as_str().unwrap().is_empty());
    }
    assert_eq!(home.run(&["agents", "--format", "quiet"]).stdout, "chat\n");
}

#[test]
fn list_finds_all_installed_agents_and_starts_none() {
    let home = TestHome::new();
    for it in list(&home, &[])["agents"].as_array().unwrap() {
        let id = it["id"].as_str().unwrap();
        let shown = home.run(&["agents", "show", id, "--format", "json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        let bin = shown["agent"]["variants"][0]["bins"][0].as_str().unwrap();
        home.write_program(bin, "echo started > \"$HOME/started\"");
    }
    let list = list(&home, &[]);
    assert!(list["agents"].as_array().unwrap().iter().all(|it| it["state"] == "found"));
    assert!(!home.path().join("started").exists());
}

#[test]
fn list_contains_found_missing_broken_and_invalid_agents() {
    let home = TestHome::new();
    home.write_agent_file("full.toml", FULL);
    home.write_agent_file("mine.toml", MINIMAL);
    home.write_agent_file("bad.toml", "id = \"bad\"\nbins = [\"bad\"]\nnmae = \"Bad\"\n");
    home.write_program("full-cli", ANSWERS);
    home.write_config(
        "[agents.own]\ncommand = [\"goose\", \"acp\"]\n[agents.gone]\ncommand = [\"no\"]\n",
    );
    let ids = ["mine", "gone"];
    insta::assert_snapshot!("agents", filter_rows(&home.run(&["agents"]).to_snapshot(), &ids));
    let outcome = home.run(&["agents", "--probe"]);
    insta::assert_snapshot!("agents_probed", filter_rows(&outcome.to_snapshot(), &ids));
    assert_eq!(
        filter_rows(&home.run(&["agents"]).to_snapshot(), &ids).split_once('\n').unwrap().1,
        filter_rows(&outcome.to_snapshot(), &ids).split_once('\n').unwrap().1,
        "the results are stored"
    );
    let list = list(&home, &[]);
    assert_eq!(agent(&list, "full")["version"], "full 1.2.3");
    assert_eq!(agent(&list, "full")["starts"]["speaks"], "adapter");
    assert_eq!(agent(&list, "own")["starts"]["command"], serde_json::json!(["goose", "acp"]));
    assert_eq!(list["flaws"][0]["line"], 3);
    let quiet = home.run(&["agents", "--format", "quiet"]);
    assert_eq!(quiet.stdout, "chat\nfull\nown\n", "the probe found that goose does not speak ACP");
}

#[test]
fn show_prints_the_details_of_one_agent() {
    let home = TestHome::new();
    home.write_agent_file("full.toml", FULL);
    insta::assert_snapshot!(
        "agents_show_missing",
        home.run(&["agents", "show", "full"]).to_snapshot()
    );
    home.write_program("full-cli", ANSWERS);
    insta::assert_snapshot!("agents_show", home.run(&["agents", "show", "full"]).to_snapshot());
    let outcome = home.run(&["agents", "show", "full", "--probe"]);
    insta::assert_snapshot!("agents_show_probed", outcome.to_snapshot());
    let outcome = home.run(&["agents", "show", "full", "--format", "json"]);
    insta::assert_snapshot!("agents_show_json", outcome.to_snapshot());
    let quiet = home.run(&["agents", "show", "full", "--format", "quiet"]);
    assert_eq!(quiet.stdout, "[HOME]/bin/full-cli\n");
}

#[test]
fn models_are_listed_with_their_source() {
    let home = TestHome::new();
    home.write_agent_file("full.toml", FULL);
    home.write_program("full-cli", ANSWERS);
    insta::assert_snapshot!("models_unasked", home.run(&["models", "full"]).to_snapshot());
    insta::assert_snapshot!("models", home.run(&["models", "full", "--probe"]).to_snapshot());
    let outcome = home.run(&["models", "full", "--format", "json"]);
    insta::assert_snapshot!("models_json", outcome.to_snapshot());
    assert_eq!(
        home.run(&["models", "full", "--format", "quiet"]).stdout,
        "default\nnew-1\nnew-2\n"
    );
    home.write_program(
        "full-cli",
        "case $1 in --version) echo 1;; *) echo 'no network' >&2; exit 3;; esac",
    );
    insta::assert_snapshot!(
        "models_fallback",
        home.run(&["models", "full", "--probe"]).to_snapshot()
    );
}

#[test]
fn each_agent_problem_has_a_reason_and_a_fix() {
    let home = TestHome::new();
    home.write_agent_file("mine.toml", MINIMAL);
    home.write_agent_file("full.toml", FULL);
    let program = home.path().join("bin/mine-cli");
    let assert_problems = |name: &str| {
        let outcome = home.run(&["agents", "show", "mine", "--probe"]).to_snapshot();
        let (_, problems) = outcome.split_once("problems\n").unwrap_or_else(|| panic!("{outcome}"));
        insta::assert_snapshot!(name, problems);
    };
    home.write_program("mine-cli", "exit 0");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    assert_problems("agents_not_executable");
    fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_problems("agents_shim_broken");
    assert_eq!(agent(&list(&home, &[]), "mine")["state"], "broken");
    home.write_program("mine-cli", "echo 'what is --version?' >&2; exit 2");
    assert_problems("agents_version_failed");
    home.write_program(
        "full-cli",
        "[ \"$1\" = --version ] && echo 1 || { echo Not logged in; exit 1; }",
    );
    let outcome = home.run(&["agents", "show", "full", "--probe"]).to_snapshot();
    insta::assert_snapshot!("agents_auth_missing", outcome.split_once("problems\n").unwrap().1);
    let output = home.command(&["agents", "show", "full"]).env("FULL_BIN", "full-cli").output();
    let printed = String::from_utf8(output.unwrap().stdout).unwrap();
    insta::assert_snapshot!("agents_bin_invalid", printed.split_once("problems\n").unwrap().1);
}

#[test]
fn invalid_settings_file_is_reported() {
    let home = TestHome::new();
    home.write_program("qwen", "echo 1");
    fs::create_dir(home.path().join(".qwen")).unwrap();
    fs::write(home.path().join(".qwen/settings.json"), "{ no json").unwrap();
    let outcome = home.run(&["models", "qwen", "--format", "json"]);
    let printed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        (&printed["source"], &printed["diagnostics"][0]["reason"]),
        (&"fallback".into(), &"models-fallback".into())
    );
    let message = printed["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("[HOME]/.qwen/settings.json`: it is not valid JSON"), "{message}");
}

fn create_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

/// Six hanging programs would take 18 s one after the other, and 3.5 s in parallel. The limit leaves room for a slow
/// machine.
const PARALLEL_MAX: Duration = Duration::from_secs(12);

#[test]
fn hanging_programs_are_probed_in_parallel_and_known_results_are_reused() {
    let home = TestHome::new();
    let hang = "while :; do read -r line < \"$HOME/never\"; done";
    let never = home.path().join("never");
    create_fifo(&never);
    for name in ["codex", "claude", "gemini", "opencode", "qwen", "amp"] {
        home.write_program(name, hang);
    }
    home.write_agent_file("full.toml", FULL);
    home.write_program("full-cli", &format!("echo \"$*\" >> \"$HOME/asked\"; {ANSWERS}"));
    let asked = || fs::read_to_string(home.path().join("asked")).unwrap();
    let began = Instant::now();
    let printed = list(&home, &["--probe"]);
    let cold = began.elapsed();
    assert!(cold < PARALLEL_MAX, "{cold:?}");
    assert_eq!(agent(&printed, "full")["version"], "full 1.2.3");
    let hanging = agent(&printed, "codex");
    assert_eq!(
        (&hanging["state"], &hanging["diagnostics"][0]["reason"]),
        (&"found".into(), &"version-probe-failed".into())
    );
    let before = asked();
    assert_eq!(agent(&list(&home, &[]), "full")["version"], "full 1.2.3");
    assert_eq!((asked(), before.lines().count()), (before, 3));
}

#[test]
fn interrupted_probe_leaves_no_process_behind() {
    let home = TestHome::new();
    home.write_agent_file("mine.toml", MINIMAL);
    home.write_program(
        "mine-cli",
        "echo $$ > \"$HOME/pid\"; while :; do read -r line < \"$HOME/never\"; done",
    );
    let never = home.path().join("never");
    create_fifo(&never);
    let running = home.start(&["agents", "show", "mine", "--probe"], None);
    let pid = || fs::read_to_string(home.path().join("pid")).unwrap_or_default();
    crate::home::wait_for("the program", || pid().ends_with('\n'));
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish();
    insta::assert_snapshot!("agents_interrupted", outcome.to_snapshot());
    assert_eq!(outcome.code, 130);
    assert!(!Path::new("/proc").join(pid().trim()).exists());
}

#[test]
fn registry_import_does_not_overwrite_files() {
    let home = TestHome::new();
    let registry = r#"{"version":"1","agents":[
        {"id":"new-agent","name":"New","version":"1.0.0","distribution":{"npx":{"package":"new-agent","args":["--acp"]}}},
        {"id":"goose","name":"Goose","version":"1","distribution":{"npx":{"package":"goose"}}},
        {"id":"odd","name":"Odd","version":"1","distribution":{}}]}"#;
    fs::write(home.path().join("project/registry.json"), registry).unwrap();
    let import = || home.run(&["agents", "import", "registry.json"]);
    insta::assert_snapshot!("agents_import", import().to_snapshot());
    home.write_program("npx", "echo 1");
    assert_eq!(agent(&list(&home, &[]), "new-agent")["state"], "found");
    insta::assert_snapshot!("agents_import_again", import().to_snapshot());
    fs::write(home.path().join("project/registry.json"), "{ \"agents\": 7 }").unwrap();
    insta::assert_snapshot!("agents_import_bad", import().to_snapshot());
    insta::assert_snapshot!(
        "agents_import_none",
        home.run(&["agents", "import", "no.json"]).to_snapshot()
    );
}

#[test]
fn unknown_agent_is_exit_code_4_and_invalid_file_2() {
    let home = TestHome::new();
    home.write_agent_file("bad.toml", "id = \"bad\"\nname = 7\n");
    home.write_config("[agents.own]\ncommand = [\"goose\"]\n");
    let cases = [("unknown", "nobody", 4), ("command", "own", 4), ("bad_file", "bad", 2)];
    for (name, agent, code) in cases {
        let outcome = home.run(&["agents", "show", agent]);
        insta::assert_snapshot!(format!("error_agent_{name}"), outcome.to_snapshot());
        assert_eq!(outcome.code, code);
    }
    insta::assert_snapshot!("error_models_unknown", home.run(&["models", "nobody"]).to_snapshot());
}

#[test]
fn agent_of_the_catalog_runs_by_name() {
    let home = TestHome::new();
    home.write_agent_file("mine.toml", MINIMAL);
    home.write_program("mine-cli", AGENT);
    let outcome = home.run(&["run", "-a", "mine", "--isolated", "hello"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
    home.write_config("default_agent = \"mine\"\n[agents.mine]\nenv = { A = \"1\" }\n");
    let outcome = home.run(&["run", "--isolated", "hello"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
}

/// A program that ends with a usage error unless it is started with these arguments.
fn program_for(arguments: &str, body: &str) -> String {
    format!(
        "case \"$*\" in\n  {arguments}*) ;;\n  *) echo \"error: unknown argument: $1\" >&2; exit 2 ;;\nesac\n{body}"
    )
}

#[test]
fn next_launch_variant_is_tried_and_the_reason_is_shown() {
    let home = TestHome::new();
    home.write_program("gemini", &program_for("--experimental-acp", AGENT));
    let run = |flags: &[&str]| home.run(&[&["run", "-a", "gemini"], flags, &["hello"]].concat());
    let outcome = run(&["--isolated"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
    let why = "launch variant `acp` of gemini is not used";
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("unknown argument: --acp"), "{}", outcome.stderr);
    let outcome = run(&["--isolated", "--variant", "acp"]);
    assert_eq!(outcome.code, 1, "a chosen variant is the only one: {}", outcome.stderr);
    let outcome = run(&["--isolated", "--variant", "experimental-acp"]);
    assert_eq!((outcome.code, outcome.stderr.contains(why)), (0, false), "{}", outcome.stderr);
    let outcome = run(&[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let session = outcome.stderr.split_once("session s-").unwrap().1.lines().next().unwrap();
    let log = home.run(&["log", &format!("s-{session}")]);
    assert!(log.stdout.contains(why), "{}\n{}", log.stdout, log.stderr);
}

#[test]
fn adapter_is_the_last_launch_variant() {
    let home = TestHome::new();
    let lines = r#"cat > /dev/null
echo '{"type":"init","session_id":"g1","model":"m"}'
echo '{"type":"message","role":"assistant","content":"I hear you.","delta":true}'
echo '{"type":"result","status":"success"}'"#;
    home.write_program("gemini", &program_for("--output-format", lines));
    let outcome = home.run(&["run", "-a", "gemini", "--isolated", "hello"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("`experimental-acp` of gemini is not used"),
        "{}",
        outcome.stderr
    );
    let exec = r#"cat > /dev/null
echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"I hear you."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'"#;
    home.write_program("codex", &program_for("exec", exec));
    let outcome = home.run(&["run", "-a", "codex", "--isolated", "hello"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
    let why = "launch variant `app-server` of codex is not used";
    assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("unknown argument: app-server"), "{}", outcome.stderr);
}

#[test]
fn alias_starts_its_agent_and_a_misspelled_name_gets_a_suggestion() {
    let home = TestHome::new();
    home.write_agent_file("mine.toml", &format!("aliases = [\"my-agent\"]\n{MINIMAL}"));
    home.write_program("mine-cli", AGENT);
    let outcome = home.run(&["run", "-a", "my-agent", "--isolated", "hello"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you.\n"), "{}", outcome.stderr);
    home.write_config("default_agent = \"my-agent\"\n[agents.my-agent]\nenv = { A = \"1\" }\n");
    let outcome = home.run(&["run", "--isolated", "hello"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for arguments in
        [&["run", "-a", "my-agnet", "--isolated", "x"][..], &["agents", "show", "my-agnet"]]
    {
        let outcome = home.run(arguments);
        assert_eq!(outcome.code, 4, "{}", outcome.stderr);
        let expected = "error: unknown agent `my-agnet`; did you mean `my-agent`?";
        assert!(outcome.stderr.starts_with(expected), "{}", outcome.stderr);
    }
}

#[test]
fn agent_that_cannot_start_by_name_reports_the_cause_and_a_fix() {
    let home = TestHome::new();
    home.write_agent_file("full.toml", FULL);
    home.write_agent_file("bad.toml", "id = \"bad\"\nname = 7\n");
    home.write_config("[agents.half]\npass_env = []\n");
    for name in ["full", "bad", "half"] {
        let outcome = home.run(&["run", "-a", name, "--isolated", "hello"]);
        insta::assert_snapshot!(format!("error_run_{name}"), outcome.to_snapshot());
        assert_eq!(outcome.code, 1);
    }
    let outcome = home.run(&["run", "-a", "nobody", "--isolated", "hello"]);
    assert_eq!(outcome.code, 4, "{}", outcome.stderr);
}

#[test]
fn own_agent_warns_once_about_an_unknown_method() {
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
                             "params": { "protocolVersion": 1 } });
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "foo/bar", "params": {} });
    let outcome = TestHome::new().run_with_input(&["agent"], &format!("{initialize}\n{unknown}\n"));
    assert!(outcome.stdout.contains("Method not found"), "{}", outcome.stdout);
    let warnings: Vec<&str> = outcome.stderr.lines().filter(|it| it.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains("method=foo/bar"), "{warnings:?}");
}
