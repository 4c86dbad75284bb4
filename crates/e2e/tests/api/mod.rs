//! The REST API as programs meet it: a real daemon, real agents, plain HTTP.

mod acting;
mod change_stream;
mod cut_off;
mod described;
mod forms;
mod idempotency;
mod log_pages;
mod mcp;
pub(crate) mod metrics;
mod new_session;
mod open_design;
mod opening;
mod refused;
mod runs;
mod session_views;
mod sessions;
mod settings;
mod uploads;

use jackfield_e2e::{Client, Daemon, Home, Web, http::Event, wait_for};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

const BOUND: Duration = Duration::from_secs(20);

/// A daemon with a web front and the fake agent under the name `fake`; `config` is what else stands
/// in its configuration.
fn serve_with(home: &Home, flags: &[&str], config: &str) -> (Daemon, Web) {
    let dir = home.path().join("config");
    fs::create_dir_all(&dir).unwrap();
    let command = home.fake_agent(flags).iter().map(|it| format!("{it:?}")).collect::<Vec<_>>();
    let text = format!("{config}\n[agents.fake]\ncommand = [{}]\n", command.join(", "));
    fs::write(dir.join("config.toml"), text).unwrap();
    again(home)
}

pub(crate) fn serve(home: &Home, flags: &[&str]) -> (Daemon, Web) {
    serve_with(home, flags, "")
}

/// The same once more, in the same home.
pub(crate) fn again(home: &Home) -> (Daemon, Web) {
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    (daemon, Web::of(home))
}

/// An editor on the daemon's socket, with a session of its own.
fn editor(home: &Home) -> (Client, String) {
    let mut editor = home.dial();
    editor.notify("_jackfield/connect", &json!({ "agent": "fake" }));
    editor.hello();
    let session = editor.open(home.path());
    (editor, session)
}

/// A run of the fake agent that says this.
fn body(message: &str) -> Value {
    json!({ "agentId": "fake", "message": message })
}

/// Makes a run; returns its name and its session's.
fn make(web: &Web, body: &Value) -> (String, String) {
    let made = web.post("/api/runs", body);
    assert_eq!(made.status, 202, "{}", made.text());
    let made = made.json();
    let name = |it: &str| made[it].as_str().unwrap().to_owned();
    (name("runId"), name("sessionId"))
}

/// All events of a run, to its end.
fn events(web: &Web, run: &str) -> Vec<Event> {
    web.stream("GET", &format!("/api/runs/{run}/events"), &[], None).rest()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|it| it.name.as_str()).collect()
}

/// What the agent said, put together.
fn text(events: &[Event]) -> String {
    let delta = |it: &Event| Some(it.json()["delta"].as_str()?.to_owned());
    events.iter().filter(|it| it.json()["type"] == "text_delta").filter_map(delta).collect()
}

fn status(web: &Web, run: &str) -> Value {
    web.get(&format!("/api/runs/{run}")).good()["status"].clone()
}

/// Waits until a run stands so.
fn until(web: &Web, run: &str, wanted: &str) {
    wait_for(&format!("a run to be {wanted}"), BOUND, || {
        (status(web, run) == wanted).then_some(())
    });
}

/// Numbers from 1 on, a `start` and an `end`, and an `end` behind every `error`.
fn assert_whole(events: &[Event]) {
    let numbers: Vec<String> = events.iter().map(|it| it.id.clone().unwrap()).collect();
    let counted: Vec<String> = (1..=events.len()).map(|it| it.to_string()).collect();
    assert_eq!(numbers, counted);
    let names = names(events);
    assert_eq!((names.first(), names.last()), (Some(&"start"), Some(&"end")), "{events:#?}");
    assert_eq!(names.iter().filter(|it| **it == "end").count(), 1, "{events:#?}");
    let error = names.iter().position(|it| *it == "error");
    assert!(error.is_none_or(|it| it == names.len() - 2), "{events:#?}");
}

/// The script where `~/.local/bin` is, and a file that makes an agent of this dialect of it.
fn install(home: &Home, id: &str, dialect: &str, script: &str) {
    let (bin, agents) = (home.path().join(".local/bin"), home.path().join("config/agents"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&agents).unwrap();
    let program = bin.join(format!("{id}-cli"));
    fs::write(&program, script).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = format!(
        "id = {id:?}\nname = {id:?}\nbins = [\"{id}-cli\"]\n[[launch]]\ndialect = {dialect:?}\n\
         args = [\"first\"]\nresume = [\"again\", \"{{session}}\"]\nmodel = [\"--model\", \"{{model}}\"]\n"
    );
    fs::write(agents.join(format!("{id}.toml")), spec).unwrap();
}
