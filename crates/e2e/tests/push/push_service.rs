//! A push service on loopback that answers each request as the test says.

use super::BOUND;
use jackfield_e2e::wait_for;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

pub(super) struct PushService {
    listener: TcpListener,
}

/// A request of the daemon.
pub(super) struct PushedMessage {
    /// Names in lowercase.
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl PushService {
    pub(super) fn start() -> PushService {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        PushService { listener }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}/subscription", self.listener.local_addr().unwrap())
    }

    /// Waits for a request and answers it with this status.
    pub(super) fn next_push(&self, status: u16) -> PushedMessage {
        let mut stream = self.accept();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "POST /subscription HTTP/1.1\r\n");
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut message = PushedMessage { headers, body: Vec::new() };
        message.body = vec![0; message.header("content-length").parse().unwrap()];
        reader.read_exact(&mut message.body).unwrap();
        let answer =
            format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
        message
    }

    fn accept(&self) -> TcpStream {
        wait_for("a request to the push service", BOUND, || self.listener.accept().ok()).0
    }
}

impl PushedMessage {
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map_or_else(|| panic!("no `{name}`: {:?}", self.headers), |it| &it.1)
    }
}
