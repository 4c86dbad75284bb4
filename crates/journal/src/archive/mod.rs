//! Where events are that are cold: segments in an object store, which is a directory or a bucket.
//!
//! A *segment* is one object with consecutive events of one stream (`segment.rs`). There is no index: a
//! segment's name says what it holds, and a listing finds it. Events never change, so two segments with the
//! same events in them do no harm; an event that is in none, and not in the log either, is lost. Whoever
//! takes events out of a log has to see to that.
//!
//! Nothing of this is touched unless an archive is opened.

mod segment;
mod shelf;

use crate::error::{Cause, Damage, OpenError};
use futures_util::{StreamExt as _, TryStreamExt as _};
use jackfield_private_files as private_files;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
pub(crate) use segment::{Segment, Sheaf, Span};
use shelf::Shelf;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

/// How long one request is tried. Whoever asked tries again, with more patience where nobody waits.
const RETRY_MAX: Duration = Duration::from_secs(10);
const RETRIES_MAX: usize = 3;

/// A variable that begins with this no agent gets to see, and it is stronger than the one without.
const OURS: &str = "JACKFIELD_";

/// How the name of the marker ends.
const MARKER: &str = ".archive-id";

pub(crate) struct Archive {
    store: Arc<dyn ObjectStore>,
    /// Where the store is if it is a directory: the store itself leaves modes to the umask.
    dir: Option<PathBuf>,
    /// Everything of the cell is below it.
    root: Path,
    /// Has the identity of the archive. It is beside the root, in which everything else is a stream.
    marker: Path,
    shelf: Mutex<Shelf>,
}

impl Archive {
    /// `file:///DIR` or `s3://BUCKET/PREFIX`. A directory is created only if that is wanted: one that was used and
    /// is missing is not mounted. A bucket is not asked yet whether it is there.
    pub(crate) fn open(url: &str, cell: &str, may_create: bool) -> Result<Archive, OpenError> {
        let text = |it: OsString| it.into_string().ok();
        let variables = std::env::vars_os();
        let variables = variables.filter_map(|(name, value)| text(name).zip(text(value)));
        Archive::open_with(url, cell, may_create, variables)
    }

