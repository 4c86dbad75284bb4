//! Walking through directories as git would: what it ignores is left out, links are not followed.

use super::{Site, files::Target};
use ignore::{DirEntry, WalkBuilder};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Told to a thread that searches: nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Flag(Arc<AtomicBool>);

/// Raises the flag when it is dropped.
pub(super) struct Raise(Flag);

impl Flag {
    pub(super) fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn raise_on_drop(&self) -> Raise {
        Raise(self.clone())
    }
}

impl Drop for Raise {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a search on a thread that may wait for a disk. Dropping the future ends it soon.
pub(super) async fn search<T: Send + 'static>(work: impl FnOnce(&Flag) -> T + Send + 'static) -> T {
    let flag = Flag::default();
    let _raise = flag.raise_on_drop();
    super::files::aside(move || work(&flag)).await
}

/// Where to look: at the path that was named, or in all directories of the session.
pub(super) async fn roots(path: Option<String>, site: &Site) -> Result<Vec<Target>, String> {
    if let Some(path) = path.filter(|it| !it.is_empty()) {
        return Ok(vec![Target::find_existing(&path, site).await?]);
    }
    let mut roots = Vec::new();
    for dir in &site.dirs {
        roots.push(Target::find_existing(&dir.to_string_lossy(), site).await?);
    }
    Ok(roots)
}

/// What is below a directory, in the order of the names; the first entry is the directory itself.
pub(super) fn entries(root: &Path, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
    WalkBuilder::new(root)
        // Much that matters begins with a dot; what git keeps for itself does not.
        .hidden(false)
        .filter_entry(|it| it.file_name() != ".git")
        // A directory that is no repository yet may have its rules already.
        .require_git(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .build()
        .filter_map(Result::ok)
}

/// How an entry below a root is shown.
pub(super) fn shown(path: &Path, root: &Target) -> String {
    let below: PathBuf = match path.strip_prefix(&root.real) {
        Ok(below) => below.to_owned(),
        Err(_) => return path.display().to_string(),
    };
    match (root.shown.as_str(), below.as_os_str().is_empty()) {
        (shown, true) => shown.to_owned(),
        (".", false) => below.display().to_string(),
        (shown, false) => Path::new(shown).join(below).display().to_string(),
    }
}
