//! A unix socket that accepts clients with our uid. When its file was removed or replaced, it listens again
//! on the same path.

use crate::auth::Refusal;
use crate::listen::{AcceptFailure, BindError};
use crate::socket::{self, BACKLOG, Folder, FolderLock, SocketFile};
use crate::stream::Stream;
use jackfield_private_files as private_files;
use jackfield_wire::chain;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How long a daemon stays unreachable after its socket file was removed. Each check is one `lstat`.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What happens to the folder of a socket that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolder {
    /// The user made it and has to make it again.
    Report,
    /// It is a directory of our own.
    Create,
}

#[derive(Debug)]
pub(crate) struct UnixDoor {
    /// Before the listener: the file is removed first, so that a late client finds no daemon instead of
    /// one that ends. Absent if another process created the file.
    watch: Option<FileWatch>,
    listener: UnixListener,
}

/// Checks that the path of a socket leads to it.
#[derive(Debug)]
struct FileWatch {
    file: SocketFile,
    folder: Folder,
    missing_folder: MissingFolder,
    checks: Interval,
    /// Why the socket could not be created again; logged when it changes.
    last_error: Option<String>,
}

impl UnixDoor {
    pub(crate) fn bind(
        path: &Path,
        folder: Folder,
        missing_folder: MissingFolder,
    ) -> Result<UnixDoor, BindError> {
        let (listener, file) = socket::bind(path, folder, FolderLock::Wait)?;
        let mut checks = interval_at(Instant::now() + CHECK_EVERY, CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watch = FileWatch { file, folder, missing_folder, checks, last_error: None };
        Ok(UnixDoor { watch: Some(watch), listener })
    }

    /// A socket that listens already. Its file is neither created again nor removed.
    pub(crate) fn adopt(socket: OwnedFd) -> Result<(UnixDoor, PathBuf), BindError> {
        let unusable = |source| BindError::PassedSocket { source };
        let other = |why: &str| unusable(io::Error::other(why.to_owned()));
        let is_listening = sockopt::socket_acceptconn(&socket).map_err(|it| unusable(it.into()))?;
        let domain = sockopt::socket_domain(&socket).map_err(|it| unusable(it.into()))?;
        let kind = sockopt::socket_type(&socket).map_err(|it| unusable(it.into()))?;
        if !is_listening || (domain, kind) != (AddressFamily::UNIX, SocketType::STREAM) {
            return Err(other("it is not a unix stream socket that listens"));
        }
        // Clients see who called `listen` last: from now on this process.
        rustix::net::listen(&socket, BACKLOG).map_err(|it| unusable(it.into()))?;
        let listener = StdUnixListener::from(socket);
        let address = listener.local_addr().map_err(unusable)?;
        let path = address.as_pathname().ok_or_else(|| other("it has no path"))?.to_owned();
        listener.set_nonblocking(true).map_err(unusable)?;
        let listener = UnixListener::from_std(listener).map_err(unusable)?;
        Ok((UnixDoor { watch: None, listener }, path))
    }

    /// The next client; safe to cancel.
    pub(crate) async fn accept(&mut self) -> Result<Stream, AcceptFailure> {
        loop {
            let Some(watch) = &mut self.watch else { return accept(&self.listener).await };
            tokio::select! {
                biased;
                accepted = accept(&self.listener) => return accepted,
                _ = watch.checks.tick() => {
                    // Nobody can connect to a socket without a name: no client waits in the old one.
                    if let Some(listener) = watch.restore() {
                        self.listener = listener;
                    }
                }
            }
        }
    }
}

impl FileWatch {
    /// A new listener if the file is gone or belongs to another socket, and the path is free.
    fn restore(&mut self) -> Option<UnixListener> {
        if self.file.is_in_place() {
            return None;
        }
        let path = self.file.path().to_owned();
        match self.bind_again(&path) {
            Ok((listener, file)) => {
                (self.file, self.last_error) = (file, None);
                let socket = path.display();
                tracing::warn!(%socket, "the socket file was removed or replaced; it is created again");
                Some(listener)
            }
            Err(error) => {
                let why = chain(&error);
                if self.last_error.as_ref() != Some(&why) {
                    let socket = path.display();
                    tracing::error!(
                        %socket, why,
                        "the socket file was removed or replaced and cannot be created again; it is \
                         tried every second"
                    );
                    self.last_error = Some(why);
                }
                None
            }
        }
    }

    fn bind_again(&self, path: &Path) -> Result<(UnixListener, SocketFile), BindError> {
        if self.missing_folder == MissingFolder::Create {
            let folder = socket::folder_of(path);
            private_files::claim_dir(folder).map_err(|source| BindError::Io {
                path: path.to_owned(),
                attempted: "given a folder",
                source,
            })?;
        }
        socket::bind(path, self.folder, FolderLock::Try)
    }
}

async fn accept(listener: &UnixListener) -> Result<Stream, AcceptFailure> {
    let (stream, _) = listener.accept().await.map_err(AcceptFailure::System)?;
    let uid = socket::peer_uid(&stream).map_err(AcceptFailure::System)?;
    let ours = socket::our_uid();
    if uid == ours {
        return Ok(stream.into());
    }
    let refusal = Refusal::Stranger { uid, ours };
    // A fresh socket has room for one line; tokio does not know that yet.
    let _ = rustix::io::write(&stream, &refusal.line());
    Err(AcceptFailure::Peer(None, refusal))
}
