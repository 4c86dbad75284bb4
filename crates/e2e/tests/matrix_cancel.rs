//! Every way in which the fake agent takes a cancel: the turn ends in time and as `cancelled`, once;
//! the next prompt works and knows what was; nothing is left running.

use jackfield_e2e::{Home, procs, wait_for};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const BOUND: Duration = Duration::from_secs(20);

/// The grace of one step of the cancel ladder, in seconds, and what the machine may add.
const GRACE: u64 = 3;
const SLACK: u64 = 1;

/// A name, the agent's flags, what it does, and how many graces pass before it is idle.
type Row = (&'static str, &'static [&'static str], &'static str, u64);

const ROWS: &[Row] = &[
    ("honours", &[], "hang", 0),
    ("answers-late", &["--delay", "cancel", "1500"], "hang", 1),
    ("answers-with-an-error", &["--cancel", "error"], "hang", 0),
    ("keeps-talking", &["--cancel", "keep-streaming"], "slow 20 50", 0),
    ("drains", &["--cancel", "drain"], "slow 40 50", 0),
    ("tool-keeps-running", &[], "spawn then hang", 0),
    ("dies", &["--cancel", "die"], "hang", 0),
    ("ignores", &["--cancel", "ignore"], "hang", 1),
    ("ignores-all", &["--cancel", "ignore", "--cancel-request-ignored"], "hang", 2),
    (
        "ignores-all-and-signals",
        &["--cancel", "ignore", "--cancel-request-ignored", "--ignore-term", "--ignore-eof"],
        "hang",
        2,
    ),
];

#[test]
fn each_way_to_take_a_cancel_ends_in_time_and_the_next_prompt_works() {
    let home = Home::new();
    let daemon = home.serve(&[]);
    std::thread::scope(|scope| {
        for row in ROWS {
            scope.spawn(|| play(&home, row));
        }
    });
    wait_for("every process of an agent to be gone", BOUND, || {
        home.alive(&[daemon.pid()]).is_empty().then_some(())
    });
    daemon.stop();
}

fn play(home: &Home, (name, flags, work, graces): &Row) {
    let state = home.path().join(name);
    let mut flags: Vec<&str> = flags.to_vec();
    flags.extend(["--state", state.to_str().unwrap()]);
    let mut client = home.dial();
    let agent = json!({ "agent": { "name": "fake", "argv": home.fake_agent(&flags) } });
    client.notify("_jackfield/connect", &agent);
    client.hello_aware();
    let id = client.open(home.path());
    client.prompt(&id, "remember 17");
    let prompt = client.send_prompt(&id, work);
    // Everything before this answer has reached the agent.
    client.result("_fake/echo", &json!({ "sessionId": id }));
    let stray = work.starts_with("spawn").then(|| {
        let text = |it: &Value| it.to_string().contains("spawned ");
        let heard = client.heard.iter().find(|it| text(it)).cloned();
        let said = heard.unwrap_or_else(|| client.until("the tool", text));
        let said = said["params"]["update"]["content"]["text"].as_str().unwrap().to_owned();
        said.strip_prefix("spawned ").and_then(|it| it.trim().parse().ok()).expect("a pid")
    });

    let begin = Instant::now();
    client.notify("session/cancel", &json!({ "sessionId": id }));
    let answer = client.answer(prompt);
    let took = begin.elapsed();
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{name}: {answer}");
    let most = Duration::from_secs(graces * GRACE + SLACK);
    assert!(took <= most, "{name}: idle after {took:?}, and {most:?} is allowed");
    if let Some(pid) = stray {
        wait_for("the tool's end", BOUND, || (!procs::is_alive(pid)).then_some(()));
    }

    assert_eq!(client.prompt(&id, "history"), "end_turn", "{name}");
    let text = client.text();
    assert!(text.contains("history: remember 17"), "{name}: {text}");
    let ended = |it: &&Value| it["params"]["is"] == "ended" && it["params"]["turn"] == 2;
    let ends: Vec<&Value> = client.heard.iter().filter(ended).collect();
    assert_eq!(ends.len(), 1, "{name}: {ends:?}");
    assert_eq!(ends[0]["params"]["answer"]["stopReason"], "cancelled", "{name}");
    client.result("session/close", &json!({ "sessionId": id }));
}
