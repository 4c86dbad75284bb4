//! `jackfield agents` and `models`: on machines with none, some and broken programs.

use crate::{daemon::AGENT, home::Home};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

/// A whole agent in five lines.
const FIVE: &str =
    "id = \"mine\"\nname = \"Mine\"\nbins = [\"mine-cli\"]\n[[launch]]\nargs = [\"acp\"]\n";

/// An agent of which everything can be asked.
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

fn list(home: &Home, args: &[&str]) -> Value {
    let did = home.run(&[&["agents", "--format", "json"], args].concat());
    assert_eq!((did.code, did.stderr.as_str()), (0, ""));
    serde_json::from_str(&did.stdout).unwrap()
}

fn agent(list: &Value, id: &str) -> Value {
    let all = list["agents"].as_array().unwrap();
    all.iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("no {id}")).clone()
}

/// Only the rows of these agents: the catalogue grows.
fn rows(told: &str, ids: &[&str]) -> String {
    let kept = told.lines().filter(|line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        !line.contains("missing") || ids.contains(&first)
    });
    let squeezed = kept.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let counted = squeezed.map(|it| match it.split_once(" agents found;") {
        Some((count, rest)) => {
            format!("{} of [N] agents found;{rest}", count.split_once(' ').unwrap().0)
        }
        None => it,
    });
    counted.collect::<Vec<_>>().join("\n")
}

