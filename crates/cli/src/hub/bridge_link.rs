//! How a bridge finds the daemon again.

use super::{
    BlockingSocket, BridgeHandle, CommandConnection, DaemonConnector, RunningTurns,
    single_request::peer_pid,
};
use crate::{
    out::{ColorMode, CommandOutput},
    report::CommandError,
};
use bytes::Bytes;
use jackfield_hub_client::ClientRelay;
use jackfield_protocol::Frame;
use std::{
    io,
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// How long a daemon at an address that was given with `--socket` may take to listen again.
const EXPLICIT_SECONDS_MAX: u64 = 10;
/// How long a daemon that closes its connections may take to exit.
const EXIT_MAX: Duration = Duration::from_secs(super::STOP_SECONDS_MAX);
/// How long a command waits at its end until its last messages are with the hub.
const SENT_MAX: Duration = Duration::from_secs(2);
/// How long the removal of its socket may take then.
const REMOVAL_MAX: Duration = Duration::from_millis(100);
/// How long `attach` waits for another daemon after its daemon was stopped.
const ATTACH_WAIT_MAX: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The connection of a bridge to its daemon.
pub(crate) trait BridgeLink {
    /// Reports to the user that the connection was lost, or that there is a new one. A line for the client is returned.
    fn report(&self, is_connected: bool) -> Option<Bytes>;

    /// Whether a daemon has to be started after the connection was lost: it was killed, not stopped.
    fn must_restart(&self, lost: &BlockingSocket) -> bool;

    /// Connects to a daemon; `None` if none runs and `must_start` is false.
    fn dial(&self, must_start: bool) -> Result<Option<BlockingSocket>, String>;

    /// After this time without a daemon the bridge ends; `None` if it stays.
    fn gives_up_after(&self) -> Option<Duration>;
}

/// A bridge to the daemon of this user, or to the one of `--socket`.
pub(crate) struct DaemonLink {
    pub(crate) connector: DaemonConnector,
    pub(crate) client: LinkClient,
}

/// For whom the bridge works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkClient {
    /// It stays until the editor closes it.
    Editor,
    /// It ends if no daemon can be reached.
    Terminal,
}

impl BridgeLink for DaemonLink {
    fn report(&self, is_connected: bool) -> Option<Bytes> {
        match self.client {
            LinkClient::Editor => self.connector.output.print_note(describe_link(is_connected)),
            LinkClient::Terminal => return Some(link_notice(is_connected).into_bytes()),
        }
        None
    }

    fn must_restart(&self, lost: &BlockingSocket) -> bool {
        self.connector.has_explicit_address() || !self.connector.was_stopped(lost)
    }

    fn dial(&self, must_start: bool) -> Result<Option<BlockingSocket>, String> {
        let dialed = match (must_start, self.connector.has_explicit_address()) {
            (true, false) => self.connector.dial_or_start().map(Some),
            (true, true) => self.connector.dial_explicit_again().map(Some),
            // It is not reported that a running daemon cannot be reached until the client needs it.
            (false, _) => Ok(self.connector.dial_if_running().ok().flatten()),
        };
        dialed.map_err(|error| {
            let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
            format!(
                "the daemon has ended and cannot be reached: {error}{}",
                cause.unwrap_or_default()
            )
        })
    }

    fn gives_up_after(&self) -> Option<Duration> {
        (self.client == LinkClient::Terminal).then_some(ATTACH_WAIT_MAX)
    }
}

/// The method with which the bridge of `attach` reports the connection to the command that prints it. It never leaves the
/// process.
const LINK_METHOD: &str = "daemon-link";

fn link_notice(is_connected: bool) -> Frame {
    Frame::notification(LINK_METHOD, &format!(r#"{{"connected":{is_connected}}}"#))
}

fn describe_link(is_connected: bool) -> &'static str {
    if is_connected { "reconnected to the daemon" } else { "the daemon has ended; reconnecting…" }
}

/// The text of a notice of the bridge; `None` if the frame is another one.
pub(super) fn parse_link_notice(frame: &Frame) -> Option<&'static str> {
    let is_notice = frame.method().is_some_and(|it| it == LINK_METHOD);
    is_notice.then(|| describe_link(*frame == link_notice(true)))
}

