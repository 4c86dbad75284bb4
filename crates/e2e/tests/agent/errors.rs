//! Errors of the model: the turn fails with a message that depends only on the kind of error, and the
//! conversation goes on. A bridge sends the message as the answer.

use super::{Desk, Serves, must_be_sound};
use jackfield_e2e::{Home, home::finish};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use std::{
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    time::{Duration, Instant},
};

/// The table: `URL` is where the model was asked.
const TABLE: [(u16, &str); 7] = [
    (401, "Authentication error (HTTP 401) calling URL. Check your OPENAI_API_KEY."),
    (403, "Authentication error (HTTP 403) calling URL. Check your OPENAI_API_KEY."),
    (429, "Rate limit exceeded (HTTP 429) calling URL. Please retry later."),
    (500, "Server error (HTTP 500) from URL."),
    (503, "Server error (HTTP 503) from URL."),
    (404, "HTTP error (404) from URL."),
    (418, "HTTP error (418) from URL."),
];

#[test]
fn error_of_the_model_fails_the_turn_and_is_the_answer_of_a_bridge() {
    for is_bridge in [false, true] {
        let variables = [("JACKFIELD_BRIDGE", if is_bridge { "1" } else { "0" })];
        let mut desk = Desk::new(ScriptedModel::start([]), &variables);
        let session = desk.open();
        let url = format!("{}/chat/completions", desk.model.url());
        for (status, message) in TABLE {
            let message = message.replace("URL", &url);
            // The wait exceeds the limit, so the request is not sent again.
            desk.model.then(Reply::status(status).header("retry-after", "3600"));
            desk.model.then(Reply::say("Here I am."));
            let prompt = format!("Fail with {status}");
            if is_bridge {
                let said = desk.turn(&session, &prompt);
                assert_eq!(said, (message, "end_turn".to_owned()));
            } else {
                let failed = desk.failed_turn(&session, &prompt);
                assert_eq!(failed, (String::new(), message));
            }
            let said = desk.turn(&session, "And now?");
            assert_eq!(said, ("Here I am.".to_owned(), "end_turn".to_owned()));
        }
        let asked = desk.model.asked();
        assert_eq!(asked.len(), TABLE.len() * 2, "none was sent again");
        asked.iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
        let last = asked.last().unwrap().body["messages"].to_string();
        assert!(last.contains("Fail with 401\\nAnd now?"), "unanswered prompts are kept: {last}");
        assert!(!last.contains("(HTTP"), "an error is no answer of the model: {last}");
        assert!(desk.said().contains("Authentication error (HTTP 401)"), "it is in the log");
    }
}

#[test]
fn run_reports_an_error_of_the_model_on_stderr_and_fails() {
    let (home, model) =
        (Home::new(), ScriptedModel::start([Reply::status(401).body("no such key")]));
    let mut command = home.command(&["run", "--isolated", "-a", "chat", "Hello"]);
    command.env("OPENAI_BASE_URL", model.url()).env("OPENAI_API_KEY", "test-key");
    let output = finish(command, Duration::from_secs(30));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{stderr}");
    assert!(stderr.contains("Authentication error (HTTP 401) calling "), "{stderr}");
    assert!(stderr.contains("no such key"), "{stderr}");
    assert!(stderr.contains("set OPENAI_API_KEY to a key that the server accepts"), "{stderr}");
}

#[test]
fn servers_own_message_is_reported_without_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: test-key."}}"#;
    let mut desk = Desk::new(ScriptedModel::start([Reply::status(401).body(body)]), &[]);
    let session = desk.open();
    let message = desk.failed_turn(&session, "Hello").1;
    let (ours, theirs) = message.split_once('\n').unwrap();
    assert!(ours.starts_with("Authentication error (HTTP 401) calling "), "{message}");
    assert!(theirs.starts_with("Incorrect API key provided"), "{message}");
    assert!(!message.contains("test-key") && !desk.said().contains("test-key"), "{message}");
}

#[test]
fn a_server_that_asks_for_patience_gets_it_before_the_first_token() {
    let busy = |seconds: &str| Reply::status(429).header("retry-after", seconds);
    let model = ScriptedModel::start([busy("1"), busy("0"), Reply::say("Thank you.")]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    let begin = Instant::now();
    assert_eq!(desk.turn(&session, "Hello").0, "Thank you.");
    let took = begin.elapsed();
    assert!((1..5).contains(&took.as_secs()), "{took:?}");
    // Not for ever.
    for _ in 0..4 {
        desk.model.then(Reply::status(503).header("retry-after", "0"));
    }
    let message = desk.failed_turn(&session, "Hello").1;
    assert!(message.starts_with("Server error (HTTP 503) from "), "{message}");
    assert_eq!(desk.model.asked().len(), 3 + 4);
}

#[test]
fn an_answer_that_breaks_off_is_told_and_not_asked_for_twice() {
    let half = Reply::stream().delta(&serde_json::json!({ "content": "Half " })).cut();
    let mut desk = Desk::new(ScriptedModel::start([half, Reply::say("Whole.")]), &[]);
    let session = desk.open();
    let (said, message) = desk.failed_turn(&session, "Hello");
    assert!(message.starts_with("Network error connecting to"), "{message}");
    assert_eq!((said.as_str(), desk.model.asked().len()), ("Half ", 1));
    assert_eq!(desk.turn(&session, "Again").0, "Whole.");
    let asked = desk.model.asked();
    must_be_sound(&asked[1].body["messages"]);
    assert!(!asked[1].body["messages"].to_string().contains("Half "), "{:?}", asked[1]);
}

/// A port where nothing listens.
struct Nowhere(u16);

impl Serves for Nowhere {
    fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.0)
    }
}

#[test]
fn a_server_that_is_not_there_is_told_and_asked_again_when_it_is() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut desk = Desk::new(Nowhere(port), &[]);
    let session = desk.open();
    let begin = Instant::now();
    let message = desk.failed_turn(&session, "Hello").1;
    let told = format!("Network error connecting to {}/chat/completions: ", desk.model.base_url());
    assert!(message.starts_with(&told) && told.len() < message.len(), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    let model = FakeModel::start_on(port, PathBuf::new()).unwrap();
    assert_eq!(desk.turn(&session, "COUNT").0, "I see 1 user messages.");
    drop(desk);
    drop(model);
}
