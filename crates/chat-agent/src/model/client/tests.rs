//! Tests of the client over real HTTP: every kind of error, every defect of a stream, and
//! cancellation at every byte.

use super::ModelClient;
use crate::{
    ChatSettings,
    model::{ModelError, ModelRequest, ModelResponse, ResponseDelta},
};
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Long enough for a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn settings(url: &str) -> ChatSettings {
    let (mut settings, _) = ChatSettings::from_variables(|_| None);
    settings.base_url = url.to_owned();
    settings.api_key = "a-plain-key".to_owned();
    settings
}

fn client(server: &ScriptedModel) -> ModelClient {
    ModelClient::new(&settings(&server.url())).unwrap()
}

fn request() -> ModelRequest {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    ModelRequest {
        model: "m".to_owned(),
        messages: vec![json!({"role": "user", "content": "hi"})],
        tools: vec![tool("read")],
        effort: None,
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    run_for(TEST_TIMEOUT, future)
}

fn run_for<T>(max: Duration, future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(max, future).await.expect("the future completes in time")
    })
}

/// Returns the result of one request to a server that gives these replies.
fn send(replies: impl IntoIterator<Item = Reply>) -> Result<ModelResponse, ModelError> {
    let server = ScriptedModel::start(replies);
    run(client(&server).send_request(&request(), |_| {}))
}

fn response_text(reply: Reply) -> String {
    send([reply]).unwrap().text
}

/// Returns the error message, with `URL` for the address of the server.
fn error_message(replies: impl IntoIterator<Item = Reply>) -> String {
    let server = ScriptedModel::start(replies);
    let message = run(client(&server).send_request(&request(), |_| {})).unwrap_err().to_string();
    message.replace(&format!("{}/chat/completions", server.url()), "URL")
}

