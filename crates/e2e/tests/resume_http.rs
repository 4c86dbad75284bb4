//! Streams over HTTP that are cut in the middle of a turn, with the real daemon behind them: who comes
//! back with the id of its last event has lost nothing and hears nothing twice.

use crate::sdk_web::serve_web;
use jackfield_e2e::{
    Home,
    acp::{Answer, Door},
    client::PATIENCE,
    proxy::Proxy,
};
use serde_json::{Value, json};
use std::time::Instant;

/// A client that notes everything it hears, and where it was.
struct Listener {
    door: Door,
    connection: String,
    session: String,
    stream: Option<Answer>,
    last: String,
    heard: Vec<Value>,
}

impl Listener {
    /// A new connection, with the stream of its own to read answers from.
    fn connect(door: &Door) -> (Listener, Answer) {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
        let answer = door.request("POST", &[], &hello.to_string());
        let connection = answer.header("acp-connection-id").to_owned();
        let own = door.events(&[("acp-connection-id", &connection)]);
        let (session, last) = (String::new(), String::new());
        let heard = Vec::new();
        (Listener { door: door.clone(), connection, session, stream: None, last, heard }, own)
    }

    fn post(&self, message: &Value) {
        let session = self.session.as_str();
        let headers =
            [("acp-connection-id", self.connection.as_str()), ("acp-session-id", session)];
        let headers = if session.is_empty() { &headers[..1] } else { &headers };
        assert_eq!(self.door.request("POST", headers, &message.to_string()).status, 202);
    }

    fn call(&self, id: u64, method: &str, params: &Value) {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn prompt(&self, id: u64, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.call(id, "session/prompt", &json!({ "sessionId": self.session, "prompt": prompt }));
    }

    /// Opens the stream of the session, behind the last event heard.
    fn listen(&mut self) {
        let last = [("last-event-id", self.last.as_str())];
        let last = if self.last.is_empty() { &[] } else { &last[..] };
        let of = [("acp-connection-id", &*self.connection), ("acp-session-id", &*self.session)];
        self.stream = Some(self.door.events(&[&of, last].concat()));
    }

    /// The next message; a stream that is cut off is opened again.
    fn next(&mut self) -> Value {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "waited in vain behind {}", self.last);
            if let Some((id, data)) = self.stream.as_mut().expect("it listens").next_event() {
                self.last = id;
                let message: Value = serde_json::from_str(&data).expect("the hub speaks JSON");
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
fn open(door: &Door, home: &Home) -> Listener {
    let (mut listener, mut own) = Listener::connect(door);
    listener.call(1, "session/new", &json!({ "cwd": home.path(), "mcpServers": [] }));
    let (_, opened) = own.next_event().expect("the answer to session/new");
    let opened: Value = serde_json::from_str(&opened).unwrap();
    opened["result"]["sessionId"].as_str().unwrap().clone_into(&mut listener.session);
    listener.listen();
    listener
}

#[test]
fn a_stream_that_is_cut_again_and_again_in_a_turn_is_heard_whole_and_once() {
    let home = Home::new();
    let (daemon, door) = serve_web(&home);
    let proxy = Proxy::to(door.at);
    let mut listener = open(&door.by_way_of(proxy.at), &home);
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
fn after_a_daemon_that_was_killed_the_next_one_tells_the_rest() {
    let home = Home::new();
    let (daemon, door) = serve_web(&home);
    let mut listener = open(&door, &home);
    listener.prompt(2, "burst 500 300 then hang");
    for _ in 0..100 {
        listener.next();
    }
    daemon.kill_9();
    let daemon = home.serve(&["--listen", &format!("http://{}", door.at)]);
    let gone = listener.door.request("POST", &[("acp-connection-id", &listener.connection)], "{}");
    assert!(matches!(gone.status, 400 | 404), "{}", gone.status);
    let (again, _own) = Listener::connect(&door);
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
