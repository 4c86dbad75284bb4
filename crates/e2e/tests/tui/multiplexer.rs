//! The interface in GNU screen, which itself runs in a terminal of tmux.

use super::{
    home_with_agent,
    pane::TerminalPane,
    work::{EMPTY_FIELD, open_session, send_prompt},
};
use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
};

/// Waits until the shell in screen has the terminal, and its modes are those of before.
fn check_restored(pane: &TerminalPane<'_>) {
    pane.wait_for_prompt();
    pane.run_shell("clear; stty -g > after; cmp before after && echo restored");
    pane.wait_until("restored terminal", |screen| {
        screen.lines().any(|it| it == "restored") && !screen.contains(EMPTY_FIELD)
    });
    for (mode, expected) in [("cursor_flag", "1"), ("mouse_any_flag", "0")] {
        assert_eq!(pane.value(mode), expected, "{mode}");
    }
}

#[test]
fn session_works_in_gnu_screen_and_the_terminal_is_restored() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    let sockets = home.path().join("screen");
    DirBuilder::new().mode(0o700).create(&sockets).unwrap();
    let settings = "startup_message off\naltscreen on\ndefutf8 on\nvbell off\n";
    fs::write(home.path().join("screenrc"), settings).unwrap();
    let pane = TerminalPane::start(&home, 90, 26);
    pane.run_shell("SCREENDIR=$PWD/screen screen -U -c screenrc sh -i");
    pane.wait_until("shell in screen", |screen| !screen.contains("SCREENDIR"));
    pane.run_shell("echo in $TERM; stty -g > before");
    pane.wait_for("in screen");
    open_session(&pane, "tui --mouse");
    send_prompt(&pane, "grüße 漢字");
    pane.wait_for("you said: grüße 漢字");
    for (width, height) in [(60, 16), (100, 30)] {
        pane.resize(width, height);
        pane.wait_until("frame of the new size", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let is_whole = lines.len() == height && lines[height - 1].contains("send");
            is_whole && screen.matches("you said: grüße 漢字").count() == 1
        });
    }
    pane.capture("screen");
    pane.press(&["C-q"]);
    check_restored(&pane);
    pane.run_shell("exit");
    pane.wait_for_shell();
    daemon.stop();
}
