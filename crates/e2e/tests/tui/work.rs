//! A whole session in the interface, also across the death of the daemon.

use super::{home_with_agent, pane::TerminalPane, run};

/// What the empty input field shows.
pub(super) const EMPTY_FIELD: &str = "What should the agent do?";

/// Opens the board, and a new session from it.
pub(super) fn open_session(pane: &TerminalPane<'_>, args: &str) {
    pane.start_interface(args);
    pane.wait_for("n new");
    pane.press(&["n"]);
    pane.wait_for(EMPTY_FIELD);
}

pub(super) fn send_prompt(pane: &TerminalPane<'_>, text: &str) {
    pane.wait_for(EMPTY_FIELD);
    pane.enter_text(text);
    pane.wait_for(text);
    pane.press(&["Enter"]);
}

/// Answers the open request with its first option, and returns to the session.
fn allow_request(pane: &TerminalPane<'_>, title: &str) {
    pane.wait_for("needs you");
    pane.press(&["F2"]);
    // It takes no key before that.
    pane.wait_until("request that can be answered", |screen| {
        screen.contains("Answer:") && screen.contains(title)
    });
    pane.capture("inbox");
    pane.press(&["y"]);
    // The last answer leads back by itself. Escape and the next letter together would be a key with Alt.
    pane.wait_for(EMPTY_FIELD);
}

/// Unfolds the tool call, whose diff replaces `a` with `b`, and folds it again.
fn read_diff(pane: &TerminalPane<'_>) {
    pane.press(&["M-e"]);
    pane.wait_until("diff", |screen| screen.contains("1 - a") && screen.contains("1 + b"));
    pane.capture("diff");
    pane.press(&["M-e"]);
    pane.wait_until("folded diff", |screen| !screen.contains("1 + b"));
}

#[test]
fn session_is_opened_prompted_answered_canceled_left_and_opened_again() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    let pane = TerminalPane::start(&home, 100, 30);
    open_session(&pane, "");
    send_prompt(&pane, "hello there");
    pane.wait_for("you said: hello there");
    send_prompt(&pane, "ask-about Remove the cache");
    allow_request(&pane, "Remove the cache");
    pane.wait_for("ask 1: allow-once");
    send_prompt(&pane, "tool");
    pane.wait_for("tool: done");
    pane.capture("session");
    read_diff(&pane);
    // A turn that does not end by itself.
    send_prompt(&pane, "hang");
    pane.wait_for("Queue a prompt");
    pane.press(&["C-c"]);
    pane.wait_until("canceled turn", |screen| {
        screen.contains("idle") && !screen.contains("working")
    });
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    let id = run(&home, &["sessions", "list", "--format", "quiet"]);
    pane.start_interface(&format!("tui {id}"));
    pane.wait_until("session as it was left", |screen| {
        ["you said: hello there", "ask 1: allow-once", "tool: done"]
            .iter()
            .all(|it| screen.matches(it).count() == 1)
    });
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}

#[test]
fn view_continues_without_a_lost_or_doubled_item_when_the_daemon_is_killed() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    let pane = TerminalPane::start(&home, 100, 40);
    open_session(&pane, "");
    for text in ["first", "second"] {
        send_prompt(&pane, text);
        pane.wait_for(&format!("you said: {text}"));
    }
    daemon.kill_9();
    // The interface starts the daemon again.
    send_prompt(&pane, "third");
    pane.wait_for("you said: third");
    let screen = pane.screen();
    for text in ["first", "second", "third"] {
        let shown = screen.matches(&format!("you said: {text}")).count();
        assert_eq!(shown, 1, "{text} in\n{screen}");
    }
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    run(&home, &["daemon", "stop"]);
}
