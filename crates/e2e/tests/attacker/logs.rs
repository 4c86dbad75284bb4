//! What a client without the token can write into the log: little, and nothing secret.

use super::{
    GONE_WITHIN, Target,
    http2::{PING, frame},
};
use jackfield_e2e::wait_for;
use std::io::{Read as _, Write as _};

pub(super) const LOG_BYTES_MAX: usize = 64 << 10;
/// The answer to a ping. Nobody has sent one, which is worth a warning.
const ANSWER: u8 = 1;
const WRONG_TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The line that says how many lines with this message were left out.
fn count_of(target: &Target, message: &str) -> String {
    wait_for("a line that says how many were left out", GONE_WITHIN, || {
        let said = target.home.said();
        let is_count = |it: &&str| it.contains(" more like this") && it.contains(message);
        said.lines().find(is_count).map(str::to_owned)
    })
}

#[test]
fn flood_of_http2_warnings_leaves_a_short_log_with_a_count() {
    let target = Target::new();
    let mut stream = target.dial_http2();
    let _cut = stream.write_all(&frame(PING, ANSWER, 0, &[0; 8]).repeat(20_000));
    let line = count_of(&target, "PING");
    assert!(line.contains("WARN"), "{line}");
    let said = target.home.said();
    assert!(said.len() < LOG_BYTES_MAX, "{} bytes", said.len());
    target.must_be_well(16 << 20);
}

#[test]
fn wrong_tokens_are_logged_with_the_address_of_the_client_and_counted() {
    let target = Target::new();
    let mut client = String::new();
    for _ in 0..200 {
        let mut stream = target.dial();
        client = stream.local_addr().unwrap().to_string();
        let said = format!(
            "GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {WRONG_TOKEN}\r\n\r\n"
        );
        stream.write_all(said.as_bytes()).unwrap();
        let mut heard = [0; 12];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"HTTP/1.1 401");
    }
    count_of(&target, "without a valid token");
    let said = target.home.said();
    assert!(said.contains("peer=127.0.0.1:") && said.contains("WrongToken"), "{said}");
    assert!(!said.contains(&client), "only the first ones have a line of their own: {said}");
    assert!(!said.contains(&WRONG_TOKEN[..16]), "{said}");
    assert!(said.len() < LOG_BYTES_MAX, "{} bytes", said.len());
    target.must_be_well(16 << 20);
}
