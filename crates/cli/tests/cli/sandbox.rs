//! `jackfield sandbox check` with the real layers, and the table of SECURITY.md that it proves.

use crate::home::TestHome;
use serde_json::Value;
use std::{env, fmt::Write as _, fs, path::Path};

const START: &str = "<!-- generated: what the sandbox stops -->\n";
const END: &str = "<!-- end of the generated part -->\n";
const WRITE_COMMAND: &str = "JACKFIELD_SANDBOX_TABLE=write cargo nextest run -p jackfield sandbox";

/// What only root can do without a sandbox, and what some kernels and containers refuse to everyone.
const PRIVILEGED: [&str; 8] = [
    "create-device",
    "load-module",
    "packet-socket",
    "raw-socket",
    "trace-process",
    "type-into-terminal",
    "use-bpf",
    "write-kernel-setting",
];

fn check(home: &TestHome, args: &[&str]) -> (i32, Value) {
    let outcome = home.run(&[&["sandbox", "check", "--format", "json"], args].concat());
    let document = serde_json::from_str(&outcome.stdout);
    (outcome.code, document.unwrap_or_else(|_| panic!("{outcome:?}")))
}

fn probes(layer: &Value) -> &[Value] {
    layer["probes"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The layers of a profile, if all of them work on this machine.
fn check_layers(profile: &str) -> Option<Vec<Value>> {
    let (code, document) = check(&TestHome::new(), &[profile]);
    let layers = document["layers"].as_array().unwrap().clone();
    if layers.iter().any(|it| it["state"] == "unavailable") {
        return None;
    }
    for probe in layers.iter().flat_map(probes) {
        assert_ne!(probe["verdict"], "not-as-promised", "{profile}: {probe:#}");
        if !PRIVILEGED.contains(&text(&probe["name"])) {
            assert_eq!(probe["verdict"], "as-promised", "{profile}: {probe:#}");
        }
    }
    assert_eq!(code, 0, "{document:#}");
    Some(layers)
}

fn format_cell(probe: &Value) -> String {
    match (text(&probe["result"]), &probe["refusedBy"]) {
        ("refused", Value::String(part)) => format!("refused: {part}"),
        ("allowed", _) if probe["group"] != "work" => "**allowed**".to_owned(),
        (result, _) => result.to_owned(),
    }
}

fn format_table(layers: &[Value]) -> String {
    let mut table =
        "| an agent can | no sandbox | `workspace`, bubblewrap | `workspace`, Landlock | \
                     `read-only`, bubblewrap | `read-only`, Landlock |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (index, probe) in probes(&layers[0]).iter().enumerate() {
        let name = text(&probe["name"]);
        let free = if PRIVILEGED.contains(&name) { "depends on the machine" } else { "allowed" };
        let cells = layers.iter().map(|it| format_cell(&probes(it)[index])).collect::<Vec<_>>();
        writeln!(table, "| {} | {free} | {} |", text(&probe["attempt"]), cells.join(" | "))
            .unwrap();
    }
    table
}

#[test]
fn table_of_what_the_sandbox_stops_is_that_of_the_probes() {
    let (Some(workspace), Some(read_only)) = (check_layers("workspace"), check_layers("read-only"))
    else {
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../SECURITY.md");
    let stored = fs::read_to_string(&file).unwrap();
    let (before, rest) = stored.split_once(START).expect("the start of the generated part");
    let (_, after) = rest.split_once(END).expect("the end of the generated part");
    let table = format_table(&[workspace, read_only].concat());
    let current = format!("{before}{START}\n{table}{END}{after}");
    if env::var("JACKFIELD_SANDBOX_TABLE").is_ok_and(|it| it == "write") {
        fs::write(&file, &current).unwrap();
        return;
    }
    assert!(stored == current, "the table in SECURITY.md is outdated: run `{WRITE_COMMAND}`");
}

#[test]
fn check_of_a_profile_without_a_sandbox_shows_that_nothing_is_refused() {
    let (code, document) = check(&TestHome::new(), &["open"]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["layers"][0]["layer"], Value::Null);
    for probe in probes(&document["layers"][0]) {
        let is_allowed = probe["result"] == "allowed" && probe["refusedBy"].is_null();
        assert!(is_allowed || PRIVILEGED.contains(&text(&probe["name"])), "{probe:#}");
    }
}

#[test]
fn check_uses_the_profiles_of_the_user() {
    let home = TestHome::new();
    home.write_config("sandbox = \"mine\"\n");
    let policy =
        "[sandbox.mine]\nextends = \"workspace\"\nread = [\"~/.aws\"]\nnetwork = \"none\"\n";
    fs::write(home.path().join("config/jackfield/policy.toml"), policy).unwrap();
    let (code, document) = check(&home, &["--layer", "bubblewrap"]);
    assert_eq!((code, text(&document["profile"])), (0, "mine"), "{document:#}");
    let find = |name: &str| probes(&document["layers"][0]).iter().find(|it| it["name"] == name);
    let credentials = find("read-cloud-credentials").unwrap();
    assert_eq!(
        (&credentials["expected"], &credentials["result"]),
        (&"allowed".into(), &"allowed".into())
    );
    let link_local = find("connect-link-local").unwrap();
    assert_eq!(
        (&link_local["result"], &link_local["error"]),
        (&"refused".into(), &"no proxy".into())
    );
    let unknown = home.run(&["sandbox", "check", "other"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("profiles are mine, open, read-only, workspace"),
        "{unknown:?}"
    );
}

#[test]
fn doctor_tries_a_few_probes() {
    let outcome = TestHome::new().run(&["doctor", "sandbox"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stdout.contains(": 8 of 8 probes as promised"), "{outcome:?}");
}
