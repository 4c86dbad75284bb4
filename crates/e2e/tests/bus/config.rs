//! The configuration: what is wrong with it is told with its line, and what it says holds.

use super::{Bus, one_pool, pool, write};
use jackfield_e2e::{Home, home::finish};
use serde_json::json;
use std::{fs, process::Command, time::Duration};

fn refused(home: &Home, args: &[&str]) -> String {
    let output = home.run(&[&["bus"], args].concat(), Duration::from_secs(20));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn what_is_wrong_is_told_with_the_file_the_line_and_a_way_out() {
    let home = Home::new();
    let path = write(
        &home,
        "bad.json",
        "{\n  \"pools\": [\n    {\"id\": \"a\",\n     \"command\": \"cat\",\n     \"instances\": 0}\n  ]\n}\n",
    );
    let said = refused(&home, &["--config", path.to_str().unwrap()]);
    assert!(said.contains(&format!("Failed to load configuration from {}", path.display())));
    assert!(said.contains("line 5: config: pool 'a' must have at least 1 instance"), "{said}");
    let said = refused(&home, &["--config", "none.json"]);
    assert!(said.contains("config: cannot open file none.json"), "{said}");
    let said = refused(&home, &[]);
    assert!(said.contains("--config"), "{said}");
    let both = ["--config", "a", "--config-fd", "3"];
    assert!(refused(&home, &both).contains("cannot be used with"));
    let said = refused(&home, &["--config-fd", "2000"]);
    assert!(said.contains("2000 is not in 0..=1024"), "{said}");
    let path = path.to_str().unwrap();
    let said = refused(&home, &["--config", path, "--stdio", "--tcp", "127.0.0.1:0"]);
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn what_is_not_known_is_told_with_its_line_and_does_no_harm() {
    let home = Home::new();
    let mut config = one_pool(&home, 1);
    config["colour"] = json!("red");
    let (bus, mut client) = Bus::on_stdio(&home, &config);
    client.result("echo", &json!({}));
    let told = "unknown `colour` in the configuration has no effect";
    assert!(bus.said().contains(told), "{}", bus.said());
    assert!(bus.said().contains("line "), "{}", bus.said());
    drop(client);
    assert_eq!(bus.end().code(), Some(0));
}

#[test]
fn a_configuration_may_come_by_a_descriptor() {
    let home = Home::new();
    write(&home, "by-fd.json", &one_pool(&home, 1).to_string());
    let ours = home.command(&[]);
    let mut shell = Command::new("sh");
    let script = "exec 9< by-fd.json; exec \"$0\" bus --config-fd 9";
    shell.args(["-c", script]).arg(ours.get_program()).current_dir(home.path()).env_clear();
    shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = finish(shell, Duration::from_secs(20));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("pools: 1, workers: 1"), "{said}");
}

/// The published kernel has neither: workers see its own environment and directory.
#[test]
fn workers_have_the_environment_of_the_bus_and_what_their_pool_adds() {
    let home = Home::new();
    fs::create_dir(home.path().join("below")).unwrap();
    let more = json!({ "env": { "E2E_WORD": "hello" }, "cwd": "below" });
    let pools = [pool(&home, "own", 1, &more), pool(&home, "plain", 1, &json!({}))];
    let bus = Bus::on_unix(&home, &json!({ "pools": pools }));
    let mut client = bus.dial();
    let mut ask = |pool: &str, name: &str| {
        let params = json!({ "name": name });
        let line = json!({ "id": "q", "method": "environment", "pool": pool, "params": params });
        client.send_line(&line.to_string());
        client.until("an answer", |it| it["id"] == "q")["result"].clone()
    };
    let own = ask("own", "E2E_WORD");
    assert_eq!(own["value"], "hello");
    assert!(own["cwd"].as_str().unwrap().ends_with("/below"), "{own}");
    assert_eq!(ask("own", "E2E_MARK")["value"], home.mark(), "what the bus has, they have");
    let plain = ask("plain", "E2E_WORD");
    assert!(plain["value"].is_null());
    assert!(plain["cwd"].as_str().unwrap().ends_with(home.mark()), "{plain}");
    bus.stop();
}
