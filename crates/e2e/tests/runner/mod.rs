//! `jackfield run` with any command that speaks ACP: one process for all turns, a limit for its
//! start, and nothing that one turn does ends the others.

mod closed_stdout;
mod formats;
mod real;
mod talk;

use jackfield_e2e::{Home, wait_for};
use serde_json::json;
use std::{fmt::Write as _, time::Duration};
use talk::Talk;

const ALONE: &[&str] = &["-i", "--isolated"];

#[test]
fn one_process_answers_every_prompt() {
    let home = Home::new();
    let mut talk = Talk::start(&home, ALONE, &[]);
    let first = talk.turn("pid");
    assert!(first.starts_with("pid "), "{first}");
    assert_eq!(talk.turn("think"), "\n", "a turn of thoughts only ends like any other");
    assert_eq!(talk.turn("pid"), first);
    assert_eq!(talk.turn("count"), "count 4\n\n");
    let ended = talk.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("think "), "{}", ended.stderr);
}

#[test]
fn through_the_daemon_it_is_one_session_and_it_is_closed_at_the_end() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let mut talk = Talk::start(&home, &["-i"], &[]);
    let first = talk.turn("pid");
    assert_eq!(talk.turn("pid"), first);
    let ended = talk.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let listed = home.run(&["sessions", "list", "--format", "json"], Duration::from_secs(20));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!((&sessions[0]["state"], &sessions[0]["turns"]), (&"closed".into(), &2.into()));
    wait_for("the agent to go", Duration::from_secs(10), || {
        home.alive(&[daemon.pid()]).is_empty().then_some(())
    });
}

#[test]
fn a_session_that_attach_opened_stays_and_another_command_goes_on_with_it() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    let agent = home.fake_agent(&[]);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let mut opened = Talk::begin(&home, &[&["attach", "--new", "--"], &agent[..]].concat());
    opened.say("pid");
    opened.hear("pid ", 1);
    let first = opened.finish();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let session = first.stderr.split_whitespace().find(|it| it.starts_with("s-")).unwrap();
    let mut again = Talk::begin(&home, &["attach", session, "--format", "quiet"]);
    again.say("pid");
    again.hear("pid ", 1);
    assert_eq!(again.finish().stdout, first.stdout, "the same process");
    let mut run = Talk::begin(&home, &["run", "-i", "-s", session]);
    assert_eq!(run.turn("count"), "count 3\n\n");
    assert_eq!(run.finish().code, Some(0));
    let closed = home.run(&["sessions", "close", session], Duration::from_secs(20));
    assert!(closed.status.success());
    wait_for("the agent to go", Duration::from_secs(10), || {
        home.alive(&[daemon.pid()]).is_empty().then_some(())
    });
}

#[test]
fn a_turn_that_is_cancelled_ends_and_the_same_process_goes_on() {
    let home = Home::new();
    let mut talk = Talk::start(&home, ALONE, &[]);
    let first = talk.turn("pid");
    talk.say("slow 1 1 then hang");
    talk.hear("slow 1 ", 1);
    talk.interrupt();
    talk.hear("slow 1 \n\n", 1);
    talk.hear_aside("error: the turn was canceled");
    assert_eq!(talk.turn("pid"), first);
    let ended = talk.finish();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
}

