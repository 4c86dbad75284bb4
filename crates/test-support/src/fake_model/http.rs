//! The subset of HTTP/1.1 that model clients use: complete requests in, JSON or server-sent events out.

use std::{
    io,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use serde_json::Value;

const HEAD_BYTES_MAX: u64 = 64 * 1024;
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Reads the next request of a connection; `None` at its end.
    pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<HttpRequest>> {
        let mut head = stream.take(HEAD_BYTES_MAX);
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(io::Error::other("no request line"));
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = HttpRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let mut line = String::new();
            head.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if request.header("expect").is_some() {
            stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = request.read_body(stream)?;
        Ok(Some(request))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn wants_close(&self) -> bool {
        self.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"))
    }

    fn read_body(&self, stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.header("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
            while read_chunk(stream, &mut body)? {}
            return Ok(body);
        }
        let length = self.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        if BODY_BYTES_MAX < length {
            return Err(io::Error::other("the body is too long"));
        }
        stream.take(length).read_to_end(&mut body)?;
        Ok(body)
    }
}

/// Reads one chunk; returns whether more follow.
fn read_chunk(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<bool> {
    let mut line = String::new();
    stream.take(HEAD_BYTES_MAX).read_line(&mut line)?;
    let size = line.trim_end().split(';').next().unwrap_or_default();
    let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
    if BODY_BYTES_MAX < size + body.len() as u64 {
        return Err(io::Error::other("the body is too long"));
    }
    stream.take(size).read_to_end(body)?;
    line.clear();
    stream.take(HEAD_BYTES_MAX).read_line(&mut line)?;
    Ok(0 < size)
}

/// Sends a complete response; `header` is an additional header line, or empty.
pub(crate) fn send_json(
    stream: &mut TcpStream,
    status: u16,
    header: &str,
    body: &Value,
) -> io::Result<()> {
    let end = if header.is_empty() { "" } else { "\r\n" };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\n{header}{end}\
         content-length: {}\r\n\r\n",
        reason(status),
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Sends a response without a body.
pub(crate) fn send_head(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
}

/// A stream of server-sent events, one HTTP chunk each.
pub(crate) struct EventStream<'a> {
    stream: &'a mut TcpStream,
}

impl<'a> EventStream<'a> {
    pub(crate) fn start(stream: &'a mut TcpStream) -> io::Result<EventStream<'a>> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        Ok(EventStream { stream })
    }

    pub(crate) fn data(&mut self, data: &str) -> io::Result<()> {
        self.chunk(&format!("data: {data}\n\n"))
    }

    pub(crate) fn named(&mut self, name: &str, data: &str) -> io::Result<()> {
        self.chunk(&format!("event: {name}\ndata: {data}\n\n"))
    }

    pub(crate) fn comment(&mut self) -> io::Result<()> {
        self.chunk(": still here\n\n")
    }

    pub(crate) fn end(self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Fake",
    }
}
