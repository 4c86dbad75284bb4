//! What a server says about itself, over its own small HTTP.

use serde_json::Value;
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long one question may take. A server that is stopped or cut off answers none.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether it takes clients: it greets them first.
pub(super) fn greets(address: SocketAddr) -> bool {
    let greeting = || {
        let mut line = String::new();
        BufReader::new(connect(address)?).read_line(&mut line)?;
        io::Result::Ok(line.starts_with("INFO "))
    };
    greeting().unwrap_or(false)
}

/// Whether it calls itself well: its store is read, and it is as far as the others are.
pub(super) fn is_healthy(address: SocketAddr) -> bool {
    ask(address, "/healthz").is_ok_and(|it| it["status"] == "ok")
}

/// Whom it takes for the meta leader. It may be the last to hear that there is another one.
pub(super) fn meta_leader(address: SocketAddr) -> Option<String> {
    let answer = ask(address, "/jsz").ok()?;
    answer["meta_cluster"]["leader"].as_str().map(str::to_owned)
}

/// Whom it takes for the leader of a stream.
pub(super) fn stream_leader(address: SocketAddr, stream: &str) -> Option<String> {
    let answer = ask(address, "/jsz?streams=true").ok()?;
    let accounts = answer["account_details"].as_array()?.iter();
    let streams = accounts.filter_map(|it| it["stream_detail"].as_array()).flatten();
    let found = streams.into_iter().find(|it| it["name"] == stream)?;
    found["cluster"]["leader"].as_str().map(str::to_owned)
}

/// Connections with other servers; none while it does not answer.
pub(super) fn route_count(address: SocketAddr) -> u64 {
    ask(address, "/routez").ok().and_then(|it| it["num_routes"].as_u64()).unwrap_or(0)
}

fn ask(address: SocketAddr, path: &str) -> io::Result<Value> {
    let mut stream = connect(address)?;
    // The old version of the protocol, in which the answer is one piece and ends the connection.
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
