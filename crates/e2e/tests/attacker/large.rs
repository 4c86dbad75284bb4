//! Too much of everything.

use super::{Target, listen, statuses};
use std::io::{Read as _, Write as _};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn a_head_that_is_too_long_is_refused_in_every_way_it_can_be() {
    let target = Target::new();
    let many = |count: usize| {
        let headers: Vec<String> = (0..count).map(|it| format!("X-{it}: y\r\n")).collect();
        headers.concat() + "Host: localhost\r\n"
    };
    assert_eq!(statuses(&target.ask_with_token("GET /healthz", &many(60))), [200]);
    let wide = |length: usize| format!("Host: localhost\r\nX: {}\r\n", "y".repeat(length));
    assert_eq!(statuses(&target.ask_with_token("GET /healthz", &wide(16 * KIB))), [200]);
    let far = |length: usize| format!("GET /healthz?{}", "y".repeat(length));
    let host = "Host: localhost\r\n";
    assert_eq!(statuses(&target.ask_with_token(&far(16 * KIB), host)), [200]);
    for heard in [
        target.ask_with_token("GET /healthz", &many(65)),
        target.ask_with_token("GET /healthz", &many(5_000)),
        target.ask_with_token("GET /healthz", &wide(40 * KIB)),
        target.ask_with_token("GET /healthz", &wide(8 * MIB)),
        target.ask_with_token(&far(40 * KIB), host),
        target.ask_with_token(&far(8 * MIB), host),
        target.ask_with_token(&"G".repeat(8 * MIB), host),
        target.ask("\r\n".repeat(MIB)),
        target.ask(vec![0; MIB]),
    ] {
        let answers = statuses(&heard);
        assert!(matches!(answers[..], [] | [400 | 414 | 431]), "{answers:?}");
    }
    target.must_be_well(16 << 20);
}

#[test]
fn a_body_that_is_too_long_is_refused_and_one_without_token_is_not_read() {
    let target = Target::new();
    let long = format!("Host: localhost\r\nContent-Length: {}\r\n", 17 * MIB);
    assert_eq!(statuses(&target.ask_with_token("POST /acp", &long)), [413]);
    let json = "Host: localhost\r\nContent-Type: application/json\r\n";
    let chunked = format!("{json}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", 17 * MIB);
    let heard = target.ask_with_token("POST /acp", &(chunked + &"x".repeat(17 * MIB)));
    assert_eq!(statuses(&heard), [413]);
    let deep = "[".repeat(4 * MIB);
    let sized = format!("{json}Content-Length: {}\r\n\r\n{deep}", deep.len());
    assert_eq!(statuses(&target.ask_with_token("POST /acp", &sized)), [400]);
    for length in ["Content-Length: 9000000000", "Transfer-Encoding: chunked"] {
        let mut stream = target.dial();
        let begin = format!("POST /acp HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n");
        stream.write_all(begin.as_bytes()).unwrap();
        let chunk = format!("{MIB:x}\r\n{}\r\n", "x".repeat(MIB));
        let mut said = 0;
        while said < 64 * MIB && stream.write_all(chunk.as_bytes()).is_ok() {
            said += chunk.len();
        }
        assert!(said < 64 * MIB, "it is read and read");
    }
    target.must_be_well(64 << 20);
}

/// One frame of a client, masked with nothing.
fn frame(first: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 127];
    frame.extend((length as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame
}

#[test]
fn a_message_that_is_too_long_or_too_deep_ends_at_most_its_own_connection() {
    let target = Target::new();
    // One that says it is too long, one that is, one in pieces that never end.
    let mut stream = target.socket();
    stream.write_all(&frame(0x81, 1 << 40)).unwrap();
    listen(&mut stream);
    let piece = vec![b'x'; MIB];
    for in_pieces in [false, true] {
        let mut stream = target.socket();
        let mut said = 0;
        let first = if in_pieces { frame(0x01, MIB) } else { frame(0x81, 64 * MIB) };
        let mut going = stream.write_all(&first).is_ok();
        while going && said < 64 * MIB {
            said += MIB;
            going = stream.write_all(&piece).is_ok()
                && (!in_pieces || stream.write_all(&frame(0x00, MIB)).is_ok());
        }
        assert!(said < 64 * MIB, "in pieces: {in_pieces}");
    }
    // Deeper than any stack, as a message and inside one.
    let deep = "[".repeat(4 * MIB);
    let inside = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{deep}{}}}"#,
        "]".repeat(4 * MIB)
    );
    for text in [deep, inside] {
        let mut stream = target.socket();
        stream.write_all(&frame(0x81, text.len())).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = [0x89, 0];
        // It asks whether we are there first.
        while answer == [0x89, 0] {
            stream.read_exact(&mut answer).unwrap();
        }
        assert!(matches!(answer[0], 0x81 | 0x88), "a message or a goodbye: {answer:?}");
    }
    target.must_be_well(64 << 20);
}
