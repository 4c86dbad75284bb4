//! A unix socket that accepts clients with our uid. When its file was removed or replaced, it listens again
//! on the same path.

use crate::auth::Refusal;
use crate::listen::{AcceptFailure, BindError};
use crate::socket::{self, Folder, FolderLock, SocketFile};
use crate::stream::Stream;
use jackfield_private_files as private_files;
use jackfield_wire::chain;
use std::path::Path;
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
    /// one that ends.
    watch: FileWatch,
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
        Ok(UnixDoor { watch, listener })
    }

    /// The next client; safe to cancel.
    pub(crate) async fn accept(&mut self) -> Result<Stream, AcceptFailure> {
        loop {
            tokio::select! {
                biased;
                accepted = accept(&self.listener) => return accepted,
                _ = self.watch.checks.tick() => {
                    // Nobody can connect to a socket without a name: no client waits in the old one.
                    if let Some(listener) = self.watch.restore() {
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