#[test]
fn response_is_streamed_as_deltas() {
    let server = ScriptedModel::start([Reply::say("Hello from here.")]);
    let mut deltas = Vec::new();
    let response =
        run(client(&server).send_request(&request(), |delta| deltas.push(format!("{delta:?}"))))
            .unwrap();
    assert_eq!((response.text.as_str(), deltas.len()), ("Hello from here.", 3));
    assert_eq!(response.tokens.map(|it| (it.input, it.output)), Some((10, 5)));
    let request = &server.asked()[0];
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(request.header("authorization"), Some("Bearer a-plain-key"));
    assert_eq!(request.body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn calls_have_their_arguments() {
    let response = send([Reply::calls(&[("read", r#"{"p":"é"}"#), ("list", "{}")])]).unwrap();
    let calls: Vec<_> = response.calls.iter().map(|it| (&*it.name, &*it.arguments)).collect();
    assert_eq!(calls, [("read", r#"{"p":"é"}"#), ("list", "{}")]);
}

#[test]
fn error_message_has_exact_text_followed_by_the_server_message() {
    let error_of = |status: u16| {
        let body = r#"{"error":{"message":"because a-plain-key"}}"#;
        error_message([Reply::status(status).header("retry-after", "60").body(body)])
    };
    let auth = "Authentication error (HTTP 401) calling URL. Check your OPENAI_API_KEY.";
    assert_eq!(error_of(401), format!("{auth}\nbecause ***"));
    assert_eq!(error_of(403), format!("{}\nbecause ***", auth.replace("401", "403")));
    let rate = "Rate limit exceeded (HTTP 429) calling URL. Please retry later.";
    assert_eq!(error_of(429), format!("{rate}\nbecause ***"));
    for status in [500, 503] {
        assert_eq!(
            error_of(status),
            format!("Server error (HTTP {status}) from URL.\nbecause ***")
        );
    }
    assert_eq!(error_of(404), "HTTP error (404) from URL.\nbecause ***");
    assert_eq!(error_message([Reply::status(418)]), "HTTP error (418) from URL.");
    assert_eq!(error_message([Reply::stream()]), "No response body from URL.");
}

#[test]
fn unreachable_server_is_a_network_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let client = ModelClient::new(&settings(&url)).unwrap();
    let started = Instant::now();
    let message = run(client.send_request(&request(), |_| {})).unwrap_err().to_string();
    assert!(message.starts_with(&format!("Network error connecting to {url}/chat/completions: ")));
    assert!(message.to_lowercase().contains("refused"), "{message}");
    assert!(Duration::from_secs(3) < started.elapsed(), "the request was retried");
}

#[test]
fn truncated_response_is_a_network_error() {
    let half = Reply::stream().delta(&json!({"content": "half"}));
    let message = error_message([half.clone().cut()]);
    assert!(message.starts_with("Network error connecting to URL: "), "{message}");
    // Without a length, the end of the connection is the regular end of the body.
    assert_eq!(response_text(half.closing().cut()), "half");
}

#[test]
fn all_event_stream_variants_are_read() {
    let chunk = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let (a, b) = (chunk("a"), chunk("b"));
    for (variant, body) in [
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
        ("data after the end", format!("data: {a}\n\ndata: {b}\n\ndata: [DONE]\n\ndata: {a}\n\n")),
    ] {
        assert_eq!(response_text(Reply::stream().body(&body)), "ab", "{variant}");
        let bytes = body.bytes().fold(Reply::stream(), |it, byte| it.bytes(&[byte]));
        assert_eq!(response_text(bytes), "ab", "{variant}, byte by byte");
        // Some servers send the wrong content type.
        let text = Reply::status(200).header("content-type", "application/json").body(&body);
        assert_eq!(response_text(text), "ab", "{variant}, as JSON");
    }
}

#[test]
fn response_without_streaming_is_accepted() {
    let whole = json!({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]});
    assert_eq!(response_text(Reply::json(&whole)), "ab");
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    assert_eq!(response_text(Reply::stream().body(&format!("\n {pretty}\n"))), "ab");
}

#[test]
fn error_in_the_stream_is_reported() {
    let started = || Reply::stream().delta(&json!({"content": "half"}));
    let message = error_message([started().data(r#"{"error":{"message":"out of memory"}}"#)]);
    assert_eq!(message, "Server error in the stream from URL.\nout of memory");
    let message =
        error_message([started().data(r#"{"error":{"message":"slow down","code":429}}"#)]);
    assert!(message.starts_with("Rate limit exceeded (HTTP 429) calling URL."), "{message}");
    let message = error_message([Reply::json(&json!({"error": {"message": "no model"}}))]);
    assert_eq!(message, "Server error in the stream from URL.\nno model");
}

#[test]
fn body_that_is_not_chat_completions_is_reported() {
    let unexpected =
        "The response from URL is not a Chat Completions response. Check your OPENAI_BASE_URL.";
    for body in ["<html>hello</html>", "hello", r#"{"models":[]}"#, "{broken"] {
        assert_eq!(error_message([Reply::status(200).body(body)]), unexpected, "{body}");
    }
}

#[test]
fn busy_server_is_retried_within_limits() {
    let busy = |status| Reply::status(status).header("retry-after", "0");
    let replies = [busy(429), busy(502), busy(503), Reply::say("at last")];
    assert_eq!(send(replies).unwrap().text, "at last");
    let replies = [busy(503), busy(503), busy(503), busy(504), Reply::say("too late")];
    assert_eq!(error_message(replies), "Server error (HTTP 504) from URL.");
    let later = Reply::status(429).header("retry-after", "31");
    assert!(error_message([later, Reply::say("too late")]).starts_with("Rate limit exceeded"));
    let replies = [busy(500), Reply::say("too late")];
    assert_eq!(error_message(replies), "Server error (HTTP 500) from URL.");
    // A response that has started is not retried.
    let started = Reply::stream().delta(&json!({"content": "half"})).cut();
    assert!(error_message([started, Reply::say("again")]).starts_with("Network error"));
}

#[test]
fn rejected_field_is_left_out_of_later_requests() {
    let rejection = |message: &str| Reply::status(400).body(message);
    let server = ScriptedModel::start([
        rejection("Unrecognized request argument supplied: stream_options"),
        rejection(r#"{"error":{"message":"m does not support tools"}}"#),
        Reply::say("ok"),
        Reply::say("ok"),
    ]);
    let client = client(&server);
    assert!(!client.rejects_tools("m"));
    for _ in 0..2 {
        assert_eq!(run(client.send_request(&request(), |_| {})).unwrap().text, "ok");
    }
    assert!(client.rejects_tools("m"));
    let has_field = |at: usize, field: &str| server.asked()[at].body.get(field).is_some();
    let sent: Vec<_> =
        (0..4).map(|at| (has_field(at, "stream_options"), has_field(at, "tools"))).collect();
    assert_eq!(sent, [(true, true), (false, true), (false, false), (false, false)]);
}

#[test]
fn silent_server_times_out() {
    let timeout_message = |replies: Vec<Reply>, first_ms, idle_ms| {
        let server = ScriptedModel::start(replies);
        let mut settings = settings(&server.url());
        settings.first_token_max = Duration::from_millis(first_ms);
        settings.idle_max = Duration::from_millis(idle_ms);
        let client = ModelClient::new(&settings).unwrap();
        let message = run(client.send_request(&request(), |_| {})).unwrap_err().to_string();
        assert!(server.wait_gone(1, TEST_TIMEOUT), "the connection was closed");
        message
    };
    let long = 60_000;
    let role = Reply::stream().delta(&json!({"role": "assistant", "content": ""}));
    let before = timeout_message(vec![role.hang()], 100, long);
    assert!(before.contains("within 0.1 s") && before.contains("FIRST_TOKEN_SECS"), "{before}");
    let word = Reply::stream().delta(&json!({"content": "a"}));
    let between = timeout_message(vec![word.clone().hang()], long, 100);
    assert!(between.contains("within 0.1 s") && between.contains("IDLE_SECS"), "{between}");
    // A proxy keeps the connection open with comments, but the server sends nothing.
    let comments =
        (0..600).fold(word, |it, _| it.body(": beat\n\n").pause(Duration::from_millis(20)));
    let between = timeout_message(vec![comments], long, 300);
    assert!(between.contains("IDLE_SECS"), "{between}");
}

#[test]
fn key_is_not_sent_to_another_origin_on_redirect() {
    let other = ScriptedModel::start([Reply::say("give me the key")]);
    let location = format!("{}/chat/completions", other.url());
    let message = error_message([Reply::status(307).header("location", &location)]);
    assert!(
        message.starts_with("HTTP error (307) from URL.\nIt redirects to http://127"),
        "{message}"
    );
    assert_eq!(other.left(), 1);
    let same_origin = Reply::status(308).header("location", "/v1/chat/completions?again");
    assert_eq!(send([same_origin, Reply::say("ok")]).unwrap().text, "ok");
}

#[test]
fn models_are_listed_and_errors_reported() {
    let server = ScriptedModel::start([]);
    let client = client(&server);
    let message = run(client.list_models()).unwrap_err().to_string();
    assert_eq!(message, format!("HTTP error (404) from {}/models.", server.url()));
    server.serve_models(&json!({"data": [{"id": "m", "max_model_len": 8192}]}));
    let listed = run(client.list_models()).unwrap();
    assert_eq!((listed[0].id.as_str(), listed[0].window), ("m", Some(8192)));
    server.serve_models(&json!({"no": "list"}));
    assert!(run(client.list_models()).unwrap_err().to_string().contains("not a Chat Completions"));
}

#[test]
fn cancel_at_some_bytes_closes_the_connection_and_the_next_request_works() {
    cancel_after_bytes(23);
}

#[test]
#[ignore = "nightly: testing every byte is slow; CI tests every 23rd byte"]
fn cancel_at_every_byte_closes_the_connection_and_the_next_request_works() {
    cancel_after_bytes(1);
}

/// Cancels one request after the other, each after `step` more bytes of the response than the last.
fn cancel_after_bytes(step: usize) {
    let call = Reply::call("read", r#"{"p":"é"}"#).to_bytes();
    let stream = [&Reply::say("Hello é you").to_bytes()[..], b": beat\r\n\r\n", &call].concat();
    let end = stream.windows(6).position(|it| it == b"[DONE]").unwrap();
    let server = ScriptedModel::start([]);
    let client = client(&server);
    run_for(Duration::from_mins(5), async {
        for (count, at) in (0..end).step_by(step).enumerate() {
            server.then(Reply::stream().bytes(&stream[..at]).hang());
            let (sender, mut receiver) = mpsc::channel(64);
            let request = request();
            let sending = client.send_request(&request, |delta: ResponseDelta<'_>| {
                let _ = sender.try_send(format!("{delta:?}"));
            });
            // The request is dropped once the server has sent everything, no matter how much was
            // read.
            tokio::select! {
                ended = sending => panic!("at {at}: {ended:?}"),
                () = wait_until(|| server.asked().len() == count + 1) => {}
            }
            assert!(wait_for_closed(&server, count + 1).await, "at {at}");
            while receiver.try_recv().is_ok() {}
        }
        server.then(Reply::say("next"));
        assert_eq!(client.send_request(&request(), |_| {}).await.unwrap().text, "next");
    });
    assert_eq!(server.gone(), end.div_ceil(step));
}

async fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A task of the client closes the connection, so the runtime must keep running.
async fn wait_for_closed(server: &ScriptedModel, count: usize) -> bool {
    tokio::time::timeout(TEST_TIMEOUT, wait_until(|| count <= server.gone())).await.is_ok()
}

#[test]
fn request_without_any_response_can_be_canceled() {
    let server = ScriptedModel::start([Reply::stream().hang(), Reply::say("next")]);
    let client = client(&server);
    run(async {
        let request = request();
        tokio::select! {
            ended = client.send_request(&request, |_| {}) => panic!("{ended:?}"),
            () = wait_until(|| server.asked().len() == 1) => {}
        }
        assert!(wait_for_closed(&server, 1).await);
        assert_eq!(client.send_request(&request, |_| {}).await.unwrap().text, "next");
    });
}

#[test]
fn pending_request_ends_with_the_runtime() {
    let server = ScriptedModel::start([Reply::stream().delta(&json!({"content": "a"})).hang()]);
    let client = client(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.spawn(async move { client.send_request(&request(), |_| {}).await });
    runtime.block_on(wait_until(|| server.asked().len() == 1));
    drop(runtime);
    assert!(server.wait_gone(1, TEST_TIMEOUT));
}

/// The status alone decides the class of an error, whatever the body is.
#[test]
fn status_decides_the_error_class() {
    let server = ScriptedModel::start([]);
    let client = client(&server);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(256));
    let cases = (400_u16..600, "[a-z<{\" ]{0,20}");
    let checked = runner.run(&cases, |(status, body)| {
        server.then(Reply::status(status).header("retry-after", "99").body(&body));
        let message = run(client.send_request(&request(), |_| {})).unwrap_err().to_string();
        let url = format!("{}/chat/completions", server.url());
        let start = match status {
            401 | 403 => format!("Authentication error (HTTP {status}) calling {url}."),
            429 => format!("Rate limit exceeded (HTTP 429) calling {url}."),
            500.. => format!("Server error (HTTP {status}) from {url}."),
            _ => format!("HTTP error ({status}) from {url}."),
        };
        prop_assert!(message.starts_with(&start), "{}", message);
        Ok(())
    });
    checked.unwrap();
}
