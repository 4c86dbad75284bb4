//! The web front as an attacker meets it: the real binary, and sockets that say what they like.
//!
//! What lets in and what keeps out is checked side by side: an attack that fails for a reason of its
//! own proves nothing.

mod ends;
mod http2;
mod large;
mod logins;
mod logs;
mod many;
mod names;
mod secure;
mod shapes;

use jackfield_e2e::{Daemon, Home, http::listening_address, procs};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Every connection of a stranger is over by then, whatever it does: 10 seconds, a goodbye, and a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(15);
/// An honest client is served within this, whatever others do.
const PROMPT: Duration = Duration::from_secs(4);

/// A daemon with a web front.
struct Target {
    home: Home,
    daemon: Daemon,
    at: SocketAddr,
    token: String,
    /// Its memory before anything was done to it.
    memory: u64,
}

impl Target {
    fn new() -> Target {
        let home = Home::new();
        let daemon = home.serve(&["--listen", "http://127.0.0.1:0"]);
        let at = listening_address(&home, "http");
        let token = std::fs::read_to_string(home.path().join("state/token")).unwrap();
        let token = token.trim().to_owned();
        let mut target = Target { home, daemon, at, token, memory: 0 };
        target.serves_the_honest();
        target.memory = procs::allocated(target.daemon.pid());
        target
    }

    fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(GONE_WITHIN)).unwrap();
        stream.set_write_timeout(Some(GONE_WITHIN)).unwrap();
        stream
    }

    /// Says it on a connection of its own, and listens until the other side ends that.
    fn ask(&self, said: impl AsRef<[u8]>) -> String {
        let mut stream = self.dial();
        // It may be cut off before all of it was said.
        let _cut = stream.write_all(said.as_ref());
        listen(&mut stream)
    }

    /// A request with these headers beside the token.
    fn ask_with_token(&self, line: &str, headers: &str) -> String {
        self.ask(format!(
            "{line} HTTP/1.1\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{headers}\r\n",
            self.token
        ))
    }

    /// A WebSocket that is open.
    fn socket(&self) -> TcpStream {
        let mut stream = self.dial();
        let said = format!(
            "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{UPGRADE}\r\n",
            self.token
        );
        stream.write_all(said.as_bytes()).unwrap();
        let (mut heard, mut byte) = (Vec::new(), [0]);
        while !heard.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            heard.extend(byte);
        }
        assert_eq!(statuses(&String::from_utf8(heard).unwrap()), [101]);
        stream
    }

    /// Somebody who may come in comes in, and soon; returns how soon.
    fn serves_the_honest(&self) -> Duration {
        let begun = Instant::now();
        let heard = self.ask_with_token("GET /healthz", "Host: localhost\r\n");
        let took = begun.elapsed();
        assert_eq!(statuses(&heard), [200], "{heard}");
        assert!(took < PROMPT, "an honest client had to wait {took:?}");
        took
    }

    /// By so many bytes.
    fn grown(&self) -> u64 {
        procs::allocated(self.daemon.pid()).saturating_sub(self.memory)
    }

    /// Whatever was done to it, it is well, and has not grown by more than this.
    fn must_be_well(self, grown_max: u64) {
        self.serves_the_honest();
        let grown = self.grown();
        assert!(grown < grown_max, "it has grown by {grown} bytes");
        let said = self.home.said();
        assert!(!said.contains("panicked"), "{said}");
        assert!(!said.contains(&self.token), "the token is in the log");
        self.daemon.stop();
    }
}

/// All that is said until the end.
fn listen(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!late, "not closed: {}", String::from_utf8_lossy(&bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Of every answer. None of our bodies looks like the begin of one.
fn statuses(heard: &str) -> Vec<u16> {
    let answers = heard.split("HTTP/1.1 ").skip(1);
    answers.map(|it| it.get(..3).and_then(|it| it.parse().ok()).unwrap_or(0)).collect()
}

/// The headers of a WebSocket's first request, save who is asked and what is shown.
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
