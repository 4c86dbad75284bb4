//! `jackfield sandbox explain`: what the sandbox refused is in the log, and is explained with a way to permit it.

use jackfield_e2e::Home;
use serde_json::{Value, json};
use std::{fs, time::Duration};

const BOUND: Duration = Duration::from_mins(1);

/// The profile comes from the project's file, which is trusted.
#[test]
fn refusals_in_a_project_with_a_profile_are_logged_and_explained() {
    let home = Home::new();
    let (config, work) = (home.path().join("config"), home.path().join("project"));
    for folder in [&config, &work.join(".git/hooks")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(config.join("config.toml"), "sandbox_layer = \"bubblewrap\"\n").unwrap();
    let refuse = "[sandbox.workspace.network]\nrefuse = [\"unknown.invalid\"]\n";
    fs::write(config.join("policy.toml"), refuse).unwrap();
    fs::write(work.join(".jackfield.toml"), "sandbox = \"workspace\"\n").unwrap();
    let daemon = home.serve(&[]);
    assert!(home.run(&["trust", work.to_str().unwrap()], BOUND).status.success());

    let mut client = home.dial();
    let agent = json!({ "name": "fake", "argv": home.fake_agent(&[]) });
    client.notify("_jackfield/connect", &json!({ "agent": agent, "cwd": work }));
    client.hello();
    let session = client.open(&work);
    let script = work.join("fetch.py");
    let text = "import urllib.request, urllib.error\n\
        try: urllib.request.urlopen('http://unknown.invalid/', timeout=20)\n\
        except urllib.error.HTTPError as error: print(error.read().decode())\n";
    fs::write(&script, text).unwrap();
    let terminal = format!("terminal /usr/bin/python3 {}", script.display());
    assert_eq!(client.prompt(&session, &terminal), "end_turn");
    assert!(client.text().contains("the rule `unknown.invalid` refuses it"), "{}", client.text());
    let hook = work.join(".git/hooks/pre-commit");
    assert_eq!(client.prompt(&session, &format!("fs-write {} x", hook.display())), "end_turn");

    let secret = config.join("policy.toml");
    let args =
        ["sandbox", "explain", &session, secret.to_str().unwrap(), "pypi.org", "--format", "json"];
    let output = home.run(&args, BOUND);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["profile"], "workspace");
    assert_eq!(report["plan"]["layer"], "bubblewrap");
    let explained = report["explained"].as_array().unwrap();
    let why = |it: &Value| it["why"].as_str().unwrap_or_default().to_owned();
    assert!(why(&explained[0]).contains("belongs to Jackfield"), "{report}");
    assert!(why(&explained[1]).contains("you are asked"), "{report}");
    let refusals = report["refusals"].as_array().unwrap();
    let subjects: Vec<&str> = refusals.iter().filter_map(|it| it["subject"].as_str()).collect();
    assert_eq!(subjects.len(), 2, "{report}");
    assert_eq!(subjects[0], "connection to unknown.invalid:80");
    assert!(subjects[1].ends_with(".git/hooks/pre-commit"), "{report}");
    assert!(refusals[1]["wayOut"].as_str().unwrap().contains("write ="), "{report}");

    let text = home.run(&["sandbox", "explain", &session], BOUND);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("bubblewrap") && text.contains("Refused"), "{text}");
    daemon.stop();
}
