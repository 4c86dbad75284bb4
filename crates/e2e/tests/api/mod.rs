//! The REST API as programs meet it: a real daemon, real agents, plain HTTP.

mod sessions;

use jackfield_e2e::{Client, Daemon, Home, Web};
use std::fs;

/// A daemon with a web front and the fake agent under the name `fake`.
fn serve(home: &Home, flags: &[&str]) -> (Daemon, Web) {
    let config = home.path().join("config");
    fs::create_dir_all(&config).unwrap();
    let command = home.fake_agent(flags).iter().map(|it| format!("{it:?}")).collect::<Vec<_>>();
    let text = format!("[agents.fake]\ncommand = [{}]\n", command.join(", "));
    fs::write(config.join("config.toml"), text).unwrap();
    again(home)
}

/// The same once more, in the same home.
fn again(home: &Home) -> (Daemon, Web) {
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    (daemon, Web::of(home))
}

/// An editor on the daemon's socket, with a session of its own.
fn editor(home: &Home) -> (Client, String) {
    let mut editor = home.dial();
    editor.notify("_jackfield/connect", &serde_json::json!({ "agent": "fake" }));
    editor.hello();
    let session = editor.open(home.path());
    (editor, session)
}
