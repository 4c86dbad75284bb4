//! Behavior that does not depend on the dialect: pace, failures, the log, connections.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use jackfield_test_support::fake_model::FakeModel;
use serde_json::json;

use super::http::{BOUND, CHAT, Http, streamed, wait_until};

#[test]
fn errors_are_chosen_by_word_prefix_and_fail_next() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let response = http.prompt("ERR429 please");
    assert_eq!(response.status, 429);
    assert!(response.head.contains("retry-after: 1"));
    assert_eq!(response.json()["error"]["code"], "rate_limit_exceeded");
    assert_eq!(http.prompt("ERR500ONCE").status, 500);
    assert_eq!(http.prompt("ERR500ONCE").status, 200);
    let path = "/e401/v1/chat/completions";
    assert_eq!(http.call("POST", path, &streamed(&[("user", "hello")])).status, 401);
    model.fail_next(529, 1);
    assert_eq!(http.prompt("hello").status, 529);
    http.call("POST", "/_ctl", &json!({"error": 503, "count": 1}));
    assert_eq!(http.prompt("hello").status, 503);
    assert_eq!(http.prompt("hello").status, 200);
}

#[test]
fn only_models_and_the_log_are_served() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let list = http.call("GET", "/any/v1/models", &json!(null)).json();
    assert_eq!(list["data"][0]["id"], "fake-model");
    assert_eq!(http.call("GET", "/v1/models/other", &json!(null)).json()["id"], "other");
    assert_eq!(http.call("GET", "/v1/nothing", &json!(null)).status, 404);
    let log = http.call("GET", "/_log?since=2", &json!(null)).json();
    assert_eq!(log, json!([{"method": "GET", "path": "/v1/nothing", "i": 2}]));
}

#[test]
fn chunked_request_is_read_completely() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let body = streamed(&[("user", "ECHO chunked")]).to_string();
    let (first, second) = body.split_at(17);
    let head = format!("POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let request = [head, chunk(first), chunk(second), chunk("")].concat();
    http.0.get_mut().write_all(request.as_bytes()).unwrap();
    assert_eq!(http.response().joined_deltas("content"), "chunked");
}

#[test]
fn cut_response_ends_in_the_middle() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    http.send("POST", CHAT, &streamed(&[("user", "CUT")]).to_string());
    let mut rest = String::new();
    http.0.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("from") && !rest.contains("model."), "{rest}");
    wait_until("the log has the end", || model.log()[0]["end"] == "gone");
}

#[test]
fn slow_response_detects_that_its_client_disconnected() {
    let model = FakeModel::start();
    for word in ["SLOW", "HANG"] {
        let mut http = Http::connect(model.addr);
        http.send("POST", CHAT, &streamed(&[("user", word)]).to_string());
        http.head();
        while !http.line().contains(if word == "SLOW" { "tick-2 " } else { "Hello" }) {}
        http.0.get_ref().shutdown(Shutdown::Both).unwrap();
    }
    wait_until("both are gone", || model.log().iter().all(|it| it["end"] == "gone"));
}

/// A request with the same line in every dialect.
fn in_every_dialect(line: &str) -> [(&'static str, String); 4] {
    let chat = streamed(&[("user", line)]);
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": line}]}]});
    let responses = json!({"input": line, "stream": true});
    let gemini_path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    [(CHAT, &chat), ("/messages", &chat), ("/responses", &responses), (gemini_path, &gemini)]
        .map(|(path, body)| (path, body.to_string()))
}

#[test]
fn every_dialect_is_slow_hangs_and_is_cut() {
    let model = FakeModel::start();
    for (word, last, never) in
        [("SLOW", "tick-2 ", "tick-50 "), ("HANG", "Hello", "from"), ("CUT", " from", " the")]
    {
        for (path, body) in in_every_dialect(word) {
            let mut http = Http::connect(model.addr);
            http.send("POST", path, &body);
            let mut received = http.head();
            while !received.contains(last) {
                let line = http.line();
                assert!(!line.is_empty(), "{path} ended early: {received}");
                received.push_str(&line);
            }
            if word == "CUT" {
                http.0.read_to_string(&mut received).unwrap();
            }
            assert!(!received.contains(never), "{path} {word}: {received}");
            http.0.get_ref().shutdown(Shutdown::Both).unwrap_or_default();
        }
    }
    wait_until("all are gone", || model.log().iter().all(|it| it["end"] == "gone"));
    assert_eq!(model.log().len(), 12);
}

#[test]
fn every_dialect_fails_by_prefix_and_counts_turns() {
    let model = FakeModel::start();
    for (path, body) in in_every_dialect("COUNT") {
        let mut http = Http::connect(model.addr);
        http.send("POST", path, &body);
        assert!(http.response().body.contains(" user"), "{path}");
        http.send("POST", &format!("/e403{path}"), &body);
        assert_eq!(http.response().status, 403, "{path}");
    }
    assert!(model.log().iter().all(|it| it["userTurns"] == 1 && it["testKey"] == true));
}

#[test]
fn head_request_gets_a_head_and_key_is_found_in_every_place() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    http.send("HEAD", "/anything", "");
    assert!(http.head().starts_with("HTTP/1.1 200 OK"));
    let body = json!({"input": "hello"}).to_string();
    let places = [
        ("/responses", "x-api-key: test-key", true),
        ("/responses", "x-goog-api-key: test-key", true),
        ("/responses?key=test-key", "accept: */*", true),
        ("/responses", "x-api-key: something else", false),
        ("/responses", "accept: */*", false),
    ];
    for (path, header, is_ours) in places {
        http.send_with("POST", path, header, &body);
        http.response();
        assert_eq!(model.log().last().unwrap()["testKey"], is_ours, "{path} {header}");
    }
}

#[test]
fn dropped_server_closes_every_connection() {
    let model = FakeModel::start();
    let (addr, mut idle) = (model.addr, Http::connect(model.addr));
    assert_eq!(idle.prompt("hello").status, 200);
    let mut hanging = Http::connect(addr);
    hanging.send("POST", CHAT, &streamed(&[("user", "HANG")]).to_string());
    hanging.head();
    let start = Instant::now();
    drop(model);
    assert!(start.elapsed() < BOUND);
    assert_eq!(idle.line(), "");
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn program_prints_its_address_and_exits_at_end_of_stdin() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fake-model"))
        .arg("--until-eof")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("http://").unwrap().parse().unwrap();
    assert_eq!(Http::connect(addr).prompt("hello").status, 200);
    drop(child.stdin.take());
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if BOUND < start.elapsed() {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
}
