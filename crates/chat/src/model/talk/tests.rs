//! Tests of a model over real HTTP: every trouble of the table, every defect of a stream, and a
//! cancel at every byte.

use super::Model;
use crate::{
    Settings,
    model::{Answer, Ask, Delta, Trouble},
};
use jackfield_testkit::scripted_model::{Reply, ScriptedModel};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Long enough for a machine that does much else.
const MAX: Duration = Duration::from_secs(20);

fn settings(url: &str) -> Settings {
    let (mut settings, _) = Settings::read(|_| None);
    settings.base_url = url.to_owned();
    settings.api_key = "a-plain-key".to_owned();
    settings
}

fn model(server: &ScriptedModel) -> Model {
    Model::new(&settings(&server.url())).unwrap()
}

fn ask() -> Ask {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    Ask {
        model: "m".to_owned(),
        messages: vec![json!({"role": "user", "content": "hi"})],
        tools: vec![tool("read")],
        effort: None,
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    run_for(MAX, future)
}

fn run_for<T>(max: Duration, future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(max, future).await.expect("it ends in time") })
}

/// What comes of one question.
fn asked(steps: impl IntoIterator<Item = Reply>) -> Result<Answer, Trouble> {
    let server = ScriptedModel::start(steps);
    run(model(&server).ask(&ask(), |_| {}))
}

fn said(step: Reply) -> String {
    asked([step]).unwrap().text
}

/// The trouble with this server, with `URL` for its address.
fn trouble(steps: impl IntoIterator<Item = Reply>) -> String {
    let server = ScriptedModel::start(steps);
    let trouble = run(model(&server).ask(&ask(), |_| {})).unwrap_err().to_string();
    trouble.replace(&format!("{}/chat/completions", server.url()), "URL")
}

