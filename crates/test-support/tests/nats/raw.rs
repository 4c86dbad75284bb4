//! The small part of the NATS protocol that these tests need.

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// An election takes four to nine seconds.
const BOUND: Duration = Duration::from_secs(40);

/// A client with one request at a time.
pub(crate) struct RawClient {
    /// The `INFO` line of the server.
    pub(crate) greeting: String,
    stream: BufReader<TcpStream>,
    asked: u32,
}

impl RawClient {
    pub(crate) fn connect(url: &str) -> RawClient {
        let address = url.trim_start_matches("nats://");
        let (login, address) = address.split_once('@').unwrap_or((":", address));
        let (user, password) = login.split_once(':').unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let mut raw =
            RawClient { greeting: String::new(), stream: BufReader::new(stream), asked: 0 };
        raw.greeting = raw.line().unwrap();
        // With this protocol version, the client receives updates such as lame duck mode.
        let options = json!({
            "protocol": 1, "verbose": false, "headers": true, "no_responders": true,
            "user": user, "pass": password,
        });
        raw.send(&format!("CONNECT {options}\r\nSUB answers.* 1\r\nPING\r\n"));
        raw.wait_for_line(|it| it == "PONG");
        raw
    }

    /// Creates a stream with a subject of the same name and this many replicas.
    pub(crate) fn create_stream(&mut self, name: &str, replicas: u32) -> Value {
        let config = json!({ "name": name, "subjects": [name], "num_replicas": replicas });
        let made = self.request(&format!("$JS.API.STREAM.CREATE.{name}"), &config.to_string());
        assert!(made.get("error").is_none(), "{made}");
        made
    }

    /// The response to a request; null if there is no responder.
    pub(crate) fn request(&mut self, subject: &str, body: &str) -> Value {
        let answer = self.try_request(subject, body, BOUND);
        answer.unwrap_or_else(|| panic!("no answer from `{subject}`"))
    }

    /// Repeats the request until there is a response.
    pub(crate) fn request_until_answered(&mut self, subject: &str, body: &str) -> Value {
        let begin = Instant::now();
        while begin.elapsed() < BOUND {
            let answer = self.try_request(subject, body, Duration::from_secs(1));
            if let Some(answer @ Value::Object(_)) = answer {
                return answer;
            }
        }
        panic!("no answer from `{subject}`");
    }

    /// `None` if there is no response in time.
    pub(crate) fn try_request(
        &mut self,
        subject: &str,
        body: &str,
        bound: Duration,
    ) -> Option<Value> {
        self.asked += 1;
        self.send(&format!("PUB {subject} answers.{} {}\r\n{body}\r\n", self.asked, body.len()));
        self.answer(bound)
    }

    pub(crate) fn wait_for_line(&mut self, is_it: impl Fn(&str) -> bool) {
        while !is_it(&self.line().expect("it comes before the end")) {}
    }

    pub(crate) fn wait_for_end(&mut self) {
        while self.line().is_some() {}
    }

    /// The response to the last request; late responses to earlier ones are ignored.
    fn answer(&mut self, bound: Duration) -> Option<Value> {
        self.stream.get_ref().set_read_timeout(Some(bound)).unwrap();
        let wanted = format!("answers.{}", self.asked);
        let begin = Instant::now();
        while begin.elapsed() < bound {
            let line = self.line()?;
            let words: Vec<_> = line.split(' ').collect();
            if !matches!(words[0], "MSG" | "HMSG") {
                continue;
            }
            let mut body = vec![0; words.last().unwrap().parse::<usize>().unwrap() + 2];
            self.stream.read_exact(&mut body).unwrap();
            if words[1] == wanted {
                // A message with headers means that there is no responder.
                return Some(serde_json::from_slice(&body).unwrap_or(Value::Null));
            }
        }
        None
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// `None` at the end, or after a timeout.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(why) if why.kind() == ErrorKind::WouldBlock => None,
            Err(why) if why.kind() == ErrorKind::ConnectionReset => None,
            Err(why) => panic!("{why}"),
        }
    }
}
