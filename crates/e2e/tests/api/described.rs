//! The API against its own description: schemathesis calls every route in every way that the
//! description allows, and in some that it does not.

use super::again;
use jackfield_e2e::{Home, cli::installed, wait_for};
use std::{
    fs::{self, File},
    process::{Command, Stdio},
    time::Duration,
};

/// Ten examples take half a minute.
const BOUND: Duration = Duration::from_mins(5);

/// What schemathesis does differently from its defaults.
const SETTINGS: &str = r#"
# Positive data may still name a session that is not there.
[checks.positive_data_acceptance]
enabled = false

# It adds a header that is not described, which every server ignores. Other routes do not get that far.
[[operations]]
include-operation-id = "run_events"
checks.negative_data_rejection.enabled = false

# It reads an answer to its end, and the streams of these have none: only requests that are refused are sent.
[[operations]]
include-operation-id = ["session_events", "list_events"]
generation.mode = "negative"
phases.stateful.enabled = false
"#;

#[test]
fn the_api_is_what_its_description_says_and_never_fails() {
    call_described_routes(4);
}

#[test]
#[ignore = "nightly: more examples of each route; every route is called with every change"]
fn the_api_is_what_its_description_says_in_many_examples() {
    call_described_routes(30);
}

fn call_described_routes(examples: u32) {
    let home = Home::new();
    let config = home.path().join("config");
    fs::create_dir_all(&config).unwrap();
    let command = home.fake_agent(&[]).iter().map(|it| format!("{it:?}")).collect::<Vec<_>>();
    // The name that the examples of the description have.
    let text = format!("[agents.codex]\ncommand = [{}]\n", command.join(", "));
    fs::write(config.join("config.toml"), text).unwrap();
    let (daemon, web) = again(&home);
    let said = home.path().join("schemathesis");
    let settings = home.path().join("schemathesis.toml");
    fs::write(&settings, SETTINGS).unwrap();
    let mut child = Command::new(installed("bin/schemathesis"))
        .args(["--config-file", settings.to_str().unwrap()])
        .args(["run", &format!("http://{}/openapi.json", web.address)])
        .args(["--header", &format!("Authorization: Bearer {}", web.token)])
        .args([
            "--max-examples",
            &examples.to_string(),
            "--generation-deterministic",
            "--continue-on-failure",
        ])
        .args(["--suppress-health-check", "all", "--request-timeout", "10", "--no-color"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(File::create(&said).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = wait_for("schemathesis to end", BOUND, || child.try_wait().unwrap());
    let said = fs::read_to_string(said).unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("Stateful") && !said.contains("No test cases"), "{said}");
    daemon.stop();
}
