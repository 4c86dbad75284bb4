//! Finding a daemon that runs but does not listen on the socket of this environment: the lock of the state
//! directory says whether one runs, and where it listens.

use super::{BlockingSocket, Dial, EndpointAddress};
use crate::report::Failure;
use jackfield_daemon::{LockHolder, find_holder};
use jackfield_transport::dial_daemon_blocking;
use std::{
    thread,
    time::{Duration, Instant},
};

/// A daemon that starts listens after a second at most, and one whose socket was removed creates it again
/// within a second.
const SOCKET_SECONDS_MAX: u64 = 5;
/// From when on a wait is worth a word.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Dial {
    /// The daemon that has the lock of the state directory, if one has it.
    pub(crate) fn find_holder(&self) -> Result<Option<LockHolder>, Failure> {
        let path = self.paths.lock();
        find_holder(&path).map_err(|source| {
            Failure::local(format!("cannot read the lock file `{}`", path.display()), source)
        })
    }

    /// A connection to the daemon that has the lock, where nothing listens on our own socket; `None` if no
    /// daemon has the lock.
    pub(super) fn connect_to_holder(&self) -> Result<Option<BlockingSocket>, Failure> {
        let ours = self.paths.socket();
        let limit = Duration::from_secs(SOCKET_SECONDS_MAX);
        let began = Instant::now();
        let mut noted = false;
        loop {
            let Some(holder) = self.find_holder()? else { return Ok(None) };
            // Another environment of the same user can have another runtime directory.
            let elsewhere = holder.socket.clone().filter(|it| *it != ours);
            for path in elsewhere.into_iter().chain([ours.clone()]) {
                match dial_daemon_blocking(&EndpointAddress::Unix(path), None) {
                    Ok(socket) => return Ok(Some(socket)),
                    Err(error) if error.is_absent() => {}
                    Err(error) => return Err(self.unreachable(error)),
                }
            }
            if limit <= began.elapsed() {
                return Err(self.no_socket(holder));
            }
            if !noted && PATIENCE <= began.elapsed() {
                noted = true;
                self.out.note("waiting for the socket of the daemon…");
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn no_socket(&self, holder: LockHolder) -> Failure {
        Failure::NoSocket {
            pid: holder.pid,
            lock: self.paths.lock(),
            socket: self.paths.socket(),
            elsewhere: holder.socket.filter(|it| *it != self.paths.socket()),
            log: self.paths.log(),
            seconds: SOCKET_SECONDS_MAX,
        }
    }
}
