//! What goes wrong with a model is told as its answer, in words that are the same for everybody, and
//! the conversation goes on.

use super::{Desk, Serves, must_be_sound};
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
fn every_error_is_told_as_the_answer_and_the_next_prompt_is_answered() {
    let mut desk = Desk::new(ScriptedModel::start([]), &[]);
    let session = desk.open();
    let url = format!("{}/chat/completions", desk.model.url());
    for (status, told) in TABLE {
        // It would take too long to wait for, so it is not waited for.
        desk.model.then(Reply::status(status).header("retry-after", "3600"));
        desk.model.then(Reply::say("Here I am."));
        let (said, stop) = desk.turn(&session, &format!("Fail with {status}"));
        assert_eq!((said, stop.as_str()), (told.replace("URL", &url), "end_turn"));
        let (said, stop) = desk.turn(&session, "And now?");
        assert_eq!((said.as_str(), stop.as_str()), ("Here I am.", "end_turn"));
    }
    let asked = desk.model.asked();
    assert_eq!(asked.len(), TABLE.len() * 2, "none was asked again");
    asked.iter().map(|it| &it.body["messages"]).for_each(must_be_sound);
    let last = asked.last().unwrap().body["messages"].to_string();
    assert!(
        last.contains("Fail with 401\\nAnd now?"),
        "what was not answered is still said: {last}"
    );
    assert!(!last.contains("(HTTP"), "an error is nothing that the model said: {last}");
    assert!(desk.said().contains("Authentication error (HTTP 401)"), "it is in the log too");
}

#[test]
fn what_the_server_says_of_its_error_is_told_behind_ours_without_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: test-key."}}"#;
    let mut desk = Desk::new(ScriptedModel::start([Reply::status(401).body(body)]), &[]);
    let session = desk.open();
    let said = desk.turn(&session, "Hello").0;
    let (ours, theirs) = said.split_once('\n').unwrap();
    assert!(ours.starts_with("Authentication error (HTTP 401) calling "), "{said}");
    assert!(theirs.starts_with("Incorrect API key provided"), "{said}");
    assert!(!said.contains("test-key") && !desk.said().contains("test-key"), "{said}");
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
    let said = desk.turn(&session, "Hello").0;
    assert!(said.starts_with("Server error (HTTP 503) from "), "{said}");
    assert_eq!(desk.model.asked().len(), 3 + 4);
}

#[test]
fn an_answer_that_breaks_off_is_told_and_not_asked_for_twice() {
    let half = Reply::stream().delta(&serde_json::json!({ "content": "Half " })).cut();
    let mut desk = Desk::new(ScriptedModel::start([half, Reply::say("Whole.")]), &[]);
    let session = desk.open();
    let (said, stop) = desk.turn(&session, "Hello");
    assert!(said.starts_with("Half ") && said.contains("Network error connecting to"), "{said}");
    assert_eq!((stop.as_str(), desk.model.asked().len()), ("end_turn", 1));
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
    let (said, stop) = desk.turn(&session, "Hello");
    let told = format!("Network error connecting to {}/chat/completions: ", desk.model.base_url());
    assert!(said.starts_with(&told) && told.len() < said.len(), "{said}");
    assert!(stop == "end_turn" && begin.elapsed() < Duration::from_secs(10));
    let model = FakeModel::start_on(port, PathBuf::new()).unwrap();
    assert_eq!(desk.turn(&session, "COUNT").0, "I see 1 user messages.");
    drop(desk);
    drop(model);
}
