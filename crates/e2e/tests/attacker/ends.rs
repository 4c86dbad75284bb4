//! When the daemon stops, nobody who is connected holds it, and whoever listens hears the end.

use super::{Target, listen, statuses};
use std::{
    io::Write as _,
    net::TcpStream,
    time::{Duration, Instant},
};

impl Target {
    /// Somebody who listens to the events of a connection.
    fn listener(&self) -> TcpStream {
        let hello =
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
        let json = "Host: localhost\r\nContent-Type: application/json\r\n";
        let sized = format!("{json}Content-Length: {}\r\n\r\n{hello}", hello.len());
        let heard = self.ask_with_token("POST /acp", &sized);
        assert_eq!(statuses(&heard), [200], "{heard}");
        let id = heard.split("acp-connection-id: ").nth(1).unwrap().lines().next().unwrap();
        let mut stream = self.dial();
        let said = format!(
            "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Accept: text/event-stream\r\nAcp-Connection-Id: {id}\r\n\r\n",
            self.token
        );
        stream.write_all(said.as_bytes()).unwrap();
        stream
    }
}

#[test]
fn a_daemon_that_stops_waits_for_nobody_and_ends_what_is_open() {
    let target = Target::new();
    let mut listener = target.listener();
    let mut socket = target.socket();
    let mut silent = target.dial();
    let mut half = target.dial();
    half.write_all(b"POST /acp HTTP/1.1\r\nHost: local").unwrap();
    let mut stuck = target.dial();
    let body = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 99\r\n\r\n",
        target.token
    );
    stuck.write_all(body.as_bytes()).unwrap();
    target.serves_the_honest();
    let begun = Instant::now();
    target.daemon.stop();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    let heard = listen(&mut listener);
    assert!(heard.ends_with("0\r\n\r\n"), "the end of the events was not said: {heard:?}");
    let heard = listen(&mut socket);
    // 1001: going away. In the text the frame's first byte is not a letter.
    assert!(heard.contains("\u{3}\u{fffd}"), "no goodbye on the socket: {heard:?}");
    for stream in [&mut silent, &mut half, &mut stuck] {
        listen(stream);
    }
}
