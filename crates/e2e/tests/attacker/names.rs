//! Names, pages and tokens: each of them wrong, with the others right.

use super::{Target, UPGRADE, listen, statuses};
use std::io::Write as _;

#[test]
fn a_page_that_makes_its_name_lead_to_us_is_refused() {
    let target = Target::new();
    let port = target.at.port();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", &format!("127.0.0.1:{port}")]
    {
        let heard = target.ask_with_token("GET /healthz", &format!("Host: {host}\r\n"));
        assert_eq!(statuses(&heard), [200], "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost.",
        "0.0.0.0",
        "127.0.0.2",
        "127.1",
        "0x7f000001",
        "2130706433",
        "[::]",
        "[::ffff:10.0.0.1]",
    ] {
        for path in ["/healthz", "/acp", "/api/sessions"] {
            let heard = target.ask_with_token(&format!("GET {path}"), &format!("Host: {host}\r\n"));
            assert_eq!(statuses(&heard), [421], "{host} {path}");
            assert!(heard.contains(r#""code":"MISDIRECTED""#), "{heard}");
        }
    }
    for hosts in [
        "",
        "Host:\r\n",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: evil.example#127.0.0.1\r\n",
        "Host: evil.example@127.0.0.1\r\n",
        "Host: 127.0.0.1@evil.example\r\n",
        "Host: localhost/@evil.example\r\n",
        "Host: localhost, evil.example\r\n",
        "Host: localhost evil.example\r\n",
        "Host: localhost:99999\r\n",
    ] {
        let heard = target.ask_with_token("GET /healthz", hosts);
        assert_eq!(statuses(&heard), [400], "{hosts}");
    }
    for (line, status) in [
        ("GET http://localhost/healthz", 200),
        ("GET http://evil.example/healthz", 400),
        ("GET http://localhost:1/healthz", 400),
        ("GET http://localhost@evil.example/healthz", 400),
        ("CONNECT evil.example:80", 400),
    ] {
        let heard = target.ask_with_token(line, "Host: localhost\r\n");
        assert_eq!(statuses(&heard), [status], "{line}");
    }
    let heard = target.ask_with_token("GET http://evil.example/healthz", "Host: evil.example\r\n");
    assert_eq!(statuses(&heard), [421]);
    target.must_be_well(16 << 20);
}

#[test]
fn a_foreign_page_is_refused_in_every_way_it_can_ask() {
    let target = Target::new();
    let host = format!("Host: {}\r\n", target.at);
    let protocol = format!("Sec-WebSocket-Protocol: acp, jackfield.bearer.{}\r\n", target.token);
    let socket = format!("{host}{UPGRADE}{protocol}");
    let simple = format!("{host}Content-Type: text/plain\r\nContent-Length: 2\r\n");
    let asks = format!("{host}Access-Control-Request-Method: POST\r\n");
    let ways = [
        ("GET /healthz", host.as_str()),
        ("HEAD /healthz", &host),
        ("POST /acp", &simple),
        ("POST /api/runs", &simple),
        ("DELETE /acp", &host),
        ("OPTIONS /acp", &asks),
        ("OPTIONS /healthz", &asks),
    ];
    let near = format!("http://localhost:{}", target.at.port() ^ 1);
    for origin in ["https://evil.example", "null", "", "file://", "http://127.0.0.1", &near] {
        for (line, headers) in ways {
            let heard = target.ask_with_token(line, &format!("{headers}Origin: {origin}\r\n"));
            assert_eq!(statuses(&heard), [403], "{line} from `{origin}`: {heard}");
            assert!(!heard.to_lowercase().contains("access-control"), "{heard}");
            assert!(!heard.contains('*'), "{heard}");
        }
        let heard = target.ask(format!("GET /acp HTTP/1.1\r\n{socket}Origin: {origin}\r\n\r\n"));
        assert_eq!(statuses(&heard), [403], "a WebSocket from `{origin}`: {heard}");
    }
    // The same without a page, and from our own.
    for origin in [String::new(), format!("Origin: http://{}\r\n", target.at)] {
        let mut stream = target.dial();
        let said = format!("GET /acp HTTP/1.1\r\n{socket}{origin}\r\n");
        stream.write_all(said.as_bytes()).unwrap();
        // A frame that says goodbye, masked with nothing.
        stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).unwrap();
        let heard = listen(&mut stream);
        assert_eq!(statuses(&heard), [101], "{heard}");
        assert!(heard.contains("sec-websocket-protocol: acp\r\n"), "{heard}");
        assert!(!heard.contains(&target.token), "{heard}");
    }
    target.must_be_well(16 << 20);
}

#[test]
fn without_the_token_there_is_nothing_to_see() {
    let target = Target::new();
    let token = &target.token;
    let mut other = token.clone().into_bytes();
    other[63] ^= 1;
    let other = String::from_utf8(other).unwrap();
    let shown = [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: Bearer {other}\r\n"),
        format!("Authorization: Bearer {}\r\n", &token[..32]),
        format!("Authorization: Bearer {token}0\r\n"),
        format!("Authorization: Bearer {}\r\n", "0".repeat(20_000)),
        format!("Authorization: Bearer {}\r\n", token.to_uppercase() + " "),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {other}\r\n"),
        format!("Cookie: token={token}\r\nX-Token: {token}\r\n"),
        format!("Proxy-Authorization: Bearer {token}\r\n"),
        format!("{UPGRADE}Sec-WebSocket-Protocol: acp, jackfield.bearer.{other}\r\n"),
        format!("{UPGRADE}Sec-WebSocket-Protocol: acp, {token}\r\n"),
    ];
    let query = format!("GET /acp?token={token}&access_token={token}&bearer={token}");
    let lines =
        ["GET /acp", "POST /acp", "GET /api/sessions", "GET /metrics", "GET /nothing", &query];
    for shown in shown {
        for line in lines {
            let heard = target.ask(format!("{line} HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n"));
            assert_eq!(statuses(&heard), [401], "{line} {shown}");
            assert!(heard.contains("www-authenticate: Bearer "), "{heard}");
            assert!(heard.contains(r#"{"error":{"code":"UNAUTHORIZED","#), "{heard}");
            assert!(!heard.contains(token), "{heard}");
        }
    }
    let healthy =
        target.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(statuses(&healthy), [200], "{healthy}");
    target.must_be_well(16 << 20);
}