    /// The same with these variables as its environment.
    pub(crate) fn open_with(
        url: &str,
        cell: &str,
        may_create: bool,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Archive, OpenError> {
        let failed = |source: Cause| OpenError::Archive { url: url.to_owned(), source };
        let dir = url.strip_prefix("file://").filter(|it| it.starts_with('/'));
        let (store, prefix): (Arc<dyn ObjectStore>, &str) = if let Some(dir) = dir {
            (Arc::new(directory(dir, may_create).map_err(failed)?), "")
        } else if let Some(rest) = url.strip_prefix("s3://").filter(|it| !it.is_empty()) {
            let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            (Arc::new(bucket(name, environment).map_err(|it| failed(Arc::new(it)))?), prefix)
        } else {
            let hint = "write it as `file:///DIR` or `s3://BUCKET/PREFIX`";
            return Err(failed(Box::<dyn std::error::Error + Send + Sync>::from(hint).into()));
        };
        let prefix = Path::parse(prefix).map_err(|it| failed(Arc::new(it)))?;
        let (root, marker) = (prefix.clone().join(cell), prefix.join(format!("{cell}{MARKER}")));
        Ok(Archive { store, dir: dir.map(PathBuf::from), root, marker, shelf: Mutex::default() })
    }

    /// What the marker says; none if there is no marker.
    pub(crate) async fn identity(&self) -> Result<Option<String>, Error> {
        match self.store.get(&self.marker).await {
            Ok(found) => {
                let text = found.bytes().await?;
                Ok(Some(String::from_utf8_lossy(&text).trim().to_owned()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the marker.
    pub(crate) async fn mark(&self, identity: &str) -> Result<(), Error> {
        self.write(&self.marker, identity.as_bytes().to_vec()).await
    }

    /// Puts an object for good. A directory that is missing is not created again.
    async fn write(&self, place: &Path, bytes: Vec<u8>) -> Result<(), Error> {
        let file = self.dir.as_ref().map(|dir| (dir, dir.join(place.as_ref())));
        if let Some((dir, file)) = &file {
            dir.metadata().map_err(local_failure)?;
            let folder = file.parent().expect("it is below the directory");
            private_files::create_dir(folder).map_err(local_failure)?;
        }
        self.store.put(place, bytes.into()).await?;
        if let Some((_, file)) = file {
            private_files::close_file(&file).map_err(local_failure)?;
        }
        Ok(())
    }

    fn folder(&self, folder: &str) -> Path {
        self.root.clone().join(folder)
    }

    fn place(&self, folder: &str, span: Span) -> Path {
        self.folder(folder).join(span.name())
    }

    /// Keeps a segment for good. Returns how many bytes it takes there.
    pub(crate) async fn put(&self, folder: &str, segment: Segment) -> Result<u64, Error> {
        let place = self.place(folder, segment.span());
        let packed = blocking(move || segment.pack()).await?;
        let bytes = packed.len() as u64;
        self.write(&place, packed).await?;
        Ok(bytes)
    }

    /// Removes a segment that should not have been put.
    pub(crate) async fn take_back(&self, folder: &str, span: Span) -> Result<(), Error> {
        absent_is_fine(self.store.delete(&self.place(folder, span)).await)
    }

    /// A segment with this event. What is there and cannot be read is damaged.
    pub(crate) async fn with(
        &self,
        folder: &str,
        seq: u64,
    ) -> Result<Result<Option<Segment>, Damage>, Error> {
        if let Some(segment) = self.shelf.lock().expect(POISONED).with(folder, seq) {
            return Ok(Ok(Some(segment)));
        }
        let mut listed = self.listed_from(folder, seq);
        let span = loop {
            match listed.try_next().await? {
                Some((span, _)) if span.holds(seq) => break span,
                Some(_) => {}
                None => return Ok(Ok(None)),
            }
        };
        let packed = self.store.get(&self.place(folder, span)).await?.bytes().await?;
        let segment = match blocking(move || Ok(Segment::unpack(span, &packed))).await? {
            Ok(segment) => segment,
            Err(damage) => return Ok(Err(damage)),
        };
        self.shelf.lock().expect(POISONED).put(folder, segment.clone());
        Ok(Ok(Some(segment)))
    }

    /// How far events are here without a gap, from this one on; none if it is not here itself.
    pub(crate) async fn end(&self, folder: &str, seq: u64) -> Result<Option<u64>, Error> {
        let mut spans: Vec<Span> =
            self.listed_from(folder, seq).map_ok(|(span, _)| span).try_collect().await?;
        spans.sort_unstable_by_key(|it| it.first);
        let mut end = None;
        for span in spans {
            if span.first <= end.map_or(seq, |it| it + 1) {
                end = end.max(Some(span.last));
            }
        }
        Ok(end)
    }

    /// Everything of a stream.
    pub(crate) async fn remove(&self, folder: &str) -> Result<(), Error> {
        self.shelf.lock().expect(POISONED).forget(folder);
        let all = self.store.list(Some(&self.folder(folder))).map_ok(|it| it.location).boxed();
        let mut removed = self.store.delete_stream(all);
        while let Some(one) = removed.next().await {
            absent_is_fine(one.map(drop))?;
        }
        Ok(())
    }

    /// How many bytes each stream has here, by its folder.
    pub(crate) async fn sizes(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut sizes = BTreeMap::new();
        let mut listed = self.store.list(Some(&self.root));
        while let Some(object) = listed.try_next().await? {
            let mut parts = object.location.prefix_match(&self.root).into_iter().flatten();
            if let Some(folder) = parts.next() {
                *sizes.entry(folder.as_ref().to_owned()).or_default() += object.size;
            }
        }
        Ok(sizes)
    }

    /// What of a stream ends at this event or behind it, each with its size; not always in order.
    fn listed_from(
        &self,
        folder: &str,
        seq: u64,
    ) -> impl futures_util::Stream<Item = Result<(Span, u64), Error>> + Unpin {
        let folder = self.folder(folder);
        let before = folder.clone().join(Span::before(seq));
        let listed = self.store.list_with_offset(Some(&folder), &before);
        let ours =
            |it: object_store::ObjectMeta| Some((Span::parse(it.location.filename()?)?, it.size));
        listed.try_filter_map(move |it| std::future::ready(Ok(ours(it))))
    }
}

fn local_failure(source: std::io::Error) -> Error {
    Error::Generic { store: "directory", source: Box::new(source) }
}

/// What is taken out of a log was on the disk first.
fn directory(dir: &str, may_create: bool) -> Result<LocalFileSystem, Cause> {
    if may_create {
        private_files::create_dir(dir.as_ref()).map_err(|it| -> Cause { Arc::new(it) })?;
    } else if !std::path::Path::new(dir).is_dir() {
        let why = "it has events of this fleet and is not there: mount its storage";
        return Err(Box::<dyn std::error::Error + Send + Sync>::from(why).into());
    }
    let store = LocalFileSystem::new_with_prefix(dir).map_err(|it| -> Cause { Arc::new(it) })?;
    Ok(store.with_fsync(true).with_automatic_cleanup(true))
}

/// Region, endpoint and credentials come from the variables that every program has them from, or from those
/// with our name in front.
fn bucket(
    name: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<impl ObjectStore, Error> {
    // It may have been chosen already; there is only this one.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_MAX,
        ..RetryConfig::default()
    };
    let mut builder = AmazonS3Builder::new().with_retry(retry);
    let (ours, general): (Vec<_>, Vec<_>) =
        environment.into_iter().partition(|(name, _)| name.starts_with(OURS));
    for (name, value) in general.into_iter().chain(ours) {
        let name = name.strip_prefix(OURS).unwrap_or(&name);
        if name.starts_with("AWS_")
            && let Ok(key) = name.to_ascii_lowercase().parse()
        {
            builder = builder.with_config(key, value);
        }
    }
    let endpoints = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
    let mut endpoints = endpoints.iter().filter_map(|it| builder.get_config_value(it));
    // Whoever writes `http://` means it.
    if endpoints.any(|it| it.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    builder.with_bucket_name(name).build()
}

fn absent_is_fine(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}

/// Work for the processor, away from the thread that serves the connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let generic = |source| Error::Generic { store: "segment", source };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|it| generic(Box::new(it))),
        Err(ended) => Err(generic(Box::new(ended))),
    }
}

const POISONED: &str = "nothing panics while it holds the shelf";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn segments_in_a_directory_and_their_folders_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cold");
        let archive =
            Archive::open_with(&format!("file://{}", root.display()), "cell", true, []).unwrap();
        let segment = Segment { first: 1, last: 1, body: "{}".into() };
        let file = root.join(archive.place("stream", segment.span()).as_ref());
        archive.put("stream", segment).await.unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        let dirs: Vec<u32> = file.ancestors().skip(1).take(3).map(mode).collect();
        assert_eq!((mode(&file), dirs), (0o600, vec![0o700; 3]));
    }
}
