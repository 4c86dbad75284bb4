//! The journal on NATS JetStream, shared by many hosts: any host can read and claim the streams of
//! another.
//!
//! *The log is the lock.* Every message of a log names the position of the previous message, and
//! the server stores it only if that is still the last one, so two writers cannot both succeed. A
//! claim is such a message with a higher epoch. The previous writer finds its position taken, reads
//! the last message, and detects that it is fenced. No clock is involved.
//!
//! *An unknown outcome is looked up.* A request without an answer may have been executed. The last
//! message of the subject, read from the leader, shows whether it was.
//!
//! *A replica may lag behind.* Any replica answers bulk reads. The end of a log is read from the
//! leader first, and messages that are missing at the end are requested again.
//!
//! Files: `layout.rs` (names), `message.rs` (one message), `jetstream.rs` (requests), `log.rs`
//! (claim, append, delete), `ownership.rs` (owners of logs), `read.rs`, `summaries.rs` (summaries
//! and the list of streams), `blob.rs` (large events), `archive_identity.rs` (which archive belongs
//! to the cell), `archiving/` (moves one log to the archive), `archiver.rs` (selects the logs to
//! archive), `retention.rs` (expires streams).

mod archive_identity;
mod archiver;
mod archiving;
mod blob;
mod jetstream;
mod layout;
mod log;
mod message;
mod ownership;
mod read;
mod retention;
mod summaries;

use crate::{
    archive::{Archive, MissingDirectory},
    error::{AppendError, OpenError, ReadError, SharedError},
    record::{AppendRequest, StoredEvent},
    stream::{StreamClaim, StreamInfo},
};
pub use archiver::{ArchiveGauges, ArchivingReport, PeerHosts, StreamArchiver};
use async_nats::jetstream::stream::Config;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jackfield_nats_access::{NatsServers, StartError};
use jetstream::{JetStreamClient, NatsError};
pub use layout::{CellConfig, fnv1a_hash};
use log::LogTail;
pub use ownership::{AdoptError, AdoptedStream, LastWriter, StreamOwnership};
pub use retention::{ExpiredStreams, RetentionLimits};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};
pub use summaries::StreamPage;
use tokio::{runtime::Handle, sync::oneshot};

/// How long an append, a claim or a read is retried before it fails as unavailable. Shorter than an
/// election, so that waiting clients learn of the delay.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);
/// The number of JetStream streams that are created concurrently.
const CONCURRENT_CREATIONS_MAX: usize = 16;
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// The servers and the layout of a cell.
#[derive(Debug, Clone)]
pub struct CellAddress {
    pub servers: NatsServers,
    pub cell: CellConfig,
    /// The owner that claims are made for, so that other hosts can check whether it is alive.
    /// Unique for each start of a host, because the name alone does not identify the process.
    pub owner: Option<String>,
}

/// A connection to the cell on a thread of its own, because the rest of the journal has no async
/// runtime.
pub(crate) struct NatsJournal {
    pub(crate) store: Arc<NatsStore>,
    handle: Handle,
    /// Dropping the sender ends the thread.
    alive: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state that all tasks share.
pub(crate) struct NatsStore {
    /// For error messages, without credentials.
    servers: String,
    cell: CellConfig,
    jetstream: JetStreamClient,
    owner: Option<String>,
    /// The ends of the logs that this process writes.
    tails: Mutex<BTreeMap<Arc<str>, LogTail>>,
    /// Where the next read of a log may start.
    hints: Mutex<BTreeMap<Arc<str>, read::ReadHint>>,
    /// The latest summaries of the logs that this process writes.
    summaries: Mutex<BTreeMap<Arc<str>, summaries::SummaryVersion>>,
    archive: OnceLock<Archive>,
    archiving: archiver::ArchivingState,
}

impl NatsJournal {
    pub(crate) fn open(address: CellAddress) -> Result<NatsJournal, OpenError> {
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
        let (store, handle) = opened.recv().expect("the thread sends its result before it ends")?;
        Ok(NatsJournal { store, handle, alive: Some(alive), thread: Some(thread) })
    }

    /// Starts a task on the connection's thread.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Runs a task on the connection's thread. The result can be awaited on any runtime.
    fn run_task<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let (tx, done) = oneshot::channel();
        self.spawn(async move {
            let _ = tx.send(work.await);
        });
        async { done.await.expect("the thread outlives its users") }
    }

    /// Runs a task on the connection's thread and blocks until it ends. Must not be called on that
    /// thread.
    fn run_blocking<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (tx, done) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = tx.send(work.await);
        });
        done.recv().expect("the thread outlives its users")
    }

    pub(crate) fn claim_stream(&self, stream: &str) -> Result<StreamClaim, AppendError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.run_blocking(async move { store.claim_stream(&stream).await })
    }

    pub(crate) fn append_batch(&self, batch: &[AppendRequest]) -> Vec<Result<u64, AppendError>> {
        let (store, batch) = (self.store.clone(), batch.to_vec());
        self.run_blocking(async move { store.append_batch(batch).await })
    }

    pub(crate) fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.run_blocking(
            async move { store.read_events(&stream, after, events_max, bytes_max).await },
        )
    }

    pub(crate) fn list_streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        let store = self.store.clone();
        self.run_blocking(async move { store.list_streams().await })
    }

    fn open_archive(&self, url: &str) -> Result<(), OpenError> {
        let store = self.store.clone();
        let has_used = self.run_blocking(async move { store.has_used_archive().await });
        let has_used = has_used.map_err(|error| {
            let is_temporary = matches!(error, NatsError::Unknown(_));
            let source: SharedError = Arc::new(error);
            if is_temporary {
                OpenError::Unreachable { servers: self.store.servers.clone(), source }
            } else {
                OpenError::Archive { url: url.to_owned(), source }
            }
        })?;
        let missing_directory =
            if has_used { MissingDirectory::Refuse } else { MissingDirectory::Create };
        let archive = Archive::open(url, &self.store.cell.name, missing_directory)?;
        self.store.archive.set(archive).map_err(|_| {
            let source: SharedError =
                Arc::new(NatsError::Refused("an archive is already open".to_owned()));
            OpenError::Archive { url: url.to_owned(), source }
        })
    }

    pub(crate) fn delete_stream(&self, stream: &str) -> Result<(), AppendError> {
        let (store, stream): (_, Arc<str>) = (self.store.clone(), stream.into());
        self.run_blocking(async move { store.delete_stream(&stream).await })
    }
}

impl Drop for NatsJournal {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn connect(address: CellAddress) -> Result<NatsStore, OpenError> {
    let CellAddress { servers, cell, owner } = address;
    let urls = servers.redacted_urls();
    let failed = |error: StartError| {
        let (servers, is_temporary) = (urls.clone(), error.is_temporary());
        let source: SharedError = Arc::new(error);
        if is_temporary {
            OpenError::Unreachable { servers, source }
        } else {
            OpenError::Refused { servers, source }
        }
    };
    let connection = servers.connect().await.map_err(failed)?;
    let jetstream = JetStreamClient::new(connection.client.clone());
    let streams = stream::iter(cell.stream_configs()).map(Ok);
    let ensure = async |config: Config| jetstream.ensure_stream(&connection, &config).await;
    streams.try_for_each_concurrent(CONCURRENT_CREATIONS_MAX, ensure).await.map_err(failed)?;
    let (tails, hints, summaries) = Default::default();
    let (archive, archiving) = Default::default();
    let servers = urls;
    Ok(NatsStore { servers, cell, jetstream, owner, tails, hints, summaries, archive, archiving })
}