/// The bridge of a connection of this process.
pub(super) struct LocalBridge(Arc<BridgeHandle<UnixStream>>);

impl std::fmt::Debug for LocalBridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalBridge")
    }
}

impl LocalBridge {
    /// The connection is closed: what was sent on it must reach the hub before the process exits.
    pub(super) fn finish(&self) {
        self.0.wait_until_sent(SENT_MAX);
    }
}

/// A bridge to a hub in this process, which cannot be replaced.
pub(crate) struct InProcessLink;

impl BridgeLink for InProcessLink {
    fn report(&self, _: bool) -> Option<Bytes> {
        None
    }

    fn must_restart(&self, _: &BlockingSocket) -> bool {
        false
    }

    fn dial(&self, _: bool) -> Result<Option<BlockingSocket>, String> {
        Ok(None)
    }

    fn gives_up_after(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

impl DaemonConnector {
    /// Whether the daemon at the other end of a lost connection has stopped in order: it removes its socket then. Waits
    /// until it has exited.
    fn was_stopped(&self, lost: &BlockingSocket) -> bool {
        let pid = peer_pid(lost).and_then(|it| u32::try_from(it).ok());
        let until = Instant::now() + EXIT_MAX;
        while Instant::now() < until
            && self.find_lock_holder().ok().flatten().is_some_and(|it| it.pid == pid)
        {
            thread::sleep(POLL_INTERVAL);
        }
        let BlockingSocket::Unix(stream) = lost else { return false };
        let address = stream.peer_addr().ok();
        let path = address.as_ref().and_then(|it| it.as_pathname()).map(Path::to_owned);
        let Some(path) = path else { return false };
        let until = Instant::now() + REMOVAL_MAX;
        while path.exists() && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        !path.exists()
    }

    /// Connects to the address of `--socket` again.
    fn dial_explicit_again(&self) -> Result<BlockingSocket, CommandError> {
        let until = Instant::now() + Duration::from_secs(EXPLICIT_SECONDS_MAX);
        loop {
            match self.dial_or_start() {
                Err(CommandError::Unreachable(_)) if Instant::now() < until => {
                    thread::sleep(POLL_INTERVAL);
                }
                dialed => return dialed,
            }
        }
    }

    /// Connects to the daemon through a bridge in this process, so that the connection survives the end of the daemon.
    /// Notices about that arrive on the connection and are printed by it.
    pub(crate) fn dial_through_bridge(
        &self,
        output: &CommandOutput,
    ) -> Result<CommandConnection, CommandError> {
        let hub = self.dial_or_start()?;
        let (explicit_address, paths) = (self.explicit_address.clone(), self.paths.clone());
        let bridged = || -> io::Result<(UnixStream, LocalBridge)> {
            let (client, bridge_end) = UnixStream::pair()?;
            let (input, output) = (bridge_end.try_clone()?, bridge_end.try_clone()?);
            let seed = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
            let relay = ClientRelay::new(seed, &[]);
            let bridge = BridgeHandle::new(relay, hub, output, RunningTurns::Continue);
            let local = LocalBridge(bridge.clone());
            thread::Builder::new().name("daemon link".into()).spawn(move || {
                // The output of the command belongs to its thread.
                let output = CommandOutput::new(ColorMode::Never, true, 0);
                let connector = DaemonConnector { explicit_address, paths, output };
                bridge.run(input, &DaemonLink { connector, client: LinkClient::Terminal });
                let _already_closed = bridge_end.shutdown(Shutdown::Both);
            })?;
            Ok((client, local))
        };
        let (client, bridge) = bridged()
            .map_err(|source| CommandError::local("cannot relay messages to the daemon", source))?;
        let conn = CommandConnection::new(BlockingSocket::Unix(client), output)?;
        Ok(conn.with_bridge(bridge))
    }
}
