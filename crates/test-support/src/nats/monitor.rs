//! Queries the HTTP monitoring endpoint of a server.

use serde_json::Value;
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The timeout of a query. A server that is stopped or cut off does not answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server accepts clients: it sends `INFO` first.
pub(super) fn accepts_clients(address: SocketAddr) -> bool {
    let greeting = || {
        let mut line = String::new();
        BufReader::new(connect(address)?).read_line(&mut line)?;
        io::Result::Ok(line.starts_with("INFO "))
    };
    greeting().unwrap_or(false)
}

/// Whether the server reports itself as healthy: its store is loaded and it has caught up.
pub(super) fn is_healthy(address: SocketAddr) -> bool {
    query(address, "/healthz").is_ok_and(|it| it["status"] == "ok")
}

/// The meta leader according to this server, which may be outdated.
pub(super) fn meta_leader(address: SocketAddr) -> Option<String> {
    let answer = query(address, "/jsz").ok()?;
    answer["meta_cluster"]["leader"].as_str().map(str::to_owned)
}

/// The leader of a stream according to this server.
pub(super) fn stream_leader(address: SocketAddr, stream: &str) -> Option<String> {
    let answer = query(address, "/jsz?streams=true").ok()?;
    let accounts = answer["account_details"].as_array()?.iter();
    let streams = accounts.filter_map(|it| it["stream_detail"].as_array()).flatten();
    let found = streams.into_iter().find(|it| it["name"] == stream)?;
    found["cluster"]["leader"].as_str().map(str::to_owned)
}

/// The number of connections to other servers; 0 if the server does not answer.
pub(super) fn route_count(address: SocketAddr) -> u64 {
    query(address, "/routez").ok().and_then(|it| it["num_routes"].as_u64()).unwrap_or(0)
}

fn query(address: SocketAddr, path: &str) -> io::Result<Value> {
    let mut stream = connect(address)?;
    // HTTP/1.0, so that the body is not chunked and the connection is closed after it.
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}
