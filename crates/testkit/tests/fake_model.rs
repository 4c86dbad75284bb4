//! The fake model server answers as its manual says, over real sockets.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use jackfield_testkit::fake_model::FakeModel;
use serde_json::{Value, json};

const BOUND: Duration = Duration::from_secs(20);

/// Where most clients send their requests.
const CHAT: &str = "/a/test/v1/chat/completions";

/// One connection, kept open between requests.
struct Http(BufReader<TcpStream>);

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    /// The payloads of a stream, the last one being `[DONE]`.
    fn events(&self) -> Vec<Value> {
        let mut data: Vec<&str> =
            self.body.lines().filter_map(|it| it.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("[DONE]"));
        data.into_iter().map(|it| serde_json::from_str(it).expect("a JSON event")).collect()
    }

    /// A field of all deltas, joined.
    fn said(&self, field: &str) -> String {
        let events = self.events();
        let deltas = events.iter().map(|it| &it["choices"][0]["delta"][field]);
        deltas.filter_map(Value::as_str).collect()
    }
}

impl Http {
    fn connect(addr: SocketAddr) -> Http {
        let stream = TcpStream::connect(addr).expect("the server listens");
        stream.set_read_timeout(Some(BOUND)).expect("a bound for every wait");
        Http(BufReader::new(stream))
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: fake\r\ncontent-length: {length}");
        let key = "authorization: Bearer test-key";
        let request = format!("{head}\r\n{key}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes()).expect("the server reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        line
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = self.line();
            assert!(!line.is_empty(), "the head is cut: {head}");
            head.push_str(&line);
        }
        head
    }

    fn response(&mut self) -> Response {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
        let mut body = Vec::new();
        if let Some(length) = length {
            body.resize(length.parse().expect("a length"), 0);
            self.0.read_exact(&mut body).expect("a whole body");
        } else {
            while self.chunk(&mut body) {}
        }
        Response { status, head, body: String::from_utf8(body).expect("UTF-8") }
    }

    /// Reads a chunk; whether more follow.
    fn chunk(&mut self, body: &mut Vec<u8>) -> bool {
        let line = self.line();
        let size = usize::from_str_radix(line.trim_end(), 16).expect("the size of a chunk");
        let start = body.len();
        body.resize(start + size, 0);
        self.0.read_exact(&mut body[start..]).expect("a whole chunk");
        self.line();
        0 < size
    }

    fn call(&mut self, method: &str, path: &str, body: &Value) -> Response {
        self.send(method, path, &body.to_string());
        self.response()
    }

    fn prompt(&mut self, text: &str) -> Response {
        self.call("POST", CHAT, &streamed(&[("user", text)]))
    }
}

fn streamed(messages: &[(&str, &str)]) -> Value {
    let messages: Value =
        messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    json!({"model": "fake-model", "stream": true, "messages": messages})
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let end = Instant::now() + BOUND;
    while !is_true() {
        assert!(Instant::now() < end, "in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_plain_prompt_gets_a_greeting_in_five_chunks_and_then_usage() {
    let model = FakeModel::start();
    let response = Http::connect(model.addr).prompt("Hello?");
    assert_eq!(response.said("content"), "Hello from the fake model.");
    let events = response.events();
    assert_eq!(events.len(), 1 + 5 + 1 + 1);
    assert_eq!(events[6]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[7]["usage"]["total_tokens"], 125);
    assert_eq!(model.log()[0]["testKey"], true);
    wait_until("the log says it is done", || model.log()[0]["end"] == "done");
}

#[test]
fn an_answer_can_come_in_one_piece_and_as_json() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let mut body = streamed(&[("user", "ECHO one two")]);
    body["stream"] = json!(false);
    let answer = http.call("POST", "/chat/completions", &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "one two");
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"schema": schema}});
    let answer = http.call("POST", "/chat/completions", &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"n":1}"#);
}

#[test]
fn a_tool_of_the_request_is_called_and_its_answer_is_said() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let parameters =
        json!({"properties": {"command": {"type": "string"}}, "required": ["command"]});
    let shell =
        json!({"type": "function", "function": {"name": "ns__shell", "parameters": parameters}});
    let parameters = json!({"properties": {"path": {}, "content": {}}});
    let write =
        json!({"type": "function", "function": {"name": "write", "parameters": parameters}});
    let mut body = streamed(&[("user", "TOUCH please")]);
    body["tools"] = json!([write, shell]);
    let response = http.call("POST", CHAT, &body);
    let events = response.events();
    let calls: Vec<_> =
        events.iter().map(|it| &it["choices"][0]["delta"]["tool_calls"][0]["function"]).collect();
    let name: String = calls.iter().filter_map(|it| it["name"].as_str()).collect();
    let arguments: String = calls.iter().filter_map(|it| it["arguments"].as_str()).collect();
    assert_eq!(name, "ns__shell");
    assert!(arguments.starts_with(r#"{"command":"touch "#), "{arguments}");
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");

    body["messages"][0]["content"] = json!("WRITE to /tmp/x.txt");
    http.call("POST", CHAT, &body);
    let call = json!([["write", {"path": "/tmp/x.txt", "content": "hello-from-tool\n"}]]);
    assert_eq!(model.log()[1]["calls"], call);

    body["messages"][0]["content"] = json!("TWOTOOLS");
    http.call("POST", CHAT, &body);
    assert_eq!(model.log()[2]["calls"].as_array().map(Vec::len), Some(2));

    let talk = streamed(&[("user", "TOOL"), ("assistant", ""), ("tool", "a\n  file")]);
    let response = http.call("POST", CHAT, &talk);
    assert_eq!(response.said("content"), "The tool answered: a file - done.");
    assert_eq!(http.prompt("TOOL").said("content"), "No tool I know was offered.");
}

#[test]
fn turns_are_counted_thoughts_come_first_and_long_answers_are_long() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let talk = [("user", "one"), ("assistant", "yes"), ("user", "<x>SLOW</x>"), ("user", "COUNT")];
    let response = http.call("POST", CHAT, &streamed(&talk));
    assert_eq!(response.said("content"), "I see 2 user messages.");
    let response = http.prompt("THINK hard");
    assert_eq!(response.said("reasoning_content"), "I should think about this first.");
    assert!(200_000 / 2 < http.prompt("LONG").said("content").len());
}

#[test]
fn errors_come_by_word_once_by_prefix_and_by_order() {
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
fn models_and_the_log_can_be_asked_for_and_nothing_else() {
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
fn a_chunked_request_is_read_whole() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    let body = streamed(&[("user", "ECHO chunked")]).to_string();
    let (first, second) = body.split_at(17);
    let head = format!("POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let request = [head, chunk(first), chunk(second), chunk("")].concat();
    http.0.get_mut().write_all(request.as_bytes()).unwrap();
    assert_eq!(http.response().said("content"), "chunked");
}

#[test]
fn a_cut_answer_ends_in_the_middle() {
    let model = FakeModel::start();
    let mut http = Http::connect(model.addr);
    http.send("POST", CHAT, &streamed(&[("user", "CUT")]).to_string());
    let mut rest = String::new();
    http.0.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("from") && !rest.contains("model."), "{rest}");
    wait_until("the log says so", || model.log()[0]["end"] == "gone");
}

#[test]
fn a_slow_answer_notices_that_its_client_left() {
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

#[test]
fn a_dropped_server_lets_go_of_every_connection() {
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
fn the_program_says_where_it_listens_and_ends_with_its_stdin() {
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
