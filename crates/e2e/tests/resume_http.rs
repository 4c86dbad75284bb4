//! Streams over HTTP that are cut in the middle of a turn, with the real daemon behind them: who comes
//! back with the id of its last event has lost nothing and hears nothing twice.

use crate::sdk_web::serve_web;
use jackfield_e2e::{
    Home,
    acp::headers,
    client::PATIENCE,
    http::{Events, Web},
    proxy::Proxy,
};
use serde_json::{Value, json};
use std::time::Instant;

/// A client that notes everything it hears, and where it was.
struct Listener {
    web: Web,
    connection: String,
    session: String,
    stream: Option<Events>,
    last: String,
    heard: Vec<Value>,
}

impl Listener {
    /// A new connection, with the stream of its own to read answers from.
    fn connect(web: &Web) -> (Listener, Events) {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
        let answer = web.ask("POST", "/acp", &[], Some(&hello));
        let connection = answer.header("acp-connection-id").to_owned();
        let (session, last, heard) = (String::new(), String::new(), Vec::new());
        let listener =
            Listener { web: web.clone(), connection, session, stream: None, last, heard };
        let own = listener.stream();
        (listener, own)
    }

    /// The stream of the session, or that of the connection, behind the last event heard.
    fn stream(&self) -> Events {
        let mut headers = headers(&self.connection, &self.session);
        headers.push("Accept: text/event-stream".to_owned());
        if !self.last.is_empty() {
            headers.push(format!("Last-Event-ID: {}", self.last));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        self.web.stream("GET", "/acp", &headers, None)
    }

    fn post(&self, message: &Value) {
        let headers = headers(&self.connection, &self.session);
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        assert_eq!(self.web.ask("POST", "/acp", &headers, Some(message)).status, 202);
    }

    fn call(&self, id: u64, method: &str, params: &Value) {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn prompt(&self, id: u64, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.call(id, "session/prompt", &json!({ "sessionId": self.session, "prompt": prompt }));
    }

    fn listen(&mut self) {
        self.stream = Some(self.stream());
    }

    /// The next message; a stream that is cut off is opened again.
    fn next(&mut self) -> Value {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "waited in vain behind {}", self.last);
            if let Some(event) = self.stream.as_mut().expect("it listens").next() {
                let message = event.json();
                self.last = event.id.expect("every event has an id");
                self.heard.push(message.clone());
                return message;
            }
            self.listen();
        }
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
        }
    }

    /// The numbers that the agent has said.
    fn numbers(&self) -> Vec<u32> {
        let updates = self.heard.iter().filter_map(|it| it.pointer("/params/update"));
        let texts = updates.filter_map(|it| it.pointer("/content/text")?.as_str());
        let number = |it: &str| it.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok();
        texts.filter_map(number).collect()
    }

    fn count(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.heard.iter().filter(|it| is_it(it)).count()
    }
}

