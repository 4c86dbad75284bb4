//! A small file system that a test can fill.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

/// A tmpfs, mounted over a directory. The caller unmounts it.
#[derive(Debug)]
pub struct SmallDisk {
    filler: PathBuf,
}

impl SmallDisk {
    /// Returns `None`, and prints so, if it lacks permission.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported")]
    pub fn mount(at: &Path, bytes: u64) -> Option<SmallDisk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=700"), "jackfield"]).arg(at);
        let output = mount.output().expect("there is a `mount`");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let refused = ["permi", "denied", "superuser"];
            assert!(refused.iter().any(|it| why.contains(it)), "cannot mount a disk: {why}");
            eprintln!("skipped: mounting a small disk needs root. {}", why.trim());
            return None;
        }
        Some(SmallDisk { filler: at.join("filler") })
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        let mut filler = File::create(&self.filler).expect("an empty file needs no space");
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::StorageFull => return,
                Err(why) => panic!("cannot write to the disk: {why}"),
            }
        }
    }

    /// Removes what `fill` wrote.
    pub fn empty(&self) {
        fs::remove_file(&self.filler).expect("it was filled");
    }
}
