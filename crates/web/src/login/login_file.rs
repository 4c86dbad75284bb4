//! The file with links and devices. The daemon and the commands of the user change it; the daemon
//! reads it again when it has changed.

use super::stored_logins::StoredLogins;
use jackfield_private_files as private_files;
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// The file, and its content when it was last read.
#[derive(Debug)]
pub(super) struct LoginFile {
    path: PathBuf,
    last: Mutex<(FileStamp, Arc<StoredLogins>)>,
}

/// The attributes that show whether a file has changed.
type FileStamp = Option<(SystemTime, u64, u64)>;

impl LoginFile {
    pub(super) fn new(path: &Path) -> LoginFile {
        LoginFile { path: path.to_owned(), last: Mutex::default() }
    }

    /// Another file in the same directory.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// The current content. Nothing is accepted from a file that cannot be read.
    pub(super) fn read(&self) -> Arc<StoredLogins> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = file_stamp(&self.path);
        if stamp != last.0 {
            let content = read_logins(&self.path).unwrap_or_else(|error| {
                tracing::error!(%error, "failed to read the file of devices; all are logged out");
                StoredLogins::default()
            });
            *last = (stamp, Arc::new(content));
        }
        last.1.clone()
    }

    /// Changes the content and stores it, unless `change` fails. Other processes wait meanwhile.
    pub(super) fn change<T, E: From<io::Error>>(
        &self,
        change: impl FnOnce(&mut StoredLogins) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = private_files::lock_file(&self.path)?;
        let mut content = read_logins(&self.path)?;
        let result = change(&mut content)?;
        let text = serde_json::to_vec_pretty(&content).expect("plain data serializes");
        private_files::replace_file(&self.path, &text)?;
        Ok(result)
    }
}

fn read_logins(path: &Path) -> io::Result<StoredLogins> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| {
            let message = format!("`{}` is damaged, remove it: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredLogins::default()),
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", path.display());
            Err(io::Error::new(error.kind(), message))
        }
    }
}

fn file_stamp(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}
