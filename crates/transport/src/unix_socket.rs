//! A unix socket that accepts clients with our uid. If its file is removed or replaced, it listens
//! again on the same path.

use crate::auth::AuthRefusal;
use crate::listen_error::{AcceptFailure, BindError};
use crate::socket::{self, BACKLOG, FolderLock, FolderRequirement, SocketFile};
use crate::socket_path::folder_of;
use crate::socket_system::{is_unix_listener, peer_uid};
use crate::stream::ClientStream;
use jackfield_private_files as private_files;
use jackfield_protocol::chain;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The interval of checks for a removed socket file. Each check is one `lstat`.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What to do if the folder of a socket was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolder {
    /// Report it: the user created the folder and must create it again.
    Report,
    /// Create it again: the folder is our own.
    Create,
}

#[derive(Debug)]
pub(crate) struct UnixSocketListener {
    /// Declared before the listener, so that the file is removed first: a late client then finds no
    /// daemon instead of one that is stopping. `None` if another process created the file.
    watch: Option<FileWatch>,
    listener: UnixListener,
}

/// Checks that the path of a socket still refers to it.
#[derive(Debug)]
struct FileWatch {
    file: SocketFile,
    folder: FolderRequirement,
    missing_folder: MissingFolder,
    checks: Interval,
    /// Why the socket could not be created again; logged when it changes.
    last_error: Option<String>,
}

impl UnixSocketListener {
    pub(crate) fn bind(
        path: &Path,
        folder: FolderRequirement,
        missing_folder: MissingFolder,
    ) -> Result<UnixSocketListener, BindError> {
        let (listener, file) = socket::bind(path, folder, FolderLock::Wait)?;
        let mut checks = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let watch = FileWatch { file, folder, missing_folder, checks, last_error: None };
        Ok(UnixSocketListener { watch: Some(watch), listener })
    }

    /// Takes over a socket that already listens. Its file is neither created again nor removed.
    pub(crate) fn adopt(socket: OwnedFd) -> Result<(UnixSocketListener, PathBuf), BindError> {
        let unusable = |source| BindError::PassedSocket { source };
        let other = |why: &str| unusable(io::Error::other(why.to_owned()));
        if !is_unix_listener(&socket).map_err(unusable)? {
            return Err(other("it is not a unix stream socket that listens"));
        }
        // Clients see the process that called `listen` last: from now on this one.
        rustix::net::listen(&socket, BACKLOG).map_err(|it| unusable(it.into()))?;
        let listener = StdUnixListener::from(socket);
        let address = listener.local_addr().map_err(unusable)?;
        let path = address.as_pathname().ok_or_else(|| other("it has no path"))?.to_owned();
        listener.set_nonblocking(true).map_err(unusable)?;
        let listener = UnixListener::from_std(listener).map_err(unusable)?;
        Ok((UnixSocketListener { watch: None, listener }, path))
    }

    /// The next client; safe to cancel.
    pub(crate) async fn accept(&mut self) -> Result<ClientStream, AcceptFailure> {
        loop {
            let Some(watch) = &mut self.watch else { return accept_own_user(&self.listener).await };
            tokio::select! {
                biased;
                accepted = accept_own_user(&self.listener) => return accepted,
                _ = watch.checks.tick() => {
                    // A socket without a file has no new clients, so none is waiting in the old
                    // one.
                    if let Some(listener) = watch.restore_listener() {
                        self.listener = listener;
                    }
                }
            }
        }
    }
}

impl FileWatch {
    /// Creates a new listener if the file was removed or belongs to another socket, and the path is
    /// free.
    fn restore_listener(&mut self) -> Option<UnixListener> {
        if self.file.is_in_place() {
            return None;
        }
        let path = self.file.path().to_owned();
        match self.bind_again(&path) {
            Ok((listener, file)) => {
                (self.file, self.last_error) = (file, None);
                let socket = path.display();
                tracing::warn!(%socket, "created the socket file again after it was removed or replaced");
                Some(listener)
            }
            Err(error) => {
                let why = chain(&error);
                if self.last_error.as_ref() != Some(&why) {
                    let socket = path.display();
                    tracing::error!(
                        %socket, why,
                        "failed to create the removed or replaced socket file again; retrying every \
                         second"
                    );
                    self.last_error = Some(why);
                }
                None
            }
        }
    }

    fn bind_again(&self, path: &Path) -> Result<(UnixListener, SocketFile), BindError> {
        if self.missing_folder == MissingFolder::Create {
            let folder = folder_of(path);
            private_files::ensure_private_dir(folder).map_err(|source| BindError::Io {
                path: path.to_owned(),
                attempted: "given a folder",
                source,
            })?;
        }
        socket::bind(path, self.folder, FolderLock::Try)
    }
}

async fn accept_own_user(listener: &UnixListener) -> Result<ClientStream, AcceptFailure> {
    let (stream, _) = listener.accept().await.map_err(AcceptFailure::System)?;
    let uid = peer_uid(&stream).map_err(AcceptFailure::System)?;
    let own_uid = socket::our_uid();
    if uid == own_uid {
        return Ok(stream.into());
    }
    let refusal = AuthRefusal::OtherUser { uid, own_uid };
    // A new socket has room for one line. tokio has not yet registered it as writable.
    let _ = rustix::io::write(&stream, &refusal.to_line());
    Err(AcceptFailure::Peer(None, refusal))
}
