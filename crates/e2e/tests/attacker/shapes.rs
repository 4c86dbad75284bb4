//! Requests of which one reader might make one and another two. We make one of it or none: never is
//! something answered that was hidden in something else.

use super::{Target, statuses};

/// What must not be answered where it is hidden: nobody else hears a 404.
const HIDDEN: u16 = 404;
/// Comes last on every connection, and is answered if that is still open.
const LAST: u16 = 200;

impl Target {
    fn hidden(&self) -> String {
        format!(
            "GET /hidden HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        )
    }

    /// Says a request with these headers and this body, and then the last one.
    fn answers(&self, line: &str, headers: &str, body: &str) -> Vec<u16> {
        let last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let token = format!("Authorization: Bearer {}", self.token);
        let heard =
            self.ask(format!("{line}\r\nHost: localhost\r\n{token}\r\n{headers}\r\n{body}{last}"));
        statuses(&heard)
    }
}

/// Where its end is, is not clear: one answer at most, and then no more.
#[test]
fn what_could_be_two_requests_is_at_most_one_and_the_last() {
    let target = Target::new();
    let hidden = target.hidden();
    assert_eq!(
        target.answers("GET /x HTTP/1.1", "", &hidden),
        [404, HIDDEN, LAST],
        "it would be seen"
    );
    let length = hidden.len();
    let ends = format!("0\r\n\r\n{hidden}");
    let both = format!("Content-Length: {}\r\n", 5 + length);
    let heads = [
        format!("{both}Transfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\n{both}"),
        format!("Content-Length: 5\r\n{both}"),
        format!("{both}Content-Length: 5\r\n"),
        format!("Content-Length: 5, {}\r\n", 5 + length),
        "Content-Length: 5, 5\r\n".to_owned(),
        "Content-Length: +5\r\n".to_owned(),
        "Content-Length: -5\r\n".to_owned(),
        "Content-Length: 0x5\r\n".to_owned(),
        "Content-Length: 5 5\r\n".to_owned(),
        "Content-Length: 5\x0b\r\n".to_owned(),
        "Content-Length:\r\n".to_owned(),
        "Content-Length: 99999999999999999999\r\n".to_owned(),
        "Content-Length : 5\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "X: y\r\n Transfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding:\r\n chunked\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: \"chunked\"\r\n".to_owned(),
        "Transfer-Encoding: chunked\x0b\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding\r\n".to_owned(),
        "X: a\rTransfer-Encoding: chunked\r\n".to_owned(),
        "X: a\0b\r\n".to_owned(),
        "X y: a\r\n".to_owned(),
        ": a\r\n".to_owned(),
    ];
    for head in &heads {
        for line in ["POST /acp HTTP/1.1", "GET /healthz HTTP/1.1", "GET /acp HTTP/1.0"] {
            let answers = target.answers(line, head, &ends);
            assert!(answers.len() <= 1, "{line} {head:?}: {answers:?}");
            assert!(!answers.contains(&HIDDEN), "{line} {head:?}: {answers:?}");
        }
    }
    for line in ["POST  /acp HTTP/1.1", "POST /acp HTTP/9.9", "POST /acp", "POST /a b HTTP/1.1"] {
        let answers = target.answers(line, &both, &ends);
        assert!(answers.len() <= 1 && !answers.contains(&HIDDEN), "{line}: {answers:?}");
    }
    target.must_be_well(16 << 20);
}

/// Chunks that are none: the answer may have been given before that is noticed.
#[test]
fn chunks_that_are_none_end_the_connection() {
    let target = Target::new();
    let hidden = target.hidden();
    let long = "x".repeat(20_000);
    let bodies = [
        format!("-1\r\n{hidden}"),
        format!("+0\r\n\r\n{hidden}"),
        format!("0x0\r\n\r\n{hidden}"),
        format!(" 0\r\n\r\n{hidden}"),
        format!("\r\n0\r\n\r\n{hidden}"),
        format!("0\n\n{hidden}"),
        format!("0\r\r\n{hidden}"),
        format!("0\r\n\n{hidden}"),
        format!("10000000000000000\r\n{hidden}"),
        format!("fffffffffffffffff0\r\n{hidden}"),
        format!("1\r\nab\r\n0\r\n\r\n{hidden}"),
        format!("1\r\na0\r\n\r\n{hidden}"),
        format!("0;{long}\r\n\r\n{hidden}"),
        format!("0;a\nb\r\n\r\n{hidden}"),
        format!("0\r\nX: {long}\r\n\r\n{hidden}"),
        format!("0\r\nX\r\n\r\n{hidden}"),
    ];
    for body in &bodies {
        for encoding in ["chunked", "gzip, chunked"] {
            let head = format!("Transfer-Encoding: {encoding}\r\n");
            let answers = target.answers("POST /acp HTTP/1.1", &head, body);
            let shown = &body[..body.len().min(24)];
            assert!(answers.len() <= 1 && !answers.contains(&HIDDEN), "{shown:?}: {answers:?}");
        }
    }
    target.must_be_well(16 << 20);
}

/// Odd, but everybody reads it alike: what is hidden in a body stays there.
#[test]
fn a_body_is_a_body() {
    let target = Target::new();
    let hidden = target.hidden();
    let length = hidden.len();
    let sized = format!("Content-Length: {length}\r\n");
    let chunks = format!("{length:X};a=b\r\n{hidden}\r\n0\r\nX: y\r\n\r\n");
    let cases = [
        ("POST /acp HTTP/1.1", sized.clone(), hidden.clone()),
        ("GET /acp HTTP/1.1", sized.clone(), hidden.clone()),
        ("POST /acp HTTP/1.1", format!("{sized}{sized}"), hidden.clone()),
        ("POST /acp HTTP/1.1", "Transfer-Encoding:\tChunked \r\n".to_owned(), chunks.clone()),
        ("POST /acp HTTP/1.1", "transfer-encoding: identity, chunked\r\n".to_owned(), chunks),
        ("POST /acp HTTP/1.1", format!("Expect: 100-continue\r\n{sized}"), hidden.clone()),
        ("OPTIONS /acp HTTP/1.1", sized.clone(), hidden.clone()),
    ];
    for (line, head, body) in cases {
        let answers = target.answers(line, &head, &body);
        assert!(matches!(answers[..], [_] | [_, LAST]), "{line} {head:?}: {answers:?}");
        assert!(!answers.contains(&HIDDEN), "{line} {head:?}: {answers:?}");
    }
    // Lines may end without a carriage return, and mean the same.
    let token = &target.token;
    let bare = format!(
        "POST /acp HTTP/1.1\nHost: localhost\nAuthorization: Bearer {token}\nConnection: close\n\
         Content-Length: {length}\n\n{hidden}"
    );
    let answers = statuses(&target.ask(bare));
    assert!(answers.len() == 1 && !answers.contains(&HIDDEN), "{answers:?}");
    target.must_be_well(16 << 20);
}
