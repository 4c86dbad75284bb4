//! One request on a socket that is handed on afterwards, and the process at the other end of it.

use super::BlockingSocket;
use crate::report::CommandError;
use jackfield_hub_client::HubMessage;
use jackfield_protocol::{Frame, acp::Method};
use serde_json::Value;
use std::{
    io::{self, Read as _, Write as _},
    time::Duration,
};

/// How long the hub itself may take to answer. It never waits for others, so a longer silence means that it hangs.
pub(super) const HUB_SECONDS_MAX: u64 = 10;

/// Sends one request on a new socket and waits for its response. No byte after the response is read, so the socket can
/// be handed on.
pub(crate) fn send_single_request(
    socket: &BlockingSocket,
    method: Method,
    params: &Value,
) -> Result<Value, CommandError> {
    send_single_request_within(socket, method, params, HUB_SECONDS_MAX)
}

/// [`send_single_request`] with another limit.
pub(crate) fn send_single_request_within(
    socket: &BlockingSocket,
    method: Method,
    params: &Value,
    seconds: u64,
) -> Result<Value, CommandError> {
    let waited_for = || format!("the response to `{}`", method.name());
    let io_failure = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            CommandError::NoReply { waited_for: waited_for(), seconds, pid: peer_pid(socket) }
        }
        _ => CommandError::ConnectionClosed { waited_for: waited_for() },
    };
    set_read_timeout(socket, Some(Duration::from_secs(seconds))).map_err(io_failure)?;
    let request = Frame::request("0", method.name(), &params.to_string());
    let mut connection = socket;
    connection.write_all(format!("{}\n", request.text()).as_bytes()).map_err(io_failure)?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte != *b"\n" {
        connection.read_exact(&mut byte).map_err(io_failure)?;
        line.push(byte[0]);
    }
    set_read_timeout(socket, None).map_err(io_failure)?;
    match HubMessage::parse(line.into()) {
        Some(HubMessage::Response(response)) => Ok(response.into_result()?),
        _ => Err(CommandError::local("the daemon sent an invalid frame", "it is not a response")),
    }
}

fn set_read_timeout(socket: &BlockingSocket, limit: Option<Duration>) -> io::Result<()> {
    match socket {
        BlockingSocket::Unix(stream) => stream.set_read_timeout(limit),
        BlockingSocket::Tcp(stream) => stream.set_read_timeout(limit),
    }
}

/// The pid of the process at the other end, if it runs on this machine.
pub(super) fn peer_pid(socket: &BlockingSocket) -> Option<i32> {
    jackfield_transport::peer_pid(socket)
}
