//! Who holds a lock of `flock`, from `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whether this process holds the lock of `flock` on the file. A process that has ended does not.
pub fn holds_lock(pid: u32, file: &Path) -> bool {
    let Ok(lock) = fs::metadata(file) else { return false };
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    open.flatten().any(|entry| {
        let is_lock = fs::metadata(entry.path())
            .is_ok_and(|it| (it.dev(), it.ino()) == (lock.dev(), lock.ino()));
        is_lock && is_locked(pid, &entry.file_name())
    })
}

/// Whether a lock of `flock` was taken with this descriptor of a process.
fn is_locked(pid: u32, descriptor: &OsStr) -> bool {
    let path = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(descriptor);
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|it| it.starts_with("lock:") && it.contains("FLOCK"))
}
