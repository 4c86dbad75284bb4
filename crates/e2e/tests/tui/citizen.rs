//! The interface as a program of a terminal: sizes, job control, signals, the clipboard.

use super::{home_with_agent, pane::TerminalPane, run};
use jackfield_e2e::wait_for;
use std::time::Duration;

fn interface_pid(pane: &TerminalPane<'_>) -> String {
    let shell = pane.value("pane_pid");
    wait_for("the process of the interface", Duration::from_secs(10), || {
        let path = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(path).ok()?;
        children.split_whitespace().last().map(str::to_owned)
    })
}

#[test]
fn board_fits_the_window_after_each_resize() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    run(&home, &["run", "--keep", "--name", "demo", "hello"]);
    let pane = TerminalPane::start(&home, 100, 30);
    pane.start_interface("");
    pane.wait_for("demo");
    for (width, height) in [(40, 12), (200, 60), (41, 13), (100, 30)] {
        pane.resize(width, height);
        pane.wait_until("frame of the new size", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            // The keys are in the last line.
            lines.len() == height && lines[height - 1].contains("open") && screen.contains("demo")
        });
    }
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    run(&home, &["run", "--keep", "--name", "demo", "hello"]);
    let pane = TerminalPane::start(&home, 80, 24);
    pane.run_shell("stty -g > before");
    pane.start_interface("");
    pane.wait_for("demo");
    pane.press(&["C-z"]);
    pane.wait_for_shell();
    pane.run_shell("stty -g > stopped; cmp before stopped && echo same");
    pane.wait_for("same");
    pane.run_shell("fg");
    pane.wait_until("board", |screen| screen.contains("demo") && screen.contains("open"));
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}

#[test]
fn terminal_is_restored_after_sigterm_and_sighup() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    run(&home, &["run", "--keep", "--name", "demo", "hello"]);
    let pane = TerminalPane::start(&home, 80, 24);
    pane.run_shell("stty -g > before");
    for signal in ["TERM", "HUP", "INT"] {
        pane.start_interface("tui --mouse");
        pane.wait_for("demo");
        assert_eq!(
            (pane.value("alternate_on"), pane.value("mouse_any_flag")),
            ("1".into(), "1".into())
        );
        let pid = interface_pid(&pane);
        pane.tmux(&["run-shell", &format!("kill -{signal} {pid}")]);
        pane.wait_for_shell();
        pane.run_shell("clear; stty -g > after; cmp before after && echo same");
        pane.wait_for("same");
    }
    daemon.stop();
}

#[test]
fn id_of_a_session_is_copied_with_osc_52() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    run(&home, &["run", "--keep", "--name", "demo", "hello"]);
    let id = run(&home, &["sessions", "list", "--format", "quiet"]);
    let pane = TerminalPane::start(&home, 80, 24);
    pane.start_interface("");
    pane.wait_for("demo");
    pane.press(&["y"]);
    wait_for("the buffer of tmux", Duration::from_secs(10), || {
        let buffers = pane.tmux(&["list-buffers", "-F", "#{buffer_sample}"]);
        buffers.contains(&id).then_some(())
    });
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}

#[test]
fn without_a_terminal_or_on_a_dumb_one_the_status_is_printed() {
    let home = home_with_agent();
    let pane = TerminalPane::start(&home, 80, 24);
    let program = jackfield_e2e::home::binary("jackfield");
    pane.run_shell(&format!("TERM=dumb {}", program.display()));
    pane.wait_for("no daemon is running");
    pane.run_shell(&format!("clear; {} | cat", program.display()));
    pane.wait_for("no daemon is running");
    pane.run_shell(&format!("clear; TERM=dumb {} tui", program.display()));
    pane.wait_for("needs a terminal");
    pane.assert_untouched();
}
