//! Commands on a terminal: questions, short ids, relative times.

use crate::{
    fake_hub::{FakeHub, agent_text, message_chunk, permission_request, prompt_response, response},
    home::{TestHome, wait_for},
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::ffi::OsStrExt as _,
    process::Child,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// A line that is typed sooner after a question does not answer it.
const READING_TIME: Duration = Duration::from_millis(310);

/// A command whose stdin, stdout and stderr are one terminal.
pub(crate) struct TestTerminal {
    child: Child,
    keyboard: File,
    output: Arc<Mutex<Vec<u8>>>,
    reader_thread: thread::JoinHandle<()>,
}

impl TestTerminal {
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> TestTerminal {
        TestTerminal::start_after_input(home, "", args)
    }

    /// Starts a command after the text was typed.
    fn start_after_input(home: &TestHome, typed: &str, args: &[&str]) -> TestTerminal {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let name = std::ffi::OsStr::from_bytes(name.to_bytes());
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let keyboard = File::from(controller);
        (&keyboard).write_all(typed.as_bytes()).unwrap();
        let mut command = home.command(args);
        command
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal);
        let child = command.spawn().unwrap();
        // Closes this process's copies of the terminal, so that the reader sees its end.
        drop(command);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, shared_output) = (keyboard.try_clone().unwrap(), output.clone());
        let reader_thread = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                shared_output.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        TestTerminal { child, keyboard, output, reader_thread }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).replace("\r\n", "\n")
    }

    pub(crate) fn wait_for(&self, text: &str) {
        wait_for(text, || self.text().contains(text));
    }

    pub(crate) fn enter(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Types an answer after the time that a user needs to read the question.
    fn answer(&mut self, line: &str) {
        thread::sleep(READING_TIME);
        self.enter(line);
    }

    /// The output without color, and the exit code.
    pub(crate) fn finish(mut self) -> (String, i32) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader_thread.join().unwrap();
        let text = String::from_utf8_lossy(&self.output.lock().unwrap()).replace("\r\n", "\n");
        (without_color(&text), code)
    }
}

fn without_color(text: &str) -> String {
    let mut plain = String::new();
    for (index, part) in text.split("\u{1b}[").enumerate() {
        let part = if index == 0 { part } else { part.split_once('m').map_or("", |it| it.1) };
        plain.push_str(part);
    }
    plain
}

#[test]
fn question_is_repeated_until_the_answer_is_valid() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on(
            "session/prompt",
            &[
                message_chunk(1, "agent_thought_chunk", "Hm."),
                agent_text("Let me"),
                permission_request(5, "execute"),
            ],
        )
        .on("answer", &[agent_text("It passes."), prompt_response("end_turn")])
        .start(&home);
    let mut screen = TestTerminal::start(&home, &["run", "hello", "--", "goose", "acp"]);
    screen.wait_for("Reject");
    screen.answer("perhaps");
    wait_for("the second question", || screen.text().matches("Reject").count() == 2);
    screen.answer("y");
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_ask", text);
    assert_eq!(code, 0);
    assert_eq!(received.with_method("answer")[0]["result"]["outcome"]["optionId"], "once");
}

#[test]
fn line_typed_before_a_question_does_not_answer_it() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[permission_request(5, "execute"), permission_request(6, "execute")])
        .start(&home);
    let mut screen =
        TestTerminal::start_after_input(&home, "y\n", &["run", "hello", "--", "goose", "acp"]);
    screen.wait_for("Reject");
    // The second question appears when the first is answered. The second line was typed before that: it is either
    // discarded by the terminal or read and refused.
    thread::sleep(READING_TIME);
    screen.keyboard.write_all(b"n\ny\n").unwrap();
    wait_for("the first answer", || received.with_method("answer").len() == 1);
    assert_eq!(received.with_method("answer")[0]["result"]["outcome"]["optionId"], "no");
    wait_for("the second question", || screen.text().matches("Reject").count() == 2);
    screen.answer("n");
    wait_for("the second answer", || received.with_method("answer").len() == 2);
    assert_eq!(received.with_method("answer")[1]["result"]["outcome"]["optionId"], "no");
    screen.child.kill().unwrap();
    screen.finish();
}

