//! The archive: cold events as segments in an object store, which is a directory or a bucket.
//!
//! A *segment* is one object with consecutive events of one stream (`segment.rs`). There is no
//! index: the name of a segment contains its range, and a listing finds it. Events never change, so
//! two segments that contain the same events do no harm. An event that is neither in a segment nor
//! in the log is lost; the code that removes events from a log must prevent that.
//!
//! Nothing of this is used unless an archive is opened.

mod segment;
mod segment_cache;

use crate::error::{OpenError, RecordDamage, SharedError};
use futures_util::{StreamExt as _, TryStreamExt as _};
use jackfield_private_files as private_files;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
pub(crate) use segment::{EventRange, Segment, SegmentBuilder};
use segment_cache::SegmentCache;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

/// How long one request is retried. Callers retry as well, and longer in the background.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES_MAX: usize = 3;

/// A variable with this prefix is not passed to agents and takes precedence over the one without.
const VARIABLE_PREFIX: &str = "JACKFIELD_";

/// The suffix of the marker's name.
const MARKER_SUFFIX: &str = ".archive-id";

/// What to do if the directory of an archive does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingDirectory {
    Create,
    /// The archive contains events, so a missing directory is not mounted.
    Refuse,
}

pub(crate) struct Archive {
    store: Arc<dyn ObjectStore>,
    /// The directory of the store, if it is one. The store itself leaves file modes to the umask.
    dir: Option<PathBuf>,
    /// The parent of all objects of the cell.
    root: Path,
    /// Contains the identity of the archive. It is next to the root, in which all other names are
    /// streams.
    marker: Path,
    cache: Mutex<SegmentCache>,
}

impl Archive {
    /// Opens `file:///DIR` or `s3://BUCKET/PREFIX`. Does not check whether a bucket exists.
    pub(crate) fn open(
        url: &str,
        cell: &str,
        missing_directory: MissingDirectory,
    ) -> Result<Archive, OpenError> {
        let to_text = |it: OsString| it.into_string().ok();
        let variables = std::env::vars_os();
        let variables = variables.filter_map(|(name, value)| to_text(name).zip(to_text(value)));
        Archive::open_with_environment(url, cell, missing_directory, variables)
    }

