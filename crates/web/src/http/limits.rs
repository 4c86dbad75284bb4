//! Every limit of the web front with its reason.
//!
//! A connection is *unauthenticated* until one of its requests has presented a valid token.
//! Unauthenticated connections are limited in number, memory and time.

use jackfield_protocol::FRAME_BYTES_MAX;
use std::time::Duration;

/// A body for `/acp`: its message becomes a frame for the hub, which has the same limit.
pub const ACP_BODY_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// A body for other routes: a prompt with a few images.
pub const API_BODY_BYTES_MAX: usize = 4 << 20;
/// A request line with all its headers: a browser behind a proxy sends 8 KiB, and every
/// unauthenticated connection may use this much memory.
pub(super) const HEAD_BYTES_MAX: usize = 32 << 10;
/// A browser sends about 30 headers, and a proxy adds 10.
pub(super) const HEADERS_MAX: usize = 64;

/// The time limit for the TLS handshake, the first request and its token.
pub(super) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// The part of it that the handshake may take: three round trips around the world.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long HTTP/1.1 waits for the complete next request of an authenticated connection. Longer
/// than the pause between two clicks, shorter than the sleep of a laptop.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The time limit for the body of a request: 280 KB/s for the longest one.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// How long requests in progress may take when a connection is closing or the daemon stops.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Streams of one HTTP/2 connection: a client has one for each of its sessions.
pub(super) const STREAMS_MAX: u32 = 256;
/// Streams that a client opened and reset before we accepted them. A client that exceeds this gets
/// `ENHANCE_YOUR_CALM` and is disconnected.
pub(super) const RESETS_MAX: usize = 20;
/// Streams that we reset because of protocol errors before the client is disconnected.
pub(super) const FAULTS_MAX: usize = 64;
/// The bytes that a client may send on one stream, and on one connection, before they are read.
pub(super) const STREAM_WINDOW_BYTES: u32 = 256 << 10;
pub(super) const CONN_WINDOW_BYTES: u32 = 1 << 20;
/// The bytes that are buffered on one stream for a client that does not read.
pub(super) const SEND_BYTES_MAX: usize = 256 << 10;
/// When a silent peer is pinged, and how long it may take to answer.
pub(super) const PING_AFTER: Duration = Duration::from_secs(30);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Connections that the system queues until we accept them, so that a burst causes no
/// retransmission.
pub(super) const BACKLOG: i32 = 4096;
/// The limit of authenticated connections that one thread can serve.
const AUTHENTICATED_MAX: usize = 10_240;
/// Unauthenticated connections. Each uses about 16 KiB after its first bytes, so all use 16 MiB;
/// and each has 100 ms to present its token if 10,000 others arrive per second.
const UNAUTHENTICATED_MAX: usize = 1024;
/// One peer address may have this fraction of them: one in four.
const PEER_FRACTION: usize = 4;
/// The files of one client: its connection, and both ends of the connection to the hub.
const FILES_PER_CLIENT: usize = 3;

const _: () = assert!(API_BODY_BYTES_MAX <= ACP_BODY_BYTES_MAX);
const _: () = assert!(HANDSHAKE_TIMEOUT.as_secs() < AUTHENTICATION_TIMEOUT.as_secs());
const _: () = assert!(STREAM_WINDOW_BYTES <= CONN_WINDOW_BYTES);

/// The limits of concurrent connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub(super) authenticated: usize,
    pub(super) unauthenticated: usize,
    /// Of one peer address.
    pub(super) unauthenticated_per_peer: usize,
}

impl ConnectionLimits {
    /// The limits for a process with this limit of open files. Half of the files are reserved for
    /// agents, the journal and other listeners.
    pub(super) fn from_file_limit(files: usize) -> ConnectionLimits {
        let available = files / 2;
        let unauthenticated = UNAUTHENTICATED_MAX.min(available / 4).max(PEER_FRACTION);
        let authenticated = available.saturating_sub(unauthenticated) / FILES_PER_CLIENT;
        ConnectionLimits {
            authenticated: authenticated.clamp(1, AUTHENTICATED_MAX),
            unauthenticated,
            unauthenticated_per_peer: unauthenticated / PEER_FRACTION,
        }
    }

    /// The limits for this process.
    pub(super) fn of_this_process() -> ConnectionLimits {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        ConnectionLimits::from_file_limit(
            files.and_then(|it| it.try_into().ok()).unwrap_or(usize::MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_use_at_most_half_of_the_files() {
        for files in [64, 256, 1024, 4096, 20_000, 65_536, 1 << 20, usize::MAX] {
            let it = ConnectionLimits::from_file_limit(files);
            let most = it.authenticated * FILES_PER_CLIENT + it.unauthenticated;
            assert!(most <= files / 2, "{files}: {it:?}");
            assert!(0 < it.authenticated && 0 < it.unauthenticated_per_peer, "{files}: {it:?}");
            assert!(it.unauthenticated_per_peer < it.unauthenticated, "{files}: {it:?}");
        }
        let large = ConnectionLimits::from_file_limit(1 << 20);
        assert_eq!(
            (large.authenticated, large.unauthenticated),
            (AUTHENTICATED_MAX, UNAUTHENTICATED_MAX)
        );
    }
}