#[test]
fn lines_are_prompts_or_answers_until_ctrl_d() {
    let home = TestHome::new();
    let received = FakeHub::new()
        .on("session/prompt", &[agent_text("Let me"), permission_request(5, "execute")])
        .on("answer", &[agent_text("It passes."), prompt_response("end_turn")])
        .start(&home);
    let mut screen = TestTerminal::start(&home, &["run", "-i", "--", "goose", "acp"]);
    for turn in 1..=2 {
        wait_for("the input prompt", || screen.text().matches("> ").count() == turn);
        screen.enter("test it");
        wait_for("the question", || screen.text().matches("Reject").count() == turn);
        screen.answer("y");
        wait_for("the answer", || screen.text().matches("It passes.").count() == turn);
    }
    wait_for("the input prompt", || screen.text().matches("> ").count() == 3);
    screen.keyboard.write_all(b"\x04").unwrap();
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_interactive", text);
    assert_eq!(code, 0);
    assert_eq!(received.with_method("session/prompt").len(), 2);
    assert_eq!(received.with_method("answer")[1]["result"]["outcome"]["optionId"], "once");
}

#[test]
fn question_answered_by_another_client_is_withdrawn() {
    let home = TestHome::new();
    let settled = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}"#;
    let lines = [
        permission_request(5, "execute"),
        settled.to_owned(),
        agent_text("Thanks."),
        prompt_response("end_turn"),
    ];
    let received = FakeHub::new().on("session/prompt", &lines).start(&home);
    let (text, code) = TestTerminal::start(&home, &["run", "hello", "--", "goose", "acp"]).finish();
    insta::assert_snapshot!("terminal_settled", text);
    assert_eq!(code, 0);
    assert!(received.with_method("answer").is_empty());
}

#[test]
fn terminal_shows_short_ids_and_relative_times() {
    let home = TestHome::new();
    FakeHub::new().start(&home);
    let (text, code) = TestTerminal::start(&home, &["ps"]).finish();
    assert_eq!(code, 0);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], ["s-7f3", "goose", "idle", "0", "1"]);
    assert!(row[5] == "now" || row[5].ends_with(['s', 'm', 'h', 'd']), "{}", row[5]);
}

#[test]
fn request_is_addressed_by_a_short_unique_id() {
    let home = TestHome::new();
    let options = json!([{ "optionId": "once", "name": "Yes", "kind": "allow_once" }]);
    let ask = json!({
        "sessionId": "s-7f3abcdefghi", "ask": 2, "agent": "goose", "what": "Push",
        "since": "2026-11-15T08:30:00.123Z", "method": "session/request_permission",
        "options": options,
    });
    let asks = response(&json!({ "asks": [ask] }));
    FakeHub::new().on("_jackfield/asks", &[asks]).start(&home);
    let (text, code) = TestTerminal::start(&home, &["asks"]).finish();
    assert_eq!(code, 0);
    let line: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(line[0], "s-7f3:2", "{text}");
    assert!(line[1] == "now" || line[1].ends_with(['s', 'm', 'h', 'd']), "{text}");
    assert!(text.trim_end().ends_with("goose asks: Push  [y] Yes"), "{text}");
}

#[test]
fn agent_output_cannot_control_the_terminal() {
    let home = TestHome::new();
    let lines = [agent_text("a\u{1b}[2Jb\u{7}c"), prompt_response("end_turn")];
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let screen = TestTerminal::start(
        &home,
        &["-q", "--color", "never", "run", "hello", "--", "goose", "acp"],
    );
    let (text, _) = screen.finish();
    assert_eq!(text, "a\\x1b[2Jb\\x07c\n");
}

#[test]
fn removal_can_be_confirmed_or_declined() {
    let home = TestHome::new();
    let received = FakeHub::new().start(&home);
    let mut screen = TestTerminal::start(&home, &["sessions", "rm", "7f3"]);
    screen.wait_for("[y/N]");
    screen.enter("n");
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_declined", text);
    assert_eq!(code, 130);
    let mut screen = TestTerminal::start(&home, &["sessions", "rm", "7f3"]);
    screen.wait_for("[y/N]");
    screen.enter("y");
    assert_eq!(screen.finish().1, 0);
    assert_eq!(received.with_method("session/delete").len(), 1);
}

#[test]
fn settings_of_an_editor_are_written_only_after_a_yes() {
    let home = TestHome::new();
    let settings = home.path().join("config/zed/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{}\n").unwrap();
    for (answer, code, is_written) in [("", 130, false), ("n", 130, false), ("y", 0, true)] {
        let mut screen = TestTerminal::start(&home, &["setup", "zed"]);
        screen.wait_for("[y/N]");
        screen.enter(answer);
        let (text, exit_code) = screen.finish();
        assert_eq!(exit_code, code, "{text}");
        assert!(text.contains("Goose in Jackfield"), "the change is shown first: {text}");
        assert_eq!(std::fs::read_to_string(&settings).unwrap() != "{}\n", is_written);
    }
}
