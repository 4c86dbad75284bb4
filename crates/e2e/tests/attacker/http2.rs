//! HTTP/2, frame by frame.

use super::{Target, listen, logs::LOG_BYTES_MAX};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// Flags: nothing follows on the stream; nothing follows of its headers.
const END: u8 = 1;
const WHOLE: u8 = 4;
const CALM_DOWN: [u8; 4] = [0, 0, 0, 11];

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header that nobody remembers, in plain letters.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        field.push(u8::try_from(text.len()).unwrap());
        field.extend(text.as_bytes());
    }
    field
}

fn request(path: &str, authority: &[&str], more: &[(&str, &str)]) -> Vec<u8> {
    let fixed = [(":method", "GET"), (":scheme", "http"), (":path", path)];
    let authority = authority.iter().map(|it| (":authority", *it));
    let all = fixed.into_iter().chain(authority).chain(more.iter().copied());
    all.flat_map(|(name, value)| field(name, value)).collect()
}

impl Target {
    pub(super) fn dial_http2(&self) -> TcpStream {
        let mut stream = self.dial();
        stream.write_all(PREFACE).unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        stream
    }

    /// All that is said about one request. Whoever has not shown the token is sent away after it; the
    /// others say themselves that they leave.
    fn ask_http2(&self, headers: &[u8]) -> String {
        let mut stream = self.dial_http2();
        stream.write_all(&frame(HEADERS, END | WHOLE, 1, headers)).unwrap();
        stream.write_all(&frame(GO_AWAY, 0, 0, &[0; 8])).unwrap();
        listen(&mut stream)
    }
}

/// The kinds and payloads of all frames until the end.
fn frames(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    let mut bytes = Vec::new();
    let _reset = stream.read_to_end(&mut bytes);
    let (mut rest, mut frames) = (bytes.as_slice(), Vec::new());
    while let Some((head, tail)) = rest.split_at_checked(9) {
        let length = usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap();
        let Some((payload, next)) = tail.split_at_checked(length) else { break };
        frames.push((head[3], payload.to_vec()));
        rest = next;
    }
    frames
}

#[test]
fn the_authority_of_a_request_is_its_host_and_the_token_is_needed() {
    let target = Target::new();
    let bearer = format!("Bearer {}", target.token);
    let known = [("authorization", bearer.as_str())];
    assert!(target.ask_http2(&request("/healthz", &["localhost"], &known)).contains("ok\n"));
    assert!(target.ask_http2(&request("/healthz", &[], &[("host", "localhost")])).contains("ok\n"));
    for authority in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"] {
        let heard = target.ask_http2(&request("/healthz", &[authority], &known));
        assert!(heard.contains("MISDIRECTED"), "{authority}: {heard:?}");
    }
    for (authority, host) in [("localhost", "evil.example"), ("evil.example", "localhost")] {
        let headers = [known[0], ("host", host)];
        let heard = target.ask_http2(&request("/healthz", &[authority], &headers));
        assert!(heard.contains("BAD_REQUEST"), "{authority} {host}: {heard:?}");
    }
    for headers in [
        request("/healthz", &["evil.example#127.0.0.1"], &known),
        request("/healthz", &["localhost", "evil.example"], &known),
        request("/healthz", &[""], &known),
        request("/healthz", &[], &known),
    ] {
        assert!(!target.ask_http2(&headers).contains("ok\n"));
    }
    let foreign = [known[0], ("origin", "https://evil.example")];
    assert!(target.ask_http2(&request("/acp", &["localhost"], &foreign)).contains("FORBIDDEN"));
    for wrong in [&[][..], &[("authorization", "Bearer x")]] {
        let heard = target.ask_http2(&request("/api/sessions", &["localhost"], wrong));
        assert!(heard.contains("UNAUTHORIZED"), "{heard:?}");
    }
    target.must_be_well(16 << 20);
}

#[test]
fn a_flood_of_resets_is_told_to_calm_down() {
    let target = Target::new();
    let headers = request("/healthz", &["localhost"], &[]);
    let mut calmed = 0;
    for _ in 0..8 {
        let mut stream = target.dial_http2();
        // Much at once, so that they are reset before anybody had a look.
        let mut flood = Vec::new();
        for number in 0..5_000 {
            flood.extend(frame(HEADERS, END | WHOLE, 2 * number + 1, &headers));
            flood.extend(frame(RESET, 0, 2 * number + 1, &8_u32.to_be_bytes()));
        }
        let _cut = stream.write_all(&flood);
        let said = frames(&mut stream);
        let away = said.iter().rfind(|(kind, _)| *kind == GO_AWAY);
        calmed += usize::from(away.is_some_and(|(_, payload)| payload[4..8] == CALM_DOWN));
        target.serves_the_honest();
    }
    // Some may be cut off before they hear the last word.
    assert!(4 <= calmed, "{calmed} of 8 were told");
    let log = target.home.said();
    assert!(log.len() < LOG_BYTES_MAX, "{} bytes of log", log.len());
    target.must_be_well(16 << 20);
}

#[test]
fn headers_that_never_end_and_pings_that_nobody_asked_for_are_bounded() {
    let target = Target::new();
    let piece: Vec<u8> = (0..100).flat_map(|_| field("x", &"y".repeat(100))).collect();
    let mut stream = target.dial_http2();
    let _open = stream.write_all(&frame(HEADERS, END, 1, &request("/", &["localhost"], &[])));
    let more = frame(CONTINUATION, 0, 1, &piece);
    let mut said = 0;
    while said < 64 << 20 && stream.write_all(&more).is_ok() {
        said += more.len();
    }
    assert!(said < 64 << 20, "it is read and read");
    // Whoever sends pings and does not take the answers fills his own pipe, not our memory.
    let mut stream = target.dial_http2();
    stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let pings = frame(PING, 0, 0, &[0; 8]).repeat(10_000);
    let mut said = 0;
    while said < 64 << 20 && stream.write_all(&pings).is_ok() {
        said += pings.len();
    }
    assert!(said < 64 << 20, "it is read and read");
    target.must_be_well(16 << 20);
}
