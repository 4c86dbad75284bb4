//! An empty folder to run programs in, because some programs read or install files in their working
//! directory.

use std::{
    env, fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// A temporary folder that is removed with its contents when it is dropped.
#[derive(Debug)]
pub(super) struct ScratchFolder(PathBuf);

static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

impl ScratchFolder {
    pub(super) fn new() -> io::Result<ScratchFolder> {
        loop {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("jackfield-probe-{}-{number}", std::process::id());
            let path = env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                // Left over from an earlier process with the same pid.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| ScratchFolder(path)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the temporary folder.
        let _left = fs::remove_dir_all(&self.0);
    }
}
