//! The example files of the published bus run as they are: one check for each file in `fixtures/bus`.

use super::bus::Bus;
use jackfield_e2e::{Home, home::binary};
use jackfield_test_support::{bench_worker::string, line_client::MessageTarget};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// Answers every request, for files that name an interpreter by its path.
const SCRIPT: &str = "require('readline').createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, sessionId } = JSON.parse(line)
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, sessionId, result: {} }))
  })
";

#[test]
fn every_example_of_the_published_bus_runs_unchanged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bus");
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|it| is(it, "json")).collect();
    files.sort();
    assert!(10 < files.len(), "there are examples: {files:?}");
    for file in files {
        run(&file);
    }
}

fn is(path: &Path, kind: &str) -> bool {
    path.extension().is_some_and(|it| it == kind)
}

fn run(file: &Path) {
    let config: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let pools = config["pools"].as_array().unwrap();
    let home = Home::new();
    for pool in pools {
        stand_in(&home, pool);
    }
    let programs = home.path().join("bin");
    let bus = Bus::start(home, file, |command| {
        command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    });
    for pool in pools {
        ask(&bus, pool, &file.display().to_string());
    }
    bus.stop();
}

/// Puts programs where the file looks for some: on `PATH`, and as scripts below the home.
fn stand_in(home: &Home, pool: &Value) {
    let args: Vec<&str> =
        pool["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let command = pool["command"].as_str().unwrap();
    let program = if command == "/usr/bin/env" { args[0] } else { command };
    let programs = home.path().join("bin");
    fs::create_dir_all(&programs).unwrap();
    if !program.contains('/') && !programs.join(program).exists() {
        symlink(binary("bench-worker"), programs.join(program)).unwrap();
    }
    for script in args.iter().map(Path::new).filter(|it| is(it, "js")) {
        let path = home.path().join(script);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, SCRIPT).unwrap();
    }
}

/// Two sessions for every worker of the pool, and an answer in each.
fn ask(bus: &Bus, pool: &Value, file: &str) {
    let id = pool["id"].as_str().unwrap();
    let mut client = bus.dial();
    for session in 0..2 * pool["instances"].as_u64().unwrap() {
        let to = MessageTarget::in_pool(id, format!("{id}-{session}"));
        client.send(to.request(session, "echo", "").as_bytes()).unwrap();
        let mut line = client.line().unwrap().to_vec();
        // `cat` asks us what we asked it; our answer comes back as its own.
        if string(&line, "method").is_some() {
            let asked: Value = serde_json::from_slice(&line).unwrap();
            let answer = serde_json::json!({
                "jsonrpc": "2.0", "id": asked["id"], "sessionId": to.session, "pool": id, "result": {},
            });
            client.send(format!("{answer}\n").as_bytes()).unwrap();
            line = client.line().unwrap().to_vec();
        }
        let answer: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(answer["id"], session, "{file}, pool `{id}`: {answer}");
        assert!(answer["result"].is_object(), "{file}, pool `{id}`: {answer}");
    }
}
