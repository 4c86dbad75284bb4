//! Hostile texts of agents, the same that the console is tested with: the terminal stays as it is.

use super::{configure_agent, pane::TerminalPane, run};
use jackfield_e2e::{Home, app::in_tree};
use std::{fs, process::Command};

/// What an agent must not change.
fn terminal_state(pane: &TerminalPane<'_>) -> Vec<String> {
    let names = [
        "pane_title",
        "window_name",
        "alternate_on",
        "mouse_any_flag",
        "scroll_region_upper",
        "scroll_region_lower",
        "origin_flag",
        "insert_flag",
        "keypad_cursor_flag",
        "keypad_flag",
        "wrap_flag",
        "pane_width",
        "pane_height",
    ];
    let values = pane.value(&names.join("}|#{"));
    vec![values, pane.tmux(&["list-buffers"])]
}

fn check_group(group: &str) {
    let home = Home::new();
    let agent = in_tree("console/tests/support/hostile-agent.mjs");
    configure_agent(&home, &["node".to_owned(), agent.to_string_lossy().into_owned()]);
    let daemon = home.serve(&[]);
    let id = run(&home, &["run", "--no-wait", group]);
    let pane = TerminalPane::start(&home, 100, 30);
    pane.tmux(&["set", "-g", "allow-rename", "on"]);
    pane.tmux(&["set", "-g", "automatic-rename", "off"]);
    pane.start_interface(&format!("tui {id}"));
    pane.wait_for("idle");
    let before = terminal_state(&pane);
    // The transcript from its beginning, with everything that is folded.
    pane.press(&["Escape"]);
    pane.wait_for("i write");
    pane.press(&["e"]);
    pane.press(&["g"]);
    for _ in 0..25 {
        pane.press(&["C-f"]);
        let screen = pane.screen();
        assert_eq!(terminal_state(&pane), before, "{screen}");
        assert_eq!(screen.lines().count(), 30, "{screen}");
    }
    pane.capture(&format!("hostile-{group}"));
    // The board shows titles of the agent.
    pane.press(&["q"]);
    pane.wait_for("n new");
    assert_eq!(terminal_state(&pane), before);
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}

macro_rules! hostile_groups {
    ($($name:ident: $group:literal;)*) => {
        $(
            #[test]
            fn $name() {
                check_group($group);
            }
        )*
    };
}

hostile_groups! {
    characters_leave_the_terminal_untouched: "character";
    terminal_output_leaves_the_terminal_untouched: "terminal";
    layouts_leave_the_terminal_untouched: "layout";
    scripts_leave_the_terminal_untouched: "script";
}

#[test]
fn texts_of_the_unit_tests_are_those_of_the_console() {
    let printed = Command::new("node").arg(in_tree("console/tests/hostile.mjs")).output().unwrap();
    let copy = fs::read(in_tree("crates/tui/src/text/testdata/hostile.jsonl")).unwrap();
    let copies = "node console/tests/hostile.mjs > crates/tui/src/text/testdata/hostile.jsonl";
    assert!(
        printed.stdout == copy && !copy.is_empty(),
        "the copy differs; write it with `{copies}`"
    );
}
