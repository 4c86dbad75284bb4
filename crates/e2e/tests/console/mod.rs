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

const GATE_BOUND: Duration = Duration::from_secs(170);
const NIGHTLY_BOUND: Duration = Duration::from_mins(9);

/// Files that a person wants to keep: the folder of the pictures, and the table of the figures.
const KEPT_FILES: [&str; 2] = ["CONSOLE_SCREENSHOTS", "CONSOLE_FIGURES"];

/// Runs the tests in `console/tests/<name>.test.mjs` whose names match the pattern, with more variables.
fn run_script(name: &str, pattern: &str, bound: Duration, variables: &[(&str, &str)]) {
    let home = Home::new();
    assert!(
        in_tree("console/node_modules/playwright-core").exists(),
        "the packages of the console are missing: run scripts/build-console.sh"
    );
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", "--test-name-pattern", pattern]);
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
    node.envs(KEPT_FILES.into_iter().filter_map(|it| Some((it, std::env::var_os(it)?))));
    node.envs(variables.iter().copied());
    let output = said(&finish(node, bound));
    assert!(!output.contains("pass 0"), "no test of {name} has a name like {pattern:?}\n{output}");
}

macro_rules! browser_tests {
    ($bound:ident; $(
        $(#[$attribute:meta])*
        $name:ident: $script:literal $pattern:literal $($variable:ident=$value:literal)?;
    )*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                run_script($script, $pattern, $bound, &[$((stringify!($variable), $value))?]);
            }
        )*
    };
}

// A test may take a minute, so long scripts are run in parts.
browser_tests! {
    GATE_BOUND;
    acting: "acting" "";
    composer_prompts: "composer" "prompt whose|draft|Escape|daemon is away";
    composer_files_and_settings: "composer" "pasted|warning|commands";
    composer_new_session: "composer" "a session is";
    inbox: "inbox" "";
    keyboard: "keyboard" "";
    login: "login" "";
    offline: "offline" "";
    push: "push" "";
    recovery_after_a_kill: "recovery" "killed|expired login";
    recovery_after_a_cut: "recovery" "network was cut";
    recovery_of_all_tabs: "recovery" "deleted|ten tabs";
    accessibility_light: "accessibility" "light";
    accessibility_dark: "accessibility" "dark";
    accessibility_of_dialogs: "accessibility" "shown on request";
    hostile_scripts: "hostile" "session: script";
    hostile_links: "hostile" "session: link";
    hostile_styles: "hostile" "session: style";
    hostile_characters: "hostile" "session: character";
    hostile_terminal_output: "hostile" "session: terminal";
    hostile_layout: "hostile" "session: layout";
    hostile_titles_and_lines: "hostile" "hostile titles|10 MB";
}

browser_tests! {
    NIGHTLY_BOUND;
    #[ignore = "nightly: the network is cut for five minutes"]
    recovery_after_a_cut_of_five_minutes: "recovery" "network was cut" CONSOLE_CUT_SECONDS="300";
    #[ignore = "nightly: pictures for people"]
    screens: "screens" "";
    #[ignore = "nightly: measures, and takes minutes"]
    performance: "performance" "";
}