fn is_answer(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

fn is_ask(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

/// A session of the agent's, and who listens to it.
fn open(web: &Web, home: &Home) -> Listener {
    let (mut listener, mut own) = Listener::connect(web);
    listener.call(1, "session/new", &json!({ "cwd": home.path(), "mcpServers": [] }));
    let opened = own.next().expect("the answer to session/new").json();
    opened["result"]["sessionId"].as_str().unwrap().clone_into(&mut listener.session);
    listener.listen();
    listener
}

#[test]
fn a_stream_that_is_cut_again_and_again_in_a_turn_is_heard_whole_and_once() {
    let home = Home::new();
    let (daemon, web) = serve_web(&home);
    let proxy = Proxy::to(web.address);
    let mut listener = open(&web.by_way_of(proxy.at), &home);
    listener.prompt(2, "burst 3000 300 then ask then burst 3000 300");
    let mut cuts = 0;
    for some in [1, 2, 30, 400, 1500] {
        for _ in 0..some {
            listener.next();
        }
        proxy.cut();
        cuts += 1;
    }
    let asked = listener.until(is_ask);
    // As if the ask had been under way when it broke: it comes again, and is answered once.
    proxy.cut();
    let before = listener.heard.pop().expect("the ask");
    assert!(is_ask(&before));
    let behind =
        listener.last.rsplit_once('.').map(|(seq, nth)| (seq, nth.parse::<u64>().unwrap()));
    let (seq, nth) = behind.expect("SEQ.K");
    listener.last = format!("{seq}.{}", nth - 1);
    assert_eq!(listener.until(is_ask), asked);
    let allowed = json!({ "outcome": { "outcome": "selected", "optionId": "allow-once" } });
    listener.post(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": allowed }));
    listener.until(|it| it.pointer("/params/update/content/text").is_some());
    proxy.cut();
    let answer = listener.until(|it| is_answer(it, 2));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let once: Vec<u32> = (1..=3000).collect();
    assert_eq!(listener.numbers(), [once.as_slice(), &once].concat(), "after {cuts} cuts");
    assert_eq!(listener.count(is_ask), 1);
    assert_eq!(listener.count(|it| it["method"] == "_jackfield/gap"), 0);
    // And it goes on as any other.
    listener.prompt(3, "hello");
    listener.until(|it| is_answer(it, 3));
    assert_eq!(listener.count(|it| is_answer(it, 2)), 1);
    daemon.stop();
}

#[test]
fn what_the_front_has_forgotten_the_journal_tells_while_the_turn_goes_on() {
    let home = Home::new();
    let (daemon, web) = serve_web(&home);
    let mut listener = open(&web, &home);
    listener.prompt(2, "burst 3000 300 then slow 40 10");
    for _ in 0..100 {
        listener.next();
    }
    let long_ago = listener.last.clone();
    listener.until(|it| it.pointer("/params/update/content/text") == Some(&json!("slow 3 ")));
    listener.last = long_ago;
    listener.heard.truncate(100);
    listener.listen();
    let answer = listener.until(|it| is_answer(it, 2));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(listener.numbers(), (1..=3000).collect::<Vec<u32>>());
    let is_slow = |it: &Value| {
        let text = it.pointer("/params/update/content/text").and_then(Value::as_str);
        text.is_some_and(|it| it.starts_with("slow "))
    };
    assert_eq!(listener.count(is_slow), 40, "live and told again, each once");
    // Once more, when the turn is over: the answer stands where it stood.
    let all = listener.heard.split_off(100);
    listener.last = listener.heard[99]["params"]["_meta"]["jackfield"]["seq"].to_string() + ".0";
    listener.listen();
    listener.until(|it| is_answer(it, 2));
    assert_eq!(listener.heard.split_off(100), all);
    daemon.stop();
}

#[test]
fn after_a_daemon_that_was_killed_the_next_one_tells_the_rest() {
    let home = Home::new();
    let (daemon, web) = serve_web(&home);
    let mut listener = open(&web, &home);
    listener.prompt(2, "burst 500 300 then hang");
    for _ in 0..100 {
        listener.next();
    }
    daemon.kill_9();
    let daemon = home.serve(&["--listen", &format!("http://{}", web.address)]);
    let old = format!("Acp-Connection-Id: {}", listener.connection);
    assert_eq!(web.ask("DELETE", "/acp", &[&old], None).status, 404);
    let (again, _own) = Listener::connect(&web);
    listener.connection = again.connection;
    listener.listen();
    listener.prompt(3, "hello");
    let answer = listener.until(|it| is_answer(it, 3));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let numbers = listener.numbers();
    let whole: Vec<u32> = (1..=u32::try_from(numbers.len()).unwrap()).collect();
    assert_eq!(numbers, whole, "nothing lost, nothing twice");
    assert!(100 <= numbers.len());
    assert_eq!(listener.count(|it| it["method"] == "_jackfield/gap"), 0);
    daemon.stop();
}
