//! The interface below the prompt of the shell: what is finished goes into the scrollback.

use super::{
    home_with_agent,
    pane::TerminalPane,
    run,
    work::{EMPTY_FIELD, open_session, send_prompt},
};

#[test]
fn inline_interface_keeps_the_screen_of_the_shell() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    run(&home, &["run", "--keep", "--name", "demo", "hello"]);
    let pane = TerminalPane::start(&home, 80, 40);
    pane.run_shell("echo earlier output");
    pane.start_interface("tui --inline");
    pane.wait_until("board below the output", |screen| {
        screen.contains("earlier output") && screen.contains("demo")
    });
    assert_eq!(pane.value("alternate_on"), "0");
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    assert!(pane.screen().contains("earlier output"));
    daemon.stop();
}

/// Fails unless the scrollback and the screen together have each answer once.
fn check_answers(pane: &TerminalPane<'_>, answers: &[String]) {
    let text = pane.history();
    for answer in answers {
        assert_eq!(text.matches(answer.as_str()).count(), 1, "{answer} in\n{text}");
    }
}

/// Sends a prompt and waits until its answer is above the frame.
fn print_answer(pane: &TerminalPane<'_>, text: &str, answers: &mut Vec<String>) {
    send_prompt(pane, text);
    answers.push(format!("you said: {text}"));
    pane.wait_until("answer above the frame", |_| {
        let text = pane.history();
        let frame = text.rfind("idle").unwrap_or(0);
        answers.iter().all(|it| text.find(it.as_str()).is_some_and(|it| it < frame))
    });
    check_answers(pane, answers);
}

fn wait_for_frame(pane: &TerminalPane<'_>) {
    pane.wait_until("frame of the new size", |screen| {
        let lines: Vec<&str> = screen.trim_end().lines().collect();
        screen.contains(EMPTY_FIELD) && lines.last().is_some_and(|it| it.contains("send"))
    });
}

#[test]
fn answers_are_in_the_scrollback_once_also_after_resizes() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    let pane = TerminalPane::start(&home, 80, 30);
    pane.run_shell("echo earlier output");
    open_session(&pane, "tui --inline");
    let mut answers = vec!["\nearlier output".to_owned()];
    for (width, height) in [(60, 30), (100, 24), (80, 40), (50, 22)] {
        print_answer(&pane, &format!("words for {width}"), &mut answers);
        pane.resize(width, height);
        wait_for_frame(&pane);
        check_answers(&pane, &answers);
    }
    // The interface does not see all of these sizes.
    for (width, height) in [(90, 12), (120, 50), (64, 9), (70, 33)] {
        pane.resize(width, height);
    }
    wait_for_frame(&pane);
    check_answers(&pane, &answers);
    print_answer(&pane, "last words", &mut answers);
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    check_answers(&pane, &answers);
    daemon.stop();
}

#[test]
fn click_selects_the_line_under_the_mouse_in_an_inline_frame() {
    let home = home_with_agent();
    let daemon = home.serve(&[]);
    for name in ["first", "second"] {
        run(&home, &["run", "--keep", "--name", name, "hello"]);
    }
    let pane = TerminalPane::start(&home, 80, 40);
    pane.run_shell("echo earlier output");
    pane.start_interface("tui --inline --mouse");
    for name in ["first", "second"] {
        pane.wait_for(name);
        let screen = pane.screen();
        let row = screen.lines().position(|it| it.contains(name)).unwrap() + 1;
        pane.enter_text(&format!("\u{1b}[<0;10;{row}M\u{1b}[<0;10;{row}m"));
        pane.press(&["Enter"]);
        pane.wait_until("clicked session", |screen| {
            screen.contains(EMPTY_FIELD) && screen.contains(name)
        });
        pane.press(&["Escape"]);
        pane.wait_for("i write");
        pane.press(&["q"]);
        pane.wait_for("n new");
    }
    pane.press(&["C-q"]);
    pane.wait_for_shell();
    daemon.stop();
}
