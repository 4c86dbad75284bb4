//! docs/bus.md: its first bus runs as it stands there, and its tables name what the bus knows.

use super::write;
use jackfield_e2e::{Home, app::in_tree, home::binary, home::finish};
use serde_json::{Map, Value, json};
use std::{fs, process::Command, time::Duration};

fn page() -> String {
    fs::read_to_string(in_tree("docs/bus.md")).unwrap()
}

/// The first block of code in this language.
fn block(page: &str, language: &str) -> String {
    let (_, rest) = page.split_once(&format!("\n```{language}\n")).expect("there is one");
    rest.split_once("\n```").expect("a block ends").0.to_owned()
}

/// The words in code marks in the first cells of the table under this head.
fn names(page: &str, head: &str) -> Vec<String> {
    let (_, table) = page.split_once(head).expect("the table is there");
    let rows = table.lines().skip(2).take_while(|it| it.starts_with('|'));
    let cells = rows.map(|it| it.split('|').nth(1).unwrap());
    cells.flat_map(|it| it.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_first_bus_of_the_page_runs_as_it_stands_there() {
    let home = Home::new();
    let page = page();
    write(&home, "echo.py", &block(&page, "python"));
    write(&home, "bus.json", &block(&page, "json"));
    let console = block(&page, "console");
    let (line, wanted) = console.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
    let ours = home.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(home.path()).env_clear();
    shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let bin = binary("jackfield").parent().unwrap().display().to_string();
    shell.env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
    let output = finish(shell, Duration::from_secs(20));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), wanted, "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn every_key_and_flag_of_the_page_is_known() {
    let home = Home::new();
    let page = page();
    let mut pool = json!({ "id": "a", "command": "cat", "args": [], "instances": 1, "env": {},
        "cwd": ".", "restart": "always", "affinity": "session", "sessions": "move",
        "outer_session_id": "forward",
        "health": { "method": "ping", "interval_sec": 30, "timeout_sec": 10 } });
    let known: Vec<String> = pool.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names(&page, "| in a pool | default | |"), known);
    let limits = names(&page, "| in `limits` | default | |");
    assert_eq!(limits.len(), 9, "{limits:?}");
    let limits: Map<String, Value> = limits.into_iter().map(|it| (it, json!(5000))).collect();
    pool["args"] = json!([]);
    let launcher = json!({ "registry": "registry.json", "max_agents": 8, "idle_sec": 600 });
    let known: Vec<String> = launcher.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names(&page, "| in `launcher` | default | |"), known);
    write(&home, "registry.json", "[]");
    let config = json!({ "pools": [pool], "limits": limits, "launcher": launcher });
    let path = write(&home, "bus.json", &config.to_string());
    let path = path.to_str().unwrap();
    let output = home.run(&["bus", "--config", path], Duration::from_secs(20));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("no effect"), "{said}");
    let help = home.run(&["bus", "--help"], Duration::from_secs(20)).stdout;
    let help = String::from_utf8(help).unwrap();
    for flag in names(&page, "| flag | |") {
        let flag = flag.split(' ').next().unwrap();
        assert!(help.contains(flag), "{flag}");
    }
}
