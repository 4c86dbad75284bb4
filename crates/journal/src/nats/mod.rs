//! The journal on NATS JetStream, for many hosts: a stream that one host wrote another can read and claim.
//!
//! *The log is the lock.* Every message of a log names the place of the one before it, and the server
//! stores it only if that is still the last: two writers cannot both succeed. A claim is such a message,
//! of a higher epoch; whoever wrote before finds its place taken, looks, and knows that it is fenced. No
//! clock has a part in this.
//!
//! *An outcome that is unknown is looked up.* No answer may mean that it was stored. The last message of
//! the subject, asked of the leader, tells.
//!
//! *A replica may be late.* Reads in bulk are answered by any server. How far a log goes is asked of the
//! leader first, and what is missing at the end is asked for again.
//!
//! Files: `layout.rs` (names), `message.rs` (one message), `servers.rs` (requests), `log.rs` (claim,
//! append, delete), `owner.rs` (whose a log is), `read.rs`, `summary.rs` (what is beside the logs, and the list of them), `blob.rs`
//! (large events), `archive_identity.rs` (which archive is the right one), `cold.rs` (from a log to the archive), `curator.rs` (which logs, and when), `retain.rs` (what is not kept).

mod archive_identity;
mod blob;
mod cold;
mod curator;
mod layout;
mod log;
mod message;
mod owner;
mod read;
mod retain;
mod servers;
mod summary;

use crate::{
    archive::Archive,
    error::{AppendError, Cause, OpenError, ReadError},
    journal::{Claim, Stream},
    record::{Append, Event},
};
use async_nats::jetstream::stream::Config;
pub use curator::{ArchiveGauges, Curator, Fellows, Moved};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jackfield_nats_access::{NatsServers, StartError};
pub use layout::{Cell, fnv1a};
use log::Tail;
pub use owner::{AdoptError, Adopted, Owners, Writer};
pub use retain::{Expired, Retention};
use servers::{Servers, Trouble};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};
pub use summary::Page;
use tokio::{runtime::Handle, sync::oneshot};

/// How long to try before an append, a claim or a read is given up as unavailable. Shorter than an
/// election, so that whoever waits is told that it takes long.
const PATIENCE: Duration = Duration::from_secs(3);
/// JetStream streams that are made at the same time.
const MADE_AT_ONCE: usize = 16;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a cell is, and how it is laid out.
#[derive(Debug, Clone)]
pub struct Address {
    pub servers: NatsServers,
    pub cell: Cell,
    /// Who claims, so that others can tell whether the owner of a stream still lives. Unique for each
    /// start of a host: a name is no proof that it is the same process.
    pub owner: Option<String>,
}

/// A connection to the cell, on a thread of its own: the rest of the journal knows no async runtime.
pub(crate) struct Nats {
    pub(crate) store: Arc<Store>,
    handle: Handle,
    /// The thread ends when this is gone.
    alive: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What all tasks share.
pub(crate) struct Store {
    cell: Cell,
    servers: Servers,
    owner: Option<String>,
    /// Where the logs end that are written here.
    tails: Mutex<BTreeMap<Arc<str>, Tail>>,
    /// Where the next read of a log may begin.
    hints: Mutex<BTreeMap<Arc<str>, read::Hint>>,
    /// Where the summaries of the logs are that are written here.
    summaries: Mutex<BTreeMap<Arc<str>, summary::Kept>>,
    archive: OnceLock<Archive>,
    /// What is to be archived, and was.
    care: curator::Care,
}

impl Nats {
    pub(crate) fn open(address: Address) -> Result<Nats, OpenError> {
        let (opened_tx, opened) = mpsc::channel();
        let (alive, ended) = oneshot::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a process that cannot start a runtime cannot start");
            runtime.block_on(async {
                let store = connect(address).await.map(Arc::new);
                let is_open = store.is_ok();
                let _ = opened_tx.send(store.map(|it| (it, Handle::current())));
                if is_open {
                    let _ = ended.await;
                }
            });
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("journal-nats".into()).spawn(run);
        let thread = thread.expect("a process that cannot start a few threads cannot start");
        let (store, handle) = opened.recv().expect("the thread tells before it ends")?;
        Ok(Nats { store, handle, alive: Some(alive), thread: Some(thread) })
    }

    /// Starts something on the connection's thread.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Does something there; what is returned can be waited for on any runtime.
    fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let (tx, done) = oneshot::channel();
        self.spawn(async move {
            let _ = tx.send(work.await);
        });
        async { done.await.expect("the thread outlives whoever asks it") }
    }

    /// Does something there and waits for it. Never from that thread.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (tx, done) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = tx.send(work.await);
        });
        done.recv().expect("the thread outlives whoever asks it")
    }

    pub(crate) fn claim(&self, stream: &str) -> Result<Claim, AppendError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.wait(async move { store.claim(&stream).await })
    }

    pub(crate) fn append(&self, batch: &[Append]) -> Vec<Result<u64, AppendError>> {
        let (store, batch) = (self.store.clone(), batch.to_vec());
        self.wait(async move { store.append_all(batch).await })
    }

    pub(crate) fn read(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.wait(async move { store.read(&stream, after, events_max, bytes_max).await })
    }

    pub(crate) fn streams(&self) -> Result<Vec<Stream>, ReadError> {
        let store = self.store.clone();
        self.wait(async move { store.streams().await })
    }

    fn open_archive(&self, url: &str) -> Result<(), OpenError> {
        let store = self.store.clone();
        let used = self.wait(async move { store.has_used_archive().await });
        let used = used.map_err(|it| {
            let source: Cause = Arc::new(it);
            OpenError::Archive { url: url.to_owned(), source }
        })?;
        let archive = Archive::open(url, &self.store.cell.name, !used)?;
        self.store.archive.set(archive).map_err(|_| {
            let source: Cause = Arc::new(Trouble::Refused("there is one already".to_owned()));
            OpenError::Archive { url: url.to_owned(), source }
        })
    }

    pub(crate) fn delete(&self, stream: &str) -> Result<(), AppendError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.wait(async move { store.delete(&stream).await })
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn connect(address: Address) -> Result<Store, OpenError> {
    let Address { servers, cell, owner } = address;
    let shown = servers.shown();
    let failed = |error: StartError| {
        let (servers, is_temporary) = (shown.clone(), error.is_temporary());
        let source: Cause = Arc::new(error);
        if is_temporary {
            OpenError::Unreachable { servers, source }
        } else {
            OpenError::Refused { servers, source }
        }
    };
    let connection = servers.connect().await.map_err(failed)?;
    let servers = Servers::new(connection.client.clone());
    let streams = stream::iter(cell.streams()).map(Ok);
    let ensure = async |config: Config| servers.ensure(&connection, &config).await;
    streams.try_for_each_concurrent(MADE_AT_ONCE, ensure).await.map_err(failed)?;
    let (tails, hints, summaries) = Default::default();
    let (archive, care) = Default::default();
    Ok(Store { cell, servers, owner, tails, hints, summaries, archive, care })
}
