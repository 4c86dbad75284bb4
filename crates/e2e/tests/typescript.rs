//! The TypeScript client as apps have it: built, installed, run by Node against a real daemon.

use crate::api::{again, serve};
use jackfield_e2e::{
    App, Home,
    app::{in_tree, package, said},
    home::finish,
    proxy::{Fate, Proxy},
    wait_for,
};
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
    time::Duration,
};

const BOUND: Duration = Duration::from_mins(1);

/// A file of the client's folder, in an app that has the package.
fn bring(app: &App, file: &str) {
    app.install("jackfield-client", &package());
    let text = fs::read_to_string(in_tree("clients/typescript").join(file)).unwrap();
    app.write("main.mjs", &text);
}

#[test]
fn the_types_are_those_of_the_description() {
    let tools = package().join("node_modules/.bin").display().to_string();
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "schema", "--", "--check"]);
    npm.current_dir(in_tree("clients/typescript"));
    npm.env("PATH", format!("{tools}:{}", env::var("PATH").unwrap()));
    let output = finish(npm, BOUND);
    let way = "src/schema.ts is not what docs/openapi.json gives: scripts/build-clients.sh --write";
    assert!(output.status.success(), "{way}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_example_streams_a_run() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let app = App::new(&home, &web);
    bring(&app, "examples/stream.mjs");
    let heard = app.say("node", &["main.mjs", "fake", "burst 3\nhello"], BOUND);
    assert_eq!(heard, "123you said: hello\nsucceeded\n");
    daemon.stop();
}

#[test]
fn the_example_goes_on_when_the_daemon_was_killed_and_has_come_again() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let proxy = Proxy::to(web.address);
    let app = App::new(&home, &web.by_way_of(proxy.at));
    bring(&app, "examples/stream.mjs");
    let mut node = app.command("node", &["main.mjs", "fake", "slow 3 1 then hang"]);
    let mut node = node.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(node.stdout.take().unwrap());
    let mut heard = Vec::new();
    while !heard.ends_with(b"slow 3 ") {
        assert_ne!(out.read_until(b' ', &mut heard).unwrap(), 0, "it ended before its last word");
    }
    daemon.kill_9();
    let (daemon, web) = again(&home);
    proxy.lead_to(web.address);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(String::from_utf8(heard).unwrap() + &rest, "slow 1 slow 2 slow 3 \nfailed\n");
    let ended = wait_for("the example's end", BOUND, || node.try_wait().unwrap());
    assert!(ended.success());
    daemon.stop();
}

#[test]
fn the_client_does_all_that_it_says_and_a_broken_wire_costs_nothing() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let cut = Proxy::that_breaks(web.address, |_| Fate::IsCutAfter(4000));
    let silent = Proxy::that_breaks(web.address, |index| match index {
        0 | 1 => Fate::FallsSilentAfter(2000),
        _ => Fate::Lives,
    });
    let app = App::new(&home, &web);
    bring(&app, "tests/client.mjs");
    let mut node = app.command("node", &["main.mjs"]);
    for (name, proxy) in [("CUT_URL", &cut), ("SILENT_URL", &silent)] {
        node.env(name, format!("http://{}", proxy.at));
    }
    said(&finish(node, BOUND));
    assert!(5 < cut.broken(), "{} connections were cut", cut.broken());
    assert!(0 < silent.broken());
    daemon.stop();
}
