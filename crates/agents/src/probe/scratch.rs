//! An empty folder to run programs in: some look around in the one they are started in, or install
//! things there.

use std::{
    env, fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// Removed with everything in it.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    pub(super) fn new() -> io::Result<Scratch> {
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("jackfield-probe-{}-{number}", std::process::id());
            let path = env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                // Of an earlier process with our number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Scratch(path)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What a program made unremovable stays in the temporary folder, where it does no harm.
        let _left = fs::remove_dir_all(&self.0);
    }
}
