//! Every bound of ACP over the web, and why it is what it is. What the front as a whole holds its
//! clients to stands in `web::limits`.

use std::time::Duration;

/// The longest message of the hub: an agent's longest, inside a notice of ours.
pub(super) const HEARD_BYTES_MAX: usize = 64 << 20;

/// How often a quiet WebSocket is pinged: more often than proxies cut what is idle (30 s and up).
pub(super) const PING_EVERY: Duration = Duration::from_secs(20);
/// Three pings without any sign of life: a phone that changes its network is back sooner.
pub(super) const DEAD_AFTER: Duration = Duration::from_mins(1);
/// How long the client of a WebSocket may take to answer our goodbye.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);
/// Frames that are handed to a WebSocket before it is flushed: what arrived together leaves together.
pub(super) const BATCH_MAX: usize = 64;

/// What a WebSocket reads at once. Each has a buffer of this size, and clears all of it whenever its
/// task looks for more, which is with every message we send.
pub(super) const WS_READ_BYTES: usize = 8 << 10;

/// Connections over HTTP. Each is a socket to the hub; idle ones are ended, so that this many are in
/// use, or somebody forgets to use those it has.
pub(super) const CONNECTIONS_MAX: usize = 1024;
/// A connection nobody uses is ended after this time: no stream is open and nothing is posted, or a
/// full stream is read by nobody. A laptop that is closed for a moment finds it again; who comes later
/// goes on from the journal.
pub(super) const IDLE_AFTER: Duration = Duration::from_mins(5);
/// How often that is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Messages of the client on their way to the hub; more wait in their requests.
pub(super) const POSTED_MAX: usize = 16;
/// Streams of sessions a connection may have at once. An editor has a few; a console that shows
/// hundreds has no use for live updates of all of them.
pub(super) const SESSIONS_MAX: usize = 256;

/// What may wait unread in one stream. Then the hub is not read on, and keeps its place in the
/// journal; this much covers a reader's hiccup.
pub(super) const UNREAD_BYTES_MAX: usize = 256 << 10;
pub(super) const UNREAD_FRAMES_MAX: usize = 1024;
/// What is kept of what was handed out: about what is under way in a connection that breaks. Behind
/// it stands the journal. What the journal does not have, answers and asks, is kept apart from the
/// rest, so that a flood of updates does not push it out.
pub(super) const KEPT_BYTES_MAX: usize = 256 << 10;
pub(super) const KEPT_FRAMES_MAX: usize = 1024;

/// A piece of a stream: large enough to be cheap, small enough to be under way at once.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// A stream in which nothing happens says so, before a proxy takes it for dead.
pub(super) const STILL_HERE: Duration = Duration::from_secs(15);

const _: () = assert!(PING_EVERY.as_secs() < DEAD_AFTER.as_secs());
const _: () = assert!(LOOK_EVERY.as_secs() < IDLE_AFTER.as_secs());