#[test]
fn a_cancel_on_stdin_does_the_same() {
    let home = Home::new();
    let args = ["-i", "--isolated", "--input", "json"];
    let mut talk = Talk::start(&home, &args, &[]);
    let first = talk.turn(r#"{"prompt":"pid"}"#);
    talk.say(r#"{"prompt":[{"type":"text","text":"slow 1 1 then hang"}]}"#);
    talk.hear("slow 1 ", 1);
    talk.say(r#"{"type":"cancel"}"#);
    talk.hear("slow 1 \n\n", 1);
    talk.hear_aside("error: the turn was canceled");
    assert_eq!(talk.turn(r#"{"prompt":"pid"}"#), first);
    assert_eq!(talk.finish().code, Some(130));
}

#[test]
fn an_agent_that_dies_is_told_and_the_next_prompt_wakes_another() {
    let home = Home::new();
    let state = home.path().join("agent");
    std::fs::create_dir(&state).unwrap();
    let mut talk = Talk::start(&home, ALONE, &["--state", state.to_str().unwrap()]);
    let first = talk.turn("pid");
    talk.turn("die 7");
    talk.hear_aside("exit status 7");
    let second = talk.turn("pid");
    assert!(second.starts_with("pid ") && second != first, "{first} {second}");
    let ended = talk.finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

#[test]
fn more_prompts_than_may_wait_all_run_in_order() {
    let home = Home::new();
    let mut talk = Talk::start(&home, ALONE, &[]);
    let (mut lines, mut answers) = (String::new(), String::new());
    for number in 1..=100 {
        writeln!(lines, "number {number}").unwrap();
        write!(answers, "you said: number {number}\n\n").unwrap();
    }
    talk.say(lines.trim_end());
    let ended = talk.finish();
    assert_eq!((ended.code, ended.stdout), (Some(0), answers), "{}", ended.stderr);
}

#[test]
fn ctrl_c_while_nothing_runs_leaves_in_peace() {
    let home = Home::new();
    let mut talk = Talk::start(&home, ALONE, &[]);
    talk.turn("hello");
    talk.interrupt();
    let ended = talk.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn what_is_no_protocol_is_passed_by() {
    let home = Home::new();
    let flags = ["--banner", "--crlf"];
    let mut talk = Talk::start(&home, ALONE, &flags);
    assert_eq!(talk.turn("junk then count"), "count 1\n\n");
    assert_eq!(talk.turn("junk then complaints"), "complaints 0: \n\n");
    let ended = talk.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stdout.contains("Welcome"), "{}", ended.stdout);
}

#[test]
fn the_command_sees_the_environment_of_the_caller() {
    let home = Home::new();
    let _daemon = home.serve(&[]);
    for args in [&["-i"][..], ALONE] {
        let mut talk = Talk::start(&home, args, &[]);
        assert_eq!(talk.turn("env SOME_API_KEY"), "SOME_API_KEY=not-for-everyone\n\n");
        assert_eq!(talk.turn("env JACKFIELD_STATE_DIR"), "JACKFIELD_STATE_DIR is not set\n\n");
        assert_eq!(talk.finish().code, Some(0));
    }
}

#[test]
fn an_agent_that_does_not_start_is_given_up_and_leaves_nothing_behind() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    for (silent, waited) in [("initialize", "to start"), ("new", "to open a session")] {
        for alone in [&[][..], &["--isolated"]] {
            let args = [&["--start-timeout", "1", "hello"][..], alone].concat();
            let ended = Talk::start(&home, &args, &["--silent", silent]).finish();
            assert_eq!(ended.code, Some(3), "{}", ended.stderr);
            let told = ["did not start within 1 s", waited, "hint: allow more time with `--start"];
            assert!(told.iter().all(|it| ended.stderr.contains(it)), "{}", ended.stderr);
            wait_for("the agent to go", Duration::from_secs(20), || {
                home.alive(&[daemon.pid()]).is_empty().then_some(())
            });
        }
    }
}

#[test]
fn model_mode_and_reasoning_are_set_before_the_first_prompt() {
    let home = Home::new();
    let wishes = ["-m", "FAKE-SMART", "--mode", "plan", "--reasoning", "high"];
    let mut talk = Talk::start(&home, &[ALONE, &wishes].concat(), &[]);
    assert_eq!(
        talk.turn("model then mode then effort"),
        "model fake-smartmode planeffort high\n\n"
    );
    assert_eq!(talk.finish().code, Some(0));
    let refused = Talk::start(&home, &["--isolated", "-m", "other", "hello"], &[]).finish();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("| fake-fast\n  | fake-smart\n"), "{}", refused.stderr);
}

#[test]
fn an_image_reaches_the_agent() {
    let home = Home::new();
    std::fs::write(home.path().join("a.gif"), b"GIF89a").unwrap();
    let args = ["--isolated", "--image", "a.gif", "params"];
    let ended = Talk::start(&home, &args, &[]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let params = ended.stdout.strip_prefix("params ").unwrap();
    let params: serde_json::Value = serde_json::from_str(params).unwrap();
    let image = serde_json::json!({ "type": "image", "mimeType": "image/gif", "data": "R0lGODlh" });
    assert_eq!(params["prompt"][1], image);
}

/// Each of them finds the session closed and wakes it, so each would close it at its end.
#[test]
fn commands_that_share_a_session_do_not_close_it_under_each_other() {
    let home = Home::new();
    let _daemon = home.serve(&[]);
    let state = home.path().join("memory");
    let agent = home.fake_agent(&["--state", state.to_str().unwrap()]);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let bound = Duration::from_secs(30);
    let first = home.run(&[&["run", "hello", "--"][..], &agent].concat(), bound);
    assert!(first.status.success(), "{first:?}");
    let listed = home.run(&["sessions", "list", "--format", "quiet"], bound);
    let session = String::from_utf8(listed.stdout).unwrap().trim().to_owned();

    let run = |prompt: &str| home.run(&["run", "-s", &session, prompt], bound);
    let results: Vec<_> = std::thread::scope(|scope| {
        let prompts = ["slow 5 20", "slow 40 20", "slow 20 20"];
        let started = prompts.map(|prompt| scope.spawn(move || run(prompt)));
        started.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for result in &results {
        assert!(result.status.success(), "{result:?}");
    }

    // An editor is attached and has a prompt that waits behind the one of a command.
    let mut editor = home.dial();
    editor.hello();
    editor.result("session/resume", &json!({ "sessionId": session, "cwd": home.path() }));
    std::thread::scope(|scope| {
        let command = scope.spawn(|| run("slow 20 20"));
        wait_for("the turn of the command", bound, || {
            let rows = home.run(&["ps", "--format", "json"], bound);
            String::from_utf8_lossy(&rows.stdout).contains("\"working\"").then_some(())
        });
        let queued = editor.send_prompt(&session, "slow 20 20");
        assert!(command.join().unwrap().status.success());
        assert_eq!(editor.answer(queued)["result"]["stopReason"], "end_turn");
    });
    assert_eq!(editor.prompt(&session, "count"), "end_turn", "it is open as long as it is used");
}