#[test]
fn an_answer_is_heard_while_it_comes() {
    let server = ScriptedModel::start([Reply::say("Hello from here.")]);
    let mut heard = Vec::new();
    let answer = run(model(&server).ask(&ask(), |delta| heard.push(format!("{delta:?}")))).unwrap();
    assert_eq!((answer.text.as_str(), heard.len()), ("Hello from here.", 3));
    assert_eq!(answer.tokens.map(|it| (it.input, it.output)), Some((10, 5)));
    let request = &server.asked()[0];
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(request.header("authorization"), Some("Bearer a-plain-key"));
    assert_eq!(request.body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn calls_come_with_their_arguments() {
    let answer = asked([Reply::calls(&[("read", r#"{"p":"é"}"#), ("list", "{}")])]).unwrap();
    let calls: Vec<_> = answer.calls.iter().map(|it| (&*it.name, &*it.arguments)).collect();
    assert_eq!(calls, [("read", r#"{"p":"é"}"#), ("list", "{}")]);
}

#[test]
fn every_refusal_is_told_word_for_word_with_the_servers_own_words_behind_it() {
    let told = |status: u16| {
        let body = r#"{"error":{"message":"because a-plain-key"}}"#;
        trouble([Reply::status(status).header("retry-after", "60").body(body)])
    };
    let auth = "Authentication error (HTTP 401) calling URL. Check your OPENAI_API_KEY.";
    assert_eq!(told(401), format!("{auth}\nbecause ***"));
    assert_eq!(told(403), format!("{}\nbecause ***", auth.replace("401", "403")));
    let rate = "Rate limit exceeded (HTTP 429) calling URL. Please retry later.";
    assert_eq!(told(429), format!("{rate}\nbecause ***"));
    for status in [500, 503] {
        assert_eq!(told(status), format!("Server error (HTTP {status}) from URL.\nbecause ***"));
    }
    assert_eq!(told(404), "HTTP error (404) from URL.\nbecause ***");
    assert_eq!(trouble([Reply::status(418)]), "HTTP error (418) from URL.");
    assert_eq!(trouble([Reply::stream()]), "No response body from URL.");
}

#[test]
fn a_server_that_is_not_there_is_a_network_error() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", gone.local_addr().unwrap());
    drop(gone);
    let model = Model::new(&settings(&url)).unwrap();
    let began = Instant::now();
    let trouble = run(model.ask(&ask(), |_| {})).unwrap_err().to_string();
    assert!(trouble.starts_with(&format!("Network error connecting to {url}/chat/completions: ")));
    assert!(trouble.to_lowercase().contains("refused"), "{trouble}");
    assert!(Duration::from_secs(3) < began.elapsed(), "it was tried again");
}

#[test]
fn a_cut_in_the_middle_is_a_network_error_and_not_an_answer() {
    let half = Reply::stream().delta(&json!({"content": "half"}));
    let told = trouble([half.clone().cut()]);
    assert!(told.starts_with("Network error connecting to URL: "), "{told}");
    // A body that ends with its connection has no other end.
    assert_eq!(said(half.closing().cut()), "half");
}

#[test]
fn streams_of_all_kinds_are_read() {
    let chunk = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let (a, b) = (chunk("a"), chunk("b"));
    for (what, body) in [
        ("CRLF", format!("data: {a}\r\n\r\ndata: {b}\r\n\r\ndata: [DONE]\r\n\r\n")),
        ("CR", format!("data: {a}\r\rdata: {b}\r\rdata: [DONE]\r\r")),
        ("no space", format!("data:{a}\n\ndata:{b}\n\ndata:[DONE]\n\n")),
        ("comments", format!(": hi\n\ndata: {a}\n\n: still here\ndata: {b}\n\ndata: [DONE]\n\n")),
        ("other fields", format!("event: x\nid: 1\nretry: 9\ndata: {a}\n\nwhat\ndata: {b}\n\n")),
        ("a byte order mark", format!("\u{feff}data: {a}\n\ndata: {b}\n\n")),
        (
            "several lines",
            format!("data: {{\"choices\":\ndata: []}}\n\ndata: {a}\n\ndata: {b}\n\n"),
        ),
        ("no end", format!("data: {a}\n\ndata: {b}")),
        ("bad JSON", format!("data: {a}\n\ndata: {{oops\n\ndata: {b}\n\ndata: [DONE]\n\n")),
        ("no choices", format!("data: {{\"choices\":[]}}\n\ndata: {a}\n\ndata: {b}\n\n")),
        (
            "words behind the end",
            format!("data: {a}\n\ndata: {b}\n\ndata: [DONE]\n\ndata: {a}\n\n"),
        ),
    ] {
        assert_eq!(said(Reply::stream().body(&body)), "ab", "{what}");
        let bytes = body.bytes().fold(Reply::stream(), |it, byte| it.bytes(&[byte]));
        assert_eq!(said(bytes), "ab", "{what}, byte by byte");
        // The type is told wrong by some.
        let text = Reply::status(200).header("content-type", "application/json").body(&body);
        assert_eq!(said(text), "ab", "{what}, as JSON");
    }
}

#[test]
fn a_whole_answer_will_do() {
    let whole = json!({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]});
    assert_eq!(said(Reply::json(&whole)), "ab");
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    assert_eq!(said(Reply::stream().body(&format!("\n {pretty}\n"))), "ab");
}

#[test]
fn an_error_in_the_stream_is_told() {
    let begun = || Reply::stream().delta(&json!({"content": "half"}));
    let told = trouble([begun().data(r#"{"error":{"message":"out of memory"}}"#)]);
    assert_eq!(told, "Server error in the stream from URL.\nout of memory");
    let told = trouble([begun().data(r#"{"error":{"message":"slow down","code":429}}"#)]);
    assert!(told.starts_with("Rate limit exceeded (HTTP 429) calling URL."), "{told}");
    let told = trouble([Reply::json(&json!({"error": {"message": "no model"}}))]);
    assert_eq!(told, "Server error in the stream from URL.\nno model");
}

#[test]
fn what_is_no_chat_completions_is_told() {
    let foreign =
        "The response from URL is no Chat Completions answer. Check your OPENAI_BASE_URL.";
    for body in ["<html>hello</html>", "hello", r#"{"models":[]}"#, "{broken"] {
        assert_eq!(trouble([Reply::status(200).body(body)]), foreign, "{body}");
    }
}

#[test]
fn a_busy_server_is_asked_again_and_no_longer_than_it_makes_sense() {
    let busy = |status| Reply::status(status).header("retry-after", "0");
    let steps = [busy(429), busy(502), busy(503), Reply::say("at last")];
    assert_eq!(asked(steps).unwrap().text, "at last");
    let steps = [busy(503), busy(503), busy(503), busy(504), Reply::say("too late")];
    assert_eq!(trouble(steps), "Server error (HTTP 504) from URL.");
    let later = Reply::status(429).header("retry-after", "31");
    assert!(trouble([later, Reply::say("too late")]).starts_with("Rate limit exceeded"));
    let steps = [busy(500), Reply::say("too late")];
    assert_eq!(trouble(steps), "Server error (HTTP 500) from URL.");
    // What has begun is not begun again.
    let begun = Reply::stream().delta(&json!({"content": "half"})).cut();
    assert!(trouble([begun, Reply::say("again")]).starts_with("Network error"));
}

#[test]
fn a_field_the_server_does_not_know_is_left_out_and_stays_out() {
    let refusal = |said: &str| Reply::status(400).body(said);
    let server = ScriptedModel::start([
        refusal("Unrecognized request argument supplied: stream_options"),
        refusal(r#"{"error":{"message":"m does not support tools"}}"#),
        Reply::say("ok"),
        Reply::say("ok"),
    ]);
    let model = model(&server);
    assert!(!model.refuses_tools("m"));
    for _ in 0..2 {
        assert_eq!(run(model.ask(&ask(), |_| {})).unwrap().text, "ok");
    }
    assert!(model.refuses_tools("m"));
    let has = |at: usize, field: &str| server.asked()[at].body.get(field).is_some();
    let sent: Vec<_> = (0..4).map(|at| (has(at, "stream_options"), has(at, "tools"))).collect();
    assert_eq!(sent, [(true, true), (false, true), (false, false), (false, false)]);
}

#[test]
fn a_silent_server_is_given_up() {
    let limited = |steps: Vec<Reply>, first_ms, idle_ms| {
        let server = ScriptedModel::start(steps);
        let mut settings = settings(&server.url());
        settings.first_token_max = Duration::from_millis(first_ms);
        settings.idle_max = Duration::from_millis(idle_ms);
        let model = Model::new(&settings).unwrap();
        let trouble = run(model.ask(&ask(), |_| {})).unwrap_err().to_string();
        assert!(server.wait_gone(1, MAX), "the connection was closed");
        trouble
    };
    let long = 60_000;
    let role = Reply::stream().delta(&json!({"role": "assistant", "content": ""}));
    let before = limited(vec![role.hang()], 100, long);
    assert!(before.contains("within 0.1 s") && before.contains("FIRST_TOKEN_SECS"), "{before}");
    let word = Reply::stream().delta(&json!({"content": "a"}));
    let between = limited(vec![word.clone().hang()], long, 100);
    assert!(between.contains("within 0.1 s") && between.contains("IDLE_SECS"), "{between}");
    // Somebody on the way says that the line is open, and nobody talks.
    let beat = (0..600).fold(word, |it, _| it.body(": beat\n\n").pause(Duration::from_millis(20)));
    let between = limited(vec![beat], long, 300);
    assert!(between.contains("IDLE_SECS"), "{between}");
}

#[test]
fn a_key_does_not_follow_to_another_server() {
    let other = ScriptedModel::start([Reply::say("give me the key")]);
    let place = format!("{}/chat/completions", other.url());
    let told = trouble([Reply::status(307).header("location", &place)]);
    assert!(told.starts_with("HTTP error (307) from URL.\nIt points to http://127"), "{told}");
    assert_eq!(other.left(), 1);
    let stays = Reply::status(308).header("location", "/v1/chat/completions?again");
    assert_eq!(asked([stays, Reply::say("ok")]).unwrap().text, "ok");
}

#[test]
fn models_are_listed_and_troubles_told() {
    let server = ScriptedModel::start([]);
    let model = model(&server);
    let none = run(model.models()).unwrap_err().to_string();
    assert_eq!(none, format!("HTTP error (404) from {}/models.", server.url()));
    server.serve_models(&json!({"data": [{"id": "m", "max_model_len": 8192}]}));
    let listed = run(model.models()).unwrap();
    assert_eq!((listed[0].id.as_str(), listed[0].window), ("m", Some(8192)));
    server.serve_models(&json!({"no": "list"}));
    assert!(run(model.models()).unwrap_err().to_string().contains("no Chat Completions"));
}

#[test]
fn a_cancel_in_an_answer_closes_the_connection_and_the_next_question_is_answered() {
    cancel_after_bytes(23);
}

#[test]
#[ignore = "nightly: every byte takes long; every 23rd is tried with every change"]
fn a_cancel_at_every_byte_closes_the_connection_and_the_next_question_is_answered() {
    cancel_after_bytes(1);
}

/// Cancels one question after the other, each after `step` more bytes of the answer than the last.
fn cancel_after_bytes(step: usize) {
    let call = Reply::call("read", r#"{"p":"é"}"#).to_bytes();
    let stream = [&Reply::say("Hello é you").to_bytes()[..], b": beat\r\n\r\n", &call].concat();
    let end = stream.windows(6).position(|it| it == b"[DONE]").unwrap();
    let server = ScriptedModel::start([]);
    let model = model(&server);
    run_for(Duration::from_mins(5), async {
        for (count, at) in (0..end).step_by(step).enumerate() {
            server.then(Reply::stream().bytes(&stream[..at]).hang());
            let (tell, mut told) = mpsc::channel(64);
            let question = ask();
            let asking = model.ask(&question, |delta: Delta<'_>| {
                let _ = tell.try_send(format!("{delta:?}"));
            });
            // Dropped when the server has sent all it will, whatever of it has been read.
            tokio::select! {
                ended = asking => panic!("at {at}: {ended:?}"),
                () = until(|| server.asked().len() == count + 1) => {}
            }
            assert!(until_gone(&server, count + 1).await, "at {at}");
            while told.try_recv().is_ok() {}
        }
        server.then(Reply::say("next"));
        assert_eq!(model.ask(&ask(), |_| {}).await.unwrap().text, "next");
    });
    assert_eq!(server.gone(), end.div_ceil(step));
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Closing is done by a task of the client, which must be let run.
async fn until_gone(server: &ScriptedModel, count: usize) -> bool {
    tokio::time::timeout(MAX, until(|| count <= server.gone())).await.is_ok()
}

#[test]
fn a_question_that_nobody_has_answered_yet_is_cancelled_too() {
    let server = ScriptedModel::start([Reply::stream().hang(), Reply::say("next")]);
    let model = model(&server);
    run(async {
        let question = ask();
        tokio::select! {
            ended = model.ask(&question, |_| {}) => panic!("{ended:?}"),
            () = until(|| server.asked().len() == 1) => {}
        }
        assert!(until_gone(&server, 1).await);
        assert_eq!(model.ask(&question, |_| {}).await.unwrap().text, "next");
    });
}

#[test]
fn what_is_still_asked_ends_with_the_runtime() {
    let server = ScriptedModel::start([Reply::stream().delta(&json!({"content": "a"})).hang()]);
    let model = model(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.spawn(async move { model.ask(&ask(), |_| {}).await });
    runtime.block_on(until(|| server.asked().len() == 1));
    drop(runtime);
    assert!(server.wait_gone(1, MAX));
}

/// The class of a trouble is decided by the status alone.
#[test]
fn a_status_decides_the_class() {
    let server = ScriptedModel::start([]);
    let model = model(&server);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(256));
    let cases = (400_u16..600, "[a-z<{\" ]{0,20}");
    let checked = runner.run(&cases, |(status, body)| {
        server.then(Reply::status(status).header("retry-after", "99").body(&body));
        let told = run(model.ask(&ask(), |_| {})).unwrap_err().to_string();
        let url = format!("{}/chat/completions", server.url());
        let start = match status {
            401 | 403 => format!("Authentication error (HTTP {status}) calling {url}."),
            429 => format!("Rate limit exceeded (HTTP 429) calling {url}."),
            500.. => format!("Server error (HTTP {status}) from {url}."),
            _ => format!("HTTP error ({status}) from {url}."),
        };
        prop_assert!(told.starts_with(&start), "{}", told);
        Ok(())
    });
    checked.unwrap();
}