    /// Like [`open`](Archive::open) with these environment variables.
    pub(crate) fn open_with_environment(
        url: &str,
        cell: &str,
        missing_directory: MissingDirectory,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Archive, OpenError> {
        let failed = |source: SharedError| OpenError::Archive { url: url.to_owned(), source };
        let dir = url.strip_prefix("file://").filter(|it| it.starts_with('/'));
        let (store, prefix): (Arc<dyn ObjectStore>, &str) = if let Some(dir) = dir {
            (Arc::new(open_directory(dir, missing_directory).map_err(failed)?), "")
        } else if let Some(rest) = url.strip_prefix("s3://").filter(|it| !it.is_empty()) {
            let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            (Arc::new(open_bucket(name, environment).map_err(|it| failed(Arc::new(it)))?), prefix)
        } else {
            let hint = "write it as `file:///DIR` or `s3://BUCKET/PREFIX`";
            return Err(failed(Box::<dyn std::error::Error + Send + Sync>::from(hint).into()));
        };
        let prefix = Path::parse(prefix).map_err(|it| failed(Arc::new(it)))?;
        let root = prefix.clone().join(cell);
        let marker = prefix.join(format!("{cell}{MARKER_SUFFIX}"));
        Ok(Archive { store, dir: dir.map(PathBuf::from), root, marker, cache: Mutex::default() })
    }

    /// Reads the identity in the marker. `None` if there is no marker.
    pub(crate) async fn read_identity(&self) -> Result<Option<String>, Error> {
        match self.store.get(&self.marker).await {
            Ok(object) => {
                let text = object.bytes().await?;
                Ok(Some(String::from_utf8_lossy(&text).trim().to_owned()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn write_marker(&self, identity: &str) -> Result<(), Error> {
        self.write_object(&self.marker, identity.as_bytes().to_vec()).await
    }

    /// Writes an object durably. Does not create a missing archive directory.
    async fn write_object(&self, path: &Path, bytes: Vec<u8>) -> Result<(), Error> {
        let file = self.dir.as_ref().map(|dir| (dir, dir.join(path.as_ref())));
        if let Some((dir, file)) = &file {
            dir.metadata().map_err(directory_error)?;
            let folder = file.parent().expect("it is below the directory");
            private_files::create_dir(folder).map_err(directory_error)?;
        }
        self.store.put(path, bytes.into()).await?;
        if let Some((_, file)) = file {
            private_files::restrict_file(&file).map_err(directory_error)?;
        }
        Ok(())
    }

    fn folder_path(&self, folder: &str) -> Path {
        self.root.clone().join(folder)
    }

    fn segment_path(&self, folder: &str, range: EventRange) -> Path {
        self.folder_path(folder).join(range.object_name())
    }

    /// Stores a segment durably. Returns its compressed size.
    pub(crate) async fn store_segment(&self, folder: &str, segment: Segment) -> Result<u64, Error> {
        let path = self.segment_path(folder, segment.range());
        let compressed = run_blocking(move || segment.compress()).await?;
        let bytes = compressed.len() as u64;
        self.write_object(&path, compressed).await?;
        Ok(bytes)
    }

    pub(crate) async fn remove_segment(
        &self,
        folder: &str,
        range: EventRange,
    ) -> Result<(), Error> {
        ignore_not_found(self.store.delete(&self.segment_path(folder, range)).await)
    }

    /// Reads the segment that contains this event. A segment that cannot be decompressed is
    /// damaged.
    pub(crate) async fn read_segment(
        &self,
        folder: &str,
        seq: u64,
    ) -> Result<Result<Option<Segment>, RecordDamage>, Error> {
        if let Some(segment) = self.cache.lock().expect(POISONED).find_segment(folder, seq) {
            return Ok(Ok(Some(segment)));
        }
        let mut ranges = self.list_ranges_from(folder, seq);
        let range = loop {
            match ranges.try_next().await? {
                Some(range) if range.contains(seq) => break range,
                Some(_) => {}
                None => return Ok(Ok(None)),
            }
        };
        let compressed = self.store.get(&self.segment_path(folder, range)).await?.bytes().await?;
        let decompress = move || Ok(Segment::decompress(range, &compressed));
        let segment = match run_blocking(decompress).await? {
            Ok(segment) => segment,
            Err(damage) => return Ok(Err(damage)),
        };
        self.cache.lock().expect(POISONED).insert(folder, segment.clone());
        Ok(Ok(Some(segment)))
    }

    /// The last event that the archive contains without a gap from this one on. `None` if it does
    /// not contain this event.
    pub(crate) async fn find_last_contiguous(
        &self,
        folder: &str,
        seq: u64,
    ) -> Result<Option<u64>, Error> {
        let mut ranges: Vec<EventRange> = self.list_ranges_from(folder, seq).try_collect().await?;
        ranges.sort_unstable_by_key(|it| it.first);
        let mut last = None;
        for range in ranges {
            if range.first <= last.map_or(seq, |it| it + 1) {
                last = last.max(Some(range.last));
            }
        }
        Ok(last)
    }

    /// Removes all segments of a stream.
    pub(crate) async fn remove_stream(&self, folder: &str) -> Result<(), Error> {
        self.cache.lock().expect(POISONED).remove_stream(folder);
        let objects = self.store.list(Some(&self.folder_path(folder)));
        let paths = objects.map_ok(|it| it.location).boxed();
        let mut removals = self.store.delete_stream(paths);
        while let Some(removal) = removals.next().await {
            ignore_not_found(removal.map(drop))?;
        }
        Ok(())
    }

    /// The size of each stream in bytes, by its folder.
    pub(crate) async fn list_stream_sizes(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut sizes = BTreeMap::new();
        let mut objects = self.store.list(Some(&self.root));
        while let Some(object) = objects.try_next().await? {
            let mut parts = object.location.prefix_match(&self.root).into_iter().flatten();
            if let Some(folder) = parts.next() {
                *sizes.entry(folder.as_ref().to_owned()).or_default() += object.size;
            }
        }
        Ok(sizes)
    }

    /// The segments of a stream that end at this event or after it. They are not always in order.
    fn list_ranges_from(
        &self,
        folder: &str,
        seq: u64,
    ) -> impl futures_util::Stream<Item = Result<EventRange, Error>> + Unpin {
        let folder = self.folder_path(folder);
        let offset = folder.clone().join(EventRange::list_offset(seq));
        let objects = self.store.list_with_offset(Some(&folder), &offset);
        let parse =
            |it: object_store::ObjectMeta| EventRange::parse_object_name(it.location.filename()?);
        objects.try_filter_map(move |it| std::future::ready(Ok(parse(it))))
    }
}

fn directory_error(source: std::io::Error) -> Error {
    Error::Generic { store: "directory", source: Box::new(source) }
}

/// Opens a directory as a store. Writes are synced, because events are removed from the log
/// afterwards.
fn open_directory(
    dir: &str,
    missing_directory: MissingDirectory,
) -> Result<LocalFileSystem, SharedError> {
    if missing_directory == MissingDirectory::Create {
        private_files::create_dir(dir.as_ref()).map_err(|it| -> SharedError { Arc::new(it) })?;
    } else if !std::path::Path::new(dir).is_dir() {
        let message =
            "the directory contains events of this fleet and does not exist: mount its storage";
        return Err(Box::<dyn std::error::Error + Send + Sync>::from(message).into());
    }
    let store =
        LocalFileSystem::new_with_prefix(dir).map_err(|it| -> SharedError { Arc::new(it) })?;
    Ok(store.with_fsync(true).with_automatic_cleanup(true))
}

/// Opens an S3 bucket. Region, endpoint and credentials come from the usual `AWS_` variables, or
/// from those with [`VARIABLE_PREFIX`].
fn open_bucket(
    name: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<impl ObjectStore, Error> {
    // An error means that a provider is already installed, and this is the only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    };
    let mut builder = AmazonS3Builder::new().with_retry(retry);
    let (prefixed, general): (Vec<_>, Vec<_>) =
        environment.into_iter().partition(|(name, _)| name.starts_with(VARIABLE_PREFIX));
    for (name, value) in general.into_iter().chain(prefixed) {
        let name = name.strip_prefix(VARIABLE_PREFIX).unwrap_or(&name);
        if name.starts_with("AWS_")
            && let Ok(key) = name.to_ascii_lowercase().parse()
        {
            builder = builder.with_config(key, value);
        }
    }
    let endpoints = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
    let mut endpoints = endpoints.iter().filter_map(|it| builder.get_config_value(it));
    // An explicit `http://` endpoint permits unencrypted requests.
    if endpoints.any(|it| it.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    builder.with_bucket_name(name).build()
}

fn ignore_not_found(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}

/// Runs CPU-bound work off the thread that serves the connections.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let to_error = |source| Error::Generic { store: "segment", source };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|it| to_error(Box::new(it))),
        Err(panicked) => Err(to_error(Box::new(panicked))),
    }
}

const POISONED: &str = "nothing panics while it holds the cache";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn segments_in_a_directory_and_their_folders_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cold");
        let url = format!("file://{}", root.display());
        let archive =
            Archive::open_with_environment(&url, "cell", MissingDirectory::Create, []).unwrap();
        let segment = Segment { first: 1, last: 1, body: "{}".into() };
        let file = root.join(archive.segment_path("stream", segment.range()).as_ref());
        archive.store_segment("stream", segment).await.unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        let dirs: Vec<u32> = file.ancestors().skip(1).take(3).map(mode).collect();
        assert_eq!((mode(&file), dirs), (0o600, vec![0o700; 3]));
    }
}