#[test]
fn on_a_machine_with_none_every_agent_but_our_own_is_missing_with_a_way_to_get_it() {
    let home = Home::new();
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
fn on_a_machine_with_all_every_agent_is_found_and_nothing_is_started_for_the_list() {
    let home = Home::new();
    for it in list(&home, &[])["agents"].as_array().unwrap() {
        let id = it["id"].as_str().unwrap();
        let shown = home.run(&["agents", "show", id, "--format", "json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        let bin = shown["agent"]["variants"][0]["bins"][0].as_str().unwrap();
        home.program(bin, "echo started > \"$HOME/started\"");
    }
    let list = list(&home, &[]);
    assert!(list["agents"].as_array().unwrap().iter().all(|it| it["state"] == "found"));
    assert!(!home.path().join("started").exists());
}

#[test]
fn found_missing_broken_and_wrong_stand_in_one_list() {
    let home = Home::new();
    home.agent("full.toml", FULL);
    home.agent("mine.toml", FIVE);
    home.agent("bad.toml", "id = \"bad\"\nbins = [\"bad\"]\nnmae = \"Bad\"\n");
    home.program("full-cli", ANSWERS);
    home.config(
        "[agents.own]\ncommand = [\"goose\", \"acp\"]\n[agents.gone]\ncommand = [\"no\"]\n",
    );
    let ids = ["mine", "gone"];
    insta::assert_snapshot!("agents", rows(&home.run(&["agents"]).told(), &ids));
    let did = home.run(&["agents", "--probe"]);
    insta::assert_snapshot!("agents_probed", rows(&did.told(), &ids));
    assert_eq!(
        rows(&home.run(&["agents"]).told(), &ids).split_once('\n').unwrap().1,
        rows(&did.told(), &ids).split_once('\n').unwrap().1,
        "it is remembered"
    );
    let list = list(&home, &[]);
    assert_eq!(agent(&list, "full")["version"], "full 1.2.3");
    assert_eq!(agent(&list, "full")["starts"]["speaks"], "adapter");
    assert_eq!(agent(&list, "own")["starts"]["command"], serde_json::json!(["goose", "acp"]));
    assert_eq!(list["flaws"][0]["line"], 3);
    let quiet = home.run(&["agents", "--format", "quiet"]);
    assert_eq!(quiet.stdout, "chat\nfull\ngoose\nown\n");
}

#[test]
fn one_agent_is_shown_with_everything_that_is_known() {
    let home = Home::new();
    home.agent("full.toml", FULL);
    insta::assert_snapshot!("agents_show_missing", home.run(&["agents", "show", "full"]).told());
    home.program("full-cli", ANSWERS);
    insta::assert_snapshot!("agents_show", home.run(&["agents", "show", "full"]).told());
    let did = home.run(&["agents", "show", "full", "--probe"]);
    insta::assert_snapshot!("agents_show_probed", did.told());
    let did = home.run(&["agents", "show", "full", "--format", "json"]);
    insta::assert_snapshot!("agents_show_json", did.told());
    let quiet = home.run(&["agents", "show", "full", "--format", "quiet"]);
    assert_eq!(quiet.stdout, "[HOME]/bin/full-cli\n");
}

#[test]
fn models_are_told_with_their_source() {
    let home = Home::new();
    home.agent("full.toml", FULL);
    home.program("full-cli", ANSWERS);
    insta::assert_snapshot!("models_unasked", home.run(&["models", "full"]).told());
    insta::assert_snapshot!("models", home.run(&["models", "full", "--probe"]).told());
    let did = home.run(&["models", "full", "--format", "json"]);
    insta::assert_snapshot!("models_json", did.told());
    assert_eq!(
        home.run(&["models", "full", "--format", "quiet"]).stdout,
        "default\nnew-1\nnew-2\n"
    );
    home.program(
        "full-cli",
        "case $1 in --version) echo 1;; *) echo 'no network' >&2; exit 3;; esac",
    );
    insta::assert_snapshot!("models_fallback", home.run(&["models", "full", "--probe"]).told());
}

#[test]
fn each_way_to_be_broken_has_its_reason_and_its_way_out() {
    let home = Home::new();
    home.agent("mine.toml", FIVE);
    home.agent("full.toml", FULL);
    let program = home.path().join("bin/mine-cli");
    let told = |name: &str| {
        let did = home.run(&["agents", "show", "mine", "--probe"]).told();
        let (_, problems) = did.split_once("problems\n").unwrap_or_else(|| panic!("{did}"));
        insta::assert_snapshot!(name, problems);
    };
    home.program("mine-cli", "exit 0");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    told("agents_not_executable");
    fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    told("agents_shim_broken");
    assert_eq!(agent(&list(&home, &[]), "mine")["state"], "broken");
    home.program("mine-cli", "echo 'what is --version?' >&2; exit 2");
    told("agents_version_failed");
    home.program("full-cli", "[ \"$1\" = --version ] && echo 1 || { echo Not logged in; exit 1; }");
    let did = home.run(&["agents", "show", "full", "--probe"]).told();
    insta::assert_snapshot!("agents_auth_missing", did.split_once("problems\n").unwrap().1);
    let output = home.command(&["agents", "show", "full"]).env("FULL_BIN", "full-cli").output();
    let told = String::from_utf8(output.unwrap().stdout).unwrap();
    insta::assert_snapshot!("agents_bin_invalid", told.split_once("problems\n").unwrap().1);
}

#[test]
fn a_garbage_settings_file_is_told() {
    let home = Home::new();
    home.program("qwen", "echo 1");
    fs::create_dir(home.path().join(".qwen")).unwrap();
    fs::write(home.path().join(".qwen/settings.json"), "{ no json").unwrap();
    let did = home.run(&["models", "qwen", "--format", "json"]);
    let told: Value = serde_json::from_str(&did.stdout).unwrap();
    assert_eq!(
        (&told["source"], &told["diagnostics"][0]["reason"]),
        (&"fallback".into(), &"models-fallback".into())
    );
    let message = told["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("[HOME]/.qwen/settings.json`: it is not valid JSON"), "{message}");
}

/// Six that never answer would take 18 s one after the other. Between that and the 3.5 s that all may
/// take together there is room for a machine that stands still for a while.
const TOGETHER: Duration = Duration::from_secs(12);

#[test]
fn all_that_hang_are_waited_for_together_and_what_is_known_is_not_asked_again() {
    let home = Home::new();
    let hang = "while :; do read -r line < \"$HOME/never\"; done";
    let never = home.path().join("never");
    rustix::fs::mknodat(rustix::fs::CWD, &never, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    for name in ["codex", "claude", "gemini", "opencode", "qwen", "amp"] {
        home.program(name, hang);
    }
    home.agent("full.toml", FULL);
    home.program("full-cli", &format!("echo \"$*\" >> \"$HOME/asked\"; {ANSWERS}"));
    let asked = || fs::read_to_string(home.path().join("asked")).unwrap();
    let began = Instant::now();
    let told = list(&home, &["--probe"]);
    let cold = began.elapsed();
    assert!(cold < TOGETHER, "{cold:?}");
    assert_eq!(agent(&told, "full")["version"], "full 1.2.3");
    let late = agent(&told, "codex");
    assert_eq!(
        (&late["state"], &late["diagnostics"][0]["reason"]),
        (&"found".into(), &"version-probe-failed".into())
    );
    let before = asked();
    assert_eq!(agent(&list(&home, &[]), "full")["version"], "full 1.2.3");
    assert_eq!((asked(), before.lines().count()), (before, 3));
}

#[test]
fn an_interrupted_probe_leaves_nothing_behind() {
    let home = Home::new();
    home.agent("mine.toml", FIVE);
    home.program(
        "mine-cli",
        "echo $$ > \"$HOME/pid\"; while :; do read -r line < \"$HOME/never\"; done",
    );
    let never = home.path().join("never");
    rustix::fs::mknodat(rustix::fs::CWD, &never, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let running = home.start(&["agents", "show", "mine", "--probe"], None);
    let pid = || fs::read_to_string(home.path().join("pid")).unwrap_or_default();
    crate::home::wait_for("the program", || pid().ends_with('\n'));
    running.signal(rustix::process::Signal::INT);
    let did = running.finish();
    insta::assert_snapshot!("agents_interrupted", did.told());
    assert_eq!(did.code, 130);
    assert!(!std::path::Path::new("/proc").join(pid().trim()).exists());
}

#[test]
fn a_registry_is_imported_and_nothing_is_overwritten() {
    let home = Home::new();
    let registry = r#"{"version":"1","agents":[
        {"id":"new-agent","name":"New","version":"1.0.0","distribution":{"npx":{"package":"new-agent","args":["--acp"]}}},
        {"id":"goose","name":"Goose","version":"1","distribution":{"npx":{"package":"goose"}}},
        {"id":"odd","name":"Odd","version":"1","distribution":{}}]}"#;
    fs::write(home.path().join("project/registry.json"), registry).unwrap();
    let import = || home.run(&["agents", "import", "registry.json"]);
    insta::assert_snapshot!("agents_import", import().told());
    home.program("npx", "echo 1");
    assert_eq!(agent(&list(&home, &[]), "new-agent")["state"], "found");
    insta::assert_snapshot!("agents_import_again", import().told());
    fs::write(home.path().join("project/registry.json"), "{ \"agents\": 7 }").unwrap();
    insta::assert_snapshot!("agents_import_bad", import().told());
    insta::assert_snapshot!(
        "agents_import_none",
        home.run(&["agents", "import", "no.json"]).told()
    );
}

#[test]
fn a_name_that_nobody_has_is_4_and_a_bad_file_2() {
    let home = Home::new();
    home.agent("bad.toml", "id = \"bad\"\nname = 7\n");
    home.config("[agents.own]\ncommand = [\"goose\"]\n");
    let cases = [("unknown", "nobody", 4), ("command", "own", 4), ("bad_file", "bad", 2)];
    for (name, agent, code) in cases {
        let did = home.run(&["agents", "show", agent]);
        insta::assert_snapshot!(format!("error_agent_{name}"), did.told());
        assert_eq!(did.code, code);
    }
    insta::assert_snapshot!("error_models_unknown", home.run(&["models", "nobody"]).told());
}

#[test]
fn every_agent_of_the_catalogue_can_be_run_by_name() {
    let home = Home::new();
    home.agent("mine.toml", FIVE);
    home.program("mine-cli", AGENT);
    let did = home.run(&["run", "-a", "mine", "--isolated", "hello"]);
    assert_eq!((did.code, did.stdout.as_str()), (0, "I hear you.\n"), "{}", did.stderr);
    home.config("default_agent = \"mine\"\n[agents.mine]\nenv = { A = \"1\" }\n");
    let did = home.run(&["run", "--isolated", "hello"]);
    assert_eq!((did.code, did.stdout.as_str()), (0, "I hear you.\n"), "{}", did.stderr);
}

#[test]
fn what_cannot_be_run_by_name_says_what_was_searched_and_how_to_get_it() {
    let home = Home::new();
    home.agent("full.toml", FULL);
    home.agent("bad.toml", "id = \"bad\"\nname = 7\n");
    home.config("[agents.half]\npass_env = []\n");
    for name in ["full", "bad", "half"] {
        let did = home.run(&["run", "-a", name, "--isolated", "hello"]);
        insta::assert_snapshot!(format!("error_run_{name}"), did.told());
        assert_eq!(did.code, 1);
    }
    let did = home.run(&["run", "-a", "nobody", "--isolated", "hello"]);
    assert_eq!(did.code, 4, "{}", did.stderr);
}
