//! One reader of one session: it counts the ticks it hears, and how old each is.

use super::web::Web;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Without a word for so long, the rest is lost. The first reader is silent until all others are
/// attached and its agent was told to begin, which takes half a minute on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// How long the opening of a session may take.
const OPENING_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Events,
    WebSocket,
}

pub(super) struct Reader {
    stream: TcpStream,
    /// What came and was not understood yet.
    rest: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) ticks: u64,
    pub(super) delays: Vec<Duration>,
    /// The last bytes, if ticks are missing.
    pub(super) end: String,
}

impl Reader {
    /// Returns when the daemon has said that it is attached.
    pub(super) async fn open(web: &Web, carrier: Carrier, session: &str, cwd: &str) -> Reader {
        let mut reader = Reader { stream: web.connect().await, rest: Vec::new() };
        match carrier {
            Carrier::Events => reader.request_events(web, session).await,
            Carrier::WebSocket => {
                let head = web.head("GET", "/acp")
                    + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
                reader.stream.write_all(head.as_bytes()).await.unwrap();
                reader.skip_past(b"\r\n\r\n").await;
                let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
                reader.say(1, "initialize", &hello).await;
                reader.skip_past(br#""id":1,"#).await;
                let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
                reader.say(2, "session/resume", &params).await;
                reader.skip_past(br#""id":2,"#).await;
                reader.expect_result().await;
            }
        }
        reader
    }

    /// Requests the events until the session is open: a run is accepted before its agent has answered.
    async fn request_events(&mut self, web: &Web, session: &str) {
        let path = format!("/api/sessions/{session}/events?view=events");
        let head = web.head("GET", &path) + "Accept: text/event-stream\r\n\r\n";
        let begin = Instant::now();
        loop {
            self.stream.write_all(head.as_bytes()).await.unwrap();
            while find(&self.rest, b"\r\n\r\n").is_none() {
                assert!(self.fill().await, "the daemon closed the connection");
            }
            if self.rest.starts_with(b"HTTP/1.1 200") {
                return self.skip_past(b"\r\n\r\n").await;
            }
            let answer = String::from_utf8_lossy(&self.rest).into_owned();
            let is_opening = self.rest.starts_with(b"HTTP/1.1 404");
            assert!(is_opening && begin.elapsed() < OPENING_MAX, "{path}: {answer}");
            sleep(Duration::from_millis(10)).await;
            *self = Reader { stream: web.connect().await, rest: Vec::new() };
        }
    }

    /// One text frame. The mask is there, as it must be, and changes nothing.
    async fn say(&mut self, id: u64, method: &str, params: &Value) {
        let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let text = text.to_string();
        let length = u16::try_from(text.len()).unwrap();
        let mut frame = vec![0x81, 0x80 | 0x7e];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).await.unwrap();
    }

    async fn skip_past(&mut self, mark: &[u8]) {
        loop {
            if let Some(at) = find(&self.rest, mark) {
                self.rest.drain(..at + mark.len());
                return;
            }
            assert!(self.fill().await, "the daemon closed");
        }
    }

    /// The rest of a response, after its id, is a result and no error.
    async fn expect_result(&mut self) {
        const RESULT: &[u8] = br#""result""#;
        while self.rest.len() < RESULT.len() {
            assert!(self.fill().await, "the daemon closed the connection");
        }
        let response = String::from_utf8_lossy(&self.rest).into_owned();
        assert!(self.rest.starts_with(RESULT), "the session was not resumed: {response}");
    }

    async fn fill(&mut self) -> bool {
        self.rest.reserve(16 << 10);
        let read = timeout(SILENCE_MAX, self.stream.read_buf(&mut self.rest)).await;
        matches!(read, Ok(Ok(count)) if 0 < count)
    }

    /// Until so many ticks were heard, each once and in order.
    pub(super) async fn read(mut self, words: u64) -> Heard {
        let mut heard = Heard::default();
        while heard.ticks < words && self.fill().await {
            let now = micros();
            let mut done = 0;
            while let Some((number, at, end)) = tick(&self.rest[done..]) {
                heard.ticks += 1;
                assert_eq!(number, heard.ticks, "a tick is missing, or came twice");
                heard.delays.push(Duration::from_micros(now.saturating_sub(at)));
                done += end;
            }
            // Half a tick may be at the end.
            let keep = self.rest.len().saturating_sub(64).max(done);
            self.rest.drain(..keep);
        }
        if heard.ticks < words {
            heard.end = String::from_utf8_lossy(&self.rest).into_owned();
        }
        heard
    }
}

/// The number and the time of the next tick, and where it ends: `tick 7 1794744000000000 `.
fn tick(text: &[u8]) -> Option<(u64, u64, usize)> {
    let value = |it: &[u8]| std::str::from_utf8(it).ok()?.parse::<u64>().ok();
    let mut begin = 0;
    loop {
        begin += find(&text[begin..], b"tick ")? + 5;
        let mut words = text[begin..].split(|it| *it == b' ');
        let (number, at) = (words.next()?, words.next()?);
        // The space after the time has come too.
        words.next()?;
        // The prompt says `tick` as well, and may come together with the first ones.
        if let (Some(value), Some(time)) = (value(number), value(at)) {
            return Some((value, time, begin + number.len() + at.len() + 2));
        }
    }
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    text.windows(mark.len()).position(|it| it == mark)
}

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap()
}
