//! The same on a terminal: questions, short ids, times as people say them.

use crate::{
    fake_hub::{FakeHub, ask, chunk, result, say, stop},
    home::{Home, wait_for},
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
struct Screen {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl Screen {
    fn start(home: &Home, args: &[&str]) -> Screen {
        Screen::start_after_typing(home, "", args)
    }

    /// The text was typed before the command began to read.
    fn start_after_typing(home: &Home, typed: &str, args: &[&str]) -> Screen {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let name = std::ffi::OsStr::from_bytes(name.to_bytes());
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let keyboard = File::from(ours);
        (&keyboard).write_all(typed.as_bytes()).unwrap();
        let mut command = home.command(args);
        command
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs);
        let child = command.spawn().unwrap();
        // Our copies of the other end go with the command: then the reader sees the end.
        drop(command);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, told) = (keyboard.try_clone().unwrap(), seen.clone());
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                told.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Screen { child, keyboard, seen, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).replace("\r\n", "\n")
    }

    fn wait_for(&self, text: &str) {
        wait_for(text, || self.text().contains(text));
    }

    fn enter(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Types the answer to the question on the screen, as late as a person would.
    fn answer(&mut self, line: &str) {
        thread::sleep(READING_TIME);
        self.enter(line);
    }

    /// What stood on the screen, without color, and the exit code.
    fn finish(mut self) -> (String, i32) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.join().unwrap();
        let text = String::from_utf8_lossy(&self.seen.lock().unwrap()).replace("\r\n", "\n");
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
fn a_person_is_asked_until_the_answer_is_one() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on(
            "session/prompt",
            &[chunk(1, "agent_thought_chunk", "Hm."), say("Let me"), ask(5, "execute")],
        )
        .on("answer", &[say("It passes."), stop("end_turn")])
        .start(&home);
    let mut screen = Screen::start(&home, &["run", "hello", "--", "goose", "acp"]);
    screen.wait_for("Reject");
    screen.answer("perhaps");
    wait_for("the second question", || screen.text().matches("Reject").count() == 2);
    screen.answer("y");
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_ask", text);
    assert_eq!(code, 0);
    assert_eq!(heard.all("answer")[0]["result"]["outcome"]["optionId"], "once");
}

#[test]
fn line_that_is_typed_before_a_question_does_not_answer_it() {
    let home = Home::new();
    let heard =
        FakeHub::new().on("session/prompt", &[ask(5, "execute"), ask(6, "execute")]).start(&home);
    let mut screen =
        Screen::start_after_typing(&home, "y\n", &["run", "hello", "--", "goose", "acp"]);
    screen.wait_for("Reject");
    // The second question appears when the first is answered. The second line was typed before that: it is either
    // discarded by the terminal or read and refused.
    thread::sleep(READING_TIME);
    screen.keyboard.write_all(b"n\ny\n").unwrap();
    wait_for("the first answer", || heard.all("answer").len() == 1);
    assert_eq!(heard.all("answer")[0]["result"]["outcome"]["optionId"], "no");
    wait_for("the second question", || screen.text().matches("Reject").count() == 2);
    screen.answer("n");
    wait_for("the second answer", || heard.all("answer").len() == 2);
    assert_eq!(heard.all("answer")[1]["result"]["outcome"]["optionId"], "no");
    screen.child.kill().unwrap();
    screen.finish();
}

#[test]
fn turn_after_turn_a_line_is_a_prompt_or_an_answer_until_ctrl_d() {
    let home = Home::new();
    let heard = FakeHub::new()
        .on("session/prompt", &[say("Let me"), ask(5, "execute")])
        .on("answer", &[say("It passes."), stop("end_turn")])
        .start(&home);
    let mut screen = Screen::start(&home, &["run", "-i", "--", "goose", "acp"]);
    for turn in 1..=2 {
        wait_for("the sign to type", || screen.text().matches("> ").count() == turn);
        screen.enter("test it");
        wait_for("the question", || screen.text().matches("Reject").count() == turn);
        screen.answer("y");
        wait_for("the answer", || screen.text().matches("It passes.").count() == turn);
    }
    wait_for("the sign to type", || screen.text().matches("> ").count() == 3);
    screen.keyboard.write_all(b"\x04").unwrap();
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_interactive", text);
    assert_eq!(code, 0);
    assert_eq!(heard.all("session/prompt").len(), 2);
    assert_eq!(heard.all("answer")[1]["result"]["outcome"]["optionId"], "once");
}

#[test]
fn a_question_that_is_answered_elsewhere_goes_away() {
    let home = Home::new();
    let settled = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}"#;
    let lines = [ask(5, "execute"), settled.to_owned(), say("Thanks."), stop("end_turn")];
    let heard = FakeHub::new().on("session/prompt", &lines).start(&home);
    let (text, code) = Screen::start(&home, &["run", "hello", "--", "goose", "acp"]).finish();
    insta::assert_snapshot!("terminal_settled", text);
    assert_eq!(code, 0);
    assert!(heard.all("answer").is_empty());
}

#[test]
fn ids_are_short_and_times_relative() {
    let home = Home::new();
    FakeHub::new().start(&home);
    let (text, code) = Screen::start(&home, &["ps"]).finish();
    assert_eq!(code, 0);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], ["s-7f3", "goose", "idle", "0", "1"]);
    assert!(row[5] == "now" || row[5].ends_with(['s', 'm', 'h', 'd']), "{}", row[5]);
}

#[test]
fn an_ask_is_named_as_short_as_it_can_be_answered() {
    let home = Home::new();
    let options = json!([{ "optionId": "once", "name": "Yes", "kind": "allow_once" }]);
    let ask = json!({
        "sessionId": "s-7f3abcdefghi", "ask": 2, "agent": "goose", "what": "Push",
        "since": "2026-11-15T08:30:00.123Z", "method": "session/request_permission",
        "options": options,
    });
    let asks = result(&json!({ "asks": [ask] }));
    FakeHub::new().on("_jackfield/asks", &[asks]).start(&home);
    let (text, code) = Screen::start(&home, &["asks"]).finish();
    assert_eq!(code, 0);
    let line: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(line[0], "s-7f3:2", "{text}");
    assert!(line[1] == "now" || line[1].ends_with(['s', 'm', 'h', 'd']), "{text}");
    assert!(text.trim_end().ends_with("goose asks: Push  [y] Yes"), "{text}");
}

#[test]
fn an_agent_cannot_repaint_the_screen() {
    let home = Home::new();
    let lines = [say("a\u{1b}[2Jb\u{7}c"), stop("end_turn")];
    FakeHub::new().on("session/prompt", &lines).start(&home);
    let screen =
        Screen::start(&home, &["-q", "--color", "never", "run", "hello", "--", "goose", "acp"]);
    let (text, _) = screen.finish();
    assert_eq!(text, "a\\x1b[2Jb\\x07c\n");
}

#[test]
fn removing_can_be_confirmed_or_declined() {
    let home = Home::new();
    let heard = FakeHub::new().start(&home);
    let mut screen = Screen::start(&home, &["sessions", "rm", "7f3"]);
    screen.wait_for("[y/N]");
    screen.enter("n");
    let (text, code) = screen.finish();
    insta::assert_snapshot!("terminal_declined", text);
    assert_eq!(code, 130);
    let mut screen = Screen::start(&home, &["sessions", "rm", "7f3"]);
    screen.wait_for("[y/N]");
    screen.enter("y");
    assert_eq!(screen.finish().1, 0);
    assert_eq!(heard.all("session/delete").len(), 1);
}
