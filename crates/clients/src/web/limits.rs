//! Every bound of the web front, and why it is what it is.
//!
//! A connection is a *stranger* until one of its requests has shown the token. Strangers are cheap,
//! few and gone soon; whoever has shown the token may stay.

use jackfield_wire::FRAME_BYTES_MAX;
use std::time::Duration;

/// One body for `/acp`: a message there is a frame of the hub, which takes as much.
pub const ACP_BODY_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// One body for everything else: a prompt with a few images in it.
pub const API_BODY_BYTES_MAX: usize = 4 << 20;
/// A request line with all its headers: a browser behind a proxy sends 8 KiB, and every stranger may
/// make us hold as much.
pub(super) const HEAD_BYTES_MAX: usize = 32 << 10;
/// A browser sends some 30 headers, a proxy adds 10.
pub(super) const HEADERS_MAX: usize = 64;

/// A stranger has this long for the TLS handshake, its request and its token: a client knows all of
/// them before it connects.
pub(super) const STRANGER_WITHIN: Duration = Duration::from_secs(10);
/// Of which the handshake may take this: three round trips around the world.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// How long HTTP/1.1 waits for the next request of somebody who has shown the token, until its last
/// byte. Longer than people pause between two clicks, shorter than a laptop sleeps.
pub(super) const IDLE_WITHIN: Duration = Duration::from_mins(1);
/// The whole body of a request: the longest one at 280 KB a second.
pub(super) const BODY_WITHIN: Duration = Duration::from_mins(1);
/// What is under way when a connection is to end, or the daemon stops, has this long to end well.
pub(super) const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// Streams of one HTTP/2 connection: a client listens on one for each of its sessions.
pub(super) const STREAMS_MAX: u32 = 256;
/// Streams that a client opened and reset before we had a look at them. One that does so more often
/// is told to calm down and cut off.
pub(super) const RESETS_MAX: usize = 20;
/// Streams that we reset because the client broke the rules; then it is cut off.
pub(super) const FAULTS_MAX: usize = 64;
/// What a client may send on one stream, and on all of one connection, before somebody reads it.
pub(super) const STREAM_WINDOW_BYTES: u32 = 256 << 10;
pub(super) const CONN_WINDOW_BYTES: u32 = 1 << 20;
/// What waits on one stream for a client that does not read.
pub(super) const SEND_BYTES_MAX: usize = 256 << 10;
/// A peer that says nothing is asked whether it is there, and has this long to answer.
pub(super) const PING_AFTER: Duration = Duration::from_secs(30);
pub(super) const PING_WITHIN: Duration = Duration::from_secs(20);

/// Connections the system keeps for us until we take them: a burst must not make anybody wait for a
/// second try.
pub(super) const BACKLOG: i32 = 4096;
/// Whatever the system allows, so many clients are not served by one thread.
const KNOWN_MAX: usize = 10_240;
/// Strangers at a time. One that has begun to speak is some 16 KiB of memory, so all of them are
/// 16 MiB; and each has 100 ms to show its token while 10,000 others arrive in a second.
const STRANGERS_MAX: usize = 1024;
/// Of which one address may be so many: one in four.
const ONE_PEER: usize = 4;
/// A client is a connection here, and both ends of one to the hub.
const FILES_A_CLIENT: usize = 3;

const _: () = assert!(API_BODY_BYTES_MAX <= ACP_BODY_BYTES_MAX);
const _: () = assert!(HANDSHAKE_WITHIN.as_secs() < STRANGER_WITHIN.as_secs());
const _: () = assert!(STREAM_WINDOW_BYTES <= CONN_WINDOW_BYTES);

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) known: usize,
    pub(super) strangers: usize,
    /// Of one peer address.
    pub(super) strangers_of_one: usize,
}

impl Capacity {
    /// With so many files the process may have open. Half of them are for agents, the journal and
    /// whoever comes by another door.
    pub(super) fn of(files: usize) -> Capacity {
        let ours = files / 2;
        let strangers = STRANGERS_MAX.min(ours / 4).max(ONE_PEER);
        let known = ours.saturating_sub(strangers) / FILES_A_CLIENT;
        Capacity {
            known: known.clamp(1, KNOWN_MAX),
            strangers,
            strangers_of_one: strangers / ONE_PEER,
        }
    }

    /// With what this process may have open now.
    pub(super) fn of_this_process() -> Capacity {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Capacity::of(files.and_then(|it| it.try_into().ok()).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_need_more_than_half_of_the_files() {
        for files in [64, 256, 1024, 4096, 20_000, 65_536, 1 << 20, usize::MAX] {
            let it = Capacity::of(files);
            let most = it.known * FILES_A_CLIENT + it.strangers;
            assert!(most <= files / 2, "{files}: {it:?}");
            assert!(0 < it.known && 0 < it.strangers_of_one, "{files}: {it:?}");
            assert!(it.strangers_of_one < it.strangers, "{files}: {it:?}");
        }
        let roomy = Capacity::of(1 << 20);
        assert_eq!((roomy.known, roomy.strangers), (KNOWN_MAX, STRANGERS_MAX));
    }
}
