//! The web console as users see it: a real daemon, a real browser, scripts in `console/tests`.
//!
//! Each test runs one script with Node. The script starts and kills its own daemon; this module gives it folders, the
//! programs and a time limit, and checks that no process is left.

use jackfield_e2e::{
    Home,
    app::{in_tree, said},
    home::{binary, finish},
};
use std::{process::Command, time::Duration};

const BOUND: Duration = Duration::from_secs(100);

/// Runs `console/tests/<name>.test.mjs`.
fn run_script(name: &str) {
    let home = Home::new();
    assert!(
        in_tree("console/node_modules/playwright-core").exists(),
        "the packages of the console are missing: run scripts/build-console.sh"
    );
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]);
    node.arg(in_tree("console/tests").join(format!("{name}.test.mjs")));
    node.current_dir(home.path()).env_clear();
    node.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
    node.env("HOME", home.path()).env("TMPDIR", home.path()).env("E2E_MARK", home.mark());
    node.env("JACKFIELD_BINARY", binary("jackfield")).env("FAKE_AGENT", binary("fake-agent"));
    for (name, folder) in [
        ("JACKFIELD_CONFIG_DIR", "config"),
        ("JACKFIELD_STATE_DIR", "state"),
        ("JACKFIELD_RUNTIME_DIR", "run"),
    ] {
        node.env(name, home.path().join(folder));
    }
    if let Some(folder) = std::env::var_os("CONSOLE_SCREENSHOTS") {
        node.env("CONSOLE_SCREENSHOTS", folder);
    }
    said(&finish(node, BOUND));
}

macro_rules! browser_tests {
    ($($(#[$attribute:meta])* $name:ident;)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                run_script(stringify!($name));
            }
        )*
    };
}

browser_tests! {
    accessibility;
    acting;
    composer;
    hostile;
    inbox;
    login;
    offline;
    recovery;
    screens;
    #[ignore = "nightly: measures, and takes minutes"]
    performance;
}
