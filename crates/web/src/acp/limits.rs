//! Every limit of ACP over the web with its reason. The limits of the whole web front are in
//! `http::limits`.

use std::time::Duration;

/// How often a WebSocket is pinged: more often than the idle timeout of proxies (30 s and up).
pub(super) const PING_EVERY: Duration = Duration::from_secs(20);
/// Three pings without any activity: a phone that changes its network is back sooner.
pub(super) const DEAD_AFTER: Duration = Duration::from_mins(1);
/// How long the client of a WebSocket may take to answer our close frame.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Frames that are written to a WebSocket before it is flushed, so that frames that arrived
/// together are sent together.
pub(super) const BATCH_MAX: usize = 64;

/// The read buffer of a WebSocket. The whole buffer is cleared whenever the task polls for input,
/// which is with every message that we send.
pub(super) const WS_READ_BYTES: usize = 8 << 10;

/// Connections over HTTP. Each is a socket to the hub. Idle ones are closed, so this is the number
/// of connections in use.
pub(super) const CONNECTIONS_MAX: usize = 1024;
/// An unused connection is closed after this time: no stream is open and nothing is posted, or a
/// full stream has no reader. A laptop that sleeps for a moment finds it again; later clients
/// continue from the journal.
pub(super) const IDLE_AFTER: Duration = Duration::from_mins(5);
/// How often connections are checked for that.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(15);
/// Messages of the client that are queued for the hub; further ones wait in their requests.
pub(super) const POSTED_MAX: usize = 16;
/// Session streams of one connection. An editor has a few; a console that shows hundreds of
/// sessions does not need live updates of all of them.
pub(super) const SESSIONS_MAX: usize = 256;

/// What may be unread in one stream. Beyond it the hub is not read, and keeps the position in the
/// journal; this much covers a short pause of the reader.
pub(super) const UNREAD_BYTES_MAX: usize = 256 << 10;
pub(super) const UNREAD_FRAMES_MAX: usize = 1024;
/// What is retained of delivered frames: about what is in transit when a connection breaks. Older
/// events are in the journal. Responses and requests, which the journal does not have, are retained
/// separately, so that many updates do not displace them.
pub(super) const RETAINED_BYTES_MAX: usize = 256 << 10;
pub(super) const RETAINED_FRAMES_MAX: usize = 1024;

/// The size of a chunk of a stream: large enough to be efficient, small enough to be sent at once.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// How often an idle stream sends a comment, so that a proxy does not close it.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

const _: () = assert!(PING_EVERY.as_secs() < DEAD_AFTER.as_secs());
const _: () = assert!(SWEEP_INTERVAL.as_secs() < IDLE_AFTER.as_secs());
