//! The token over the life of an installation: it outlives a logout and an upgrade, and can be replaced
//! while the daemon runs.

use jackfield_e2e::{Daemon, Home, http::Web};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

const BOUND: Duration = Duration::from_secs(20);

fn serve(home: &Home) -> (Daemon, Web) {
    let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
    (daemon, Web::of(home))
}

fn token(home: &Home, args: &[&str]) -> String {
    let output = home.run(&[&["token"], args].concat(), BOUND);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn status(web: &Web) -> u16 {
    web.get("/api/sessions").status
}

#[test]
fn token_outlives_the_runtime_directory() {
    let home = Home::new();
    let (daemon, _) = serve(&home);
    let before = token(&home, &[]);
    daemon.stop();
    fs::remove_dir_all(home.path().join("run")).unwrap();
    let (_daemon, web) = serve(&home);
    assert_eq!((token(&home, &[]), status(&web)), (before, 200));
}

#[test]
fn token_that_an_earlier_version_kept_in_the_runtime_directory_still_lets_in() {
    let home = Home::new();
    let former = home.path().join("run/token");
    fs::create_dir(home.path().join("run")).unwrap();
    fs::write(&former, "7".repeat(64)).unwrap();
    fs::set_permissions(&former, fs::Permissions::from_mode(0o600)).unwrap();
    let (_daemon, web) = serve(&home);
    assert_eq!(token(&home, &[]), "7".repeat(64));
    assert_eq!(status(&Web { token: "7".repeat(64), ..web }), 200);
    assert!(!former.exists(), "it was moved");
}

#[test]
fn rotated_token_holds_at_once_and_open_connections_stay_open() {
    let home = Home::new();
    let (_daemon, web) = serve(&home);
    let (mut open, _stream) = web.websocket();
    open.hello();
    let next = token(&home, &["--rotate"]);
    assert_ne!(next, web.token);
    assert_eq!(token(&home, &[]), next);
    let renewed = Web { token: next, ..web.clone() };
    assert_eq!((status(&web), status(&renewed)), (401, 200));
    open.result("_jackfield/status", &json!({}));
}
