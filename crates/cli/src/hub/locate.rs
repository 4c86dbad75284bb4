//! Finds a daemon that runs but does not listen on the socket of this environment. The lock file of the state
//! directory shows whether a daemon runs and where it listens.

use super::{BlockingSocket, DaemonConnector, EndpointAddress};
use crate::report::CommandError;
use jackfield_daemon::{LockHolder, find_holder};
use jackfield_transport::dial_daemon_blocking;
use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// How long to wait for the socket. A daemon listens within a second of its start, and creates a removed socket again
/// within a second.
const SOCKET_SECONDS_MAX: u64 = 5;
/// After this time the user is told what the command waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

impl DaemonConnector {
    /// The daemon that holds the lock of the state directory, if one does.
    pub(crate) fn find_lock_holder(&self) -> Result<Option<LockHolder>, CommandError> {
        let path = self.paths.lock();
        find_holder(&path).map_err(|source| {
            CommandError::local(format!("cannot read the lock file `{}`", path.display()), source)
        })
    }

    /// The socket that the lock file records, if it is not the one of this environment: the daemon was started with
    /// another runtime directory.
    fn recorded_socket(&self) -> Option<PathBuf> {
        // A lock file that cannot be read is reported when nothing listens on the default socket either.
        let socket = self.find_lock_holder().ok().flatten()?.socket?;
        (socket != self.paths.socket()).then_some(socket)
    }

    /// Connects to the socket that the lock file records; `None` if it is the default one, or nothing listens there.
    /// It takes precedence over the default socket, where a daemon with another state directory may listen.
    pub(super) fn dial_recorded_socket(&self) -> Result<Option<BlockingSocket>, CommandError> {
        let Some(path) = self.recorded_socket() else { return Ok(None) };
        match dial_daemon_blocking(&EndpointAddress::Unix(path), None) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(self.dial_failure(error)),
        }
    }

    /// Connects to the daemon that holds the lock when nothing listens on the default socket; `None` if no daemon
    /// holds the lock.
    pub(super) fn dial_lock_holder(&self) -> Result<Option<BlockingSocket>, CommandError> {
        let default_socket = self.paths.socket();
        let limit = Duration::from_secs(SOCKET_SECONDS_MAX);
        let started_at = Instant::now();
        let mut notice_printed = false;
        loop {
            let Some(holder) = self.find_lock_holder()? else { return Ok(None) };
            // The daemon may have been started with another runtime directory.
            let elsewhere = holder.socket.clone().filter(|it| *it != default_socket);
            for path in elsewhere.into_iter().chain([default_socket.clone()]) {
                match dial_daemon_blocking(&EndpointAddress::Unix(path), None) {
                    Ok(socket) => return Ok(Some(socket)),
                    Err(error) if error.is_absent() => {}
                    Err(error) => return Err(self.dial_failure(error)),
                }
            }
            if limit <= started_at.elapsed() {
                return Err(self.no_socket_error(holder));
            }
            if !notice_printed && NOTICE_DELAY <= started_at.elapsed() {
                notice_printed = true;
                self.output.print_note("waiting for the daemon's socket…");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn no_socket_error(&self, holder: LockHolder) -> CommandError {
        CommandError::NoSocket {
            pid: holder.pid,
            lock: self.paths.lock(),
            socket: self.paths.socket(),
            elsewhere: holder.socket.filter(|it| *it != self.paths.socket()),
            log: self.paths.log(),
            seconds: SOCKET_SECONDS_MAX,
        }
    }
}
