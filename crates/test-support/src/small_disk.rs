//! A disk so small that it can be full.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

/// A file system in memory, mounted over a directory. The caller unmounts it.
#[derive(Debug)]
pub struct SmallDisk {
    filler: PathBuf,
}

impl SmallDisk {
    /// `None` only where it is not allowed; that is told.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub fn mount(at: &Path, bytes: u64) -> Option<SmallDisk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=700"), "jackfield"]).arg(at);
        let output = mount.output().expect("there is a `mount`");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let refused = ["permi", "denied", "superuser"];
            assert!(refused.iter().any(|it| why.contains(it)), "no disk: {why}");
            eprintln!("left out: a small disk is for root to mount. {}", why.trim());
            return None;
        }
        Some(SmallDisk { filler: at.join("filler") })
    }

    /// To the last byte.
    pub fn fill(&self) {
        let mut filler = File::create(&self.filler).expect("an empty file needs no room");
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::StorageFull => return,
                Err(why) => panic!("the disk is not full but broken: {why}"),
            }
        }
    }

    /// Takes back what `fill` put there.
    pub fn empty(&self) {
        fs::remove_file(&self.filler).expect("it was filled");
    }
}
