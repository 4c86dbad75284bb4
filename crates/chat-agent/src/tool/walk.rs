//! Walks through directories like git: ignored files are left out, symbolic links are not followed.

use super::{
    SessionContext,
    files::{ResolvedPath, run_blocking},
};
use ignore::{DirEntry, WalkBuilder};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Tells a searching thread to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct CancelFlag(Arc<AtomicBool>);

/// Sets the flag when it is dropped.
struct CancelOnDrop(CancelFlag);

impl CancelFlag {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a search on a thread that may wait for the disk. Dropping the future stops it soon.
pub(super) async fn run_search<T: Send + 'static>(
    work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
) -> T {
    let cancel = CancelFlag::default();
    let _guard = CancelOnDrop(cancel.clone());
    run_blocking(move || work(&cancel)).await
}

/// Returns where to search: the given path, or all directories of the session.
pub(super) async fn search_roots(
    path: Option<String>,
    context: &SessionContext,
) -> Result<Vec<ResolvedPath>, String> {
    if let Some(path) = path.filter(|it| !it.is_empty()) {
        return Ok(vec![ResolvedPath::resolve_existing(&path, context).await?]);
    }
    let mut roots = Vec::new();
    for dir in &context.dirs {
        roots.push(ResolvedPath::resolve_existing(&dir.to_string_lossy(), context).await?);
    }
    Ok(roots)
}

/// Returns the entries of a directory tree, sorted by name. The first entry is the directory
/// itself.
pub(super) fn walk_entries(root: &Path, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
    WalkBuilder::new(root)
        // Many hidden files matter, but not the internal ones of git.
        .hidden(false)
        .filter_entry(|it| it.file_name() != ".git")
        // A directory that is not a repository yet may have a `.gitignore`.
        .require_git(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .build()
        .filter_map(Result::ok)
}

/// Formats the path of an entry below a root.
pub(super) fn display_entry(path: &Path, root: &ResolvedPath) -> String {
    let Ok(relative) = path.strip_prefix(&root.real) else { return path.display().to_string() };
    match (root.display.as_str(), relative.as_os_str().is_empty()) {
        (display, true) => display.to_owned(),
        (".", false) => relative.display().to_string(),
        (display, false) => Path::new(display).join(relative).display().to_string(),
    }
}
