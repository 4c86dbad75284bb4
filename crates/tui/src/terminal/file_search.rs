//! Finds files for `@` in a prompt: in the directories of the session, without ignored ones. Symbolic links are not
//! followed, so a path never leaves the directories.

use crate::page::AppInput;
use ignore::WalkBuilder;
use nucleo_matcher::{
    Config, Matcher,
    pattern::{CaseMatching, Normalization, Pattern},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// The most paths that are shown.
const RESULTS_MAX: usize = 50;
/// The most files that are looked at, and for how long.
const FILES_MAX: usize = 50_000;
const SEARCH_MAX: Duration = Duration::from_secs(1);

/// A search that runs, and the next one. Searches in between are skipped.
#[derive(Default)]
pub(super) struct FileSearches {
    pub(super) running: Option<JoinHandle<AppInput>>,
    next: Option<FileQuery>,
}

struct FileQuery {
    session: String,
    directories: Vec<String>,
    query: String,
}

impl FileSearches {
    /// Searches now, or after the search that runs.
    pub(super) fn request(&mut self, session: String, directories: Vec<String>, query: String) {
        self.next = Some(FileQuery { session, directories, query });
        self.start_next();
    }

    /// Starts the last search that was requested, unless one runs.
    pub(super) fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(FileQuery { session, directories, query }) = self.next.take() else { return };
        self.running = Some(tokio::task::spawn_blocking(move || {
            let paths = find_files(&directories, &query);
            AppInput::Files { session, query, paths }
        }));
    }
}

/// Paths that match the query, the best first: relative in the first directory, absolute in the others. Blocks.
fn find_files<T: AsRef<Path>>(directories: &[T], query: &str) -> Vec<String> {
    let Some((cwd, others)) = directories.split_first() else { return Vec::new() };
    let until = Instant::now() + SEARCH_MAX;
    let mut walk = WalkBuilder::new(cwd);
    for other in others {
        walk.add(other);
    }
    let files = walk
        .require_git(false)
        .follow_links(false)
        .build()
        .take_while(|_| Instant::now() < until)
        .filter_map(Result::ok)
        .filter(|it| it.file_type().is_some_and(|it| it.is_file()))
        .take(FILES_MAX)
        .filter_map(|it| {
            let path = it.path();
            path.strip_prefix(cwd).unwrap_or(path).to_str().map(str::to_owned)
        })
        // Such a path would not be shown as it is.
        .filter(|it| !it.chars().any(char::is_control));
    rank_paths(files.collect(), query)
}

/// The paths that match, the best first; the shorter first among equals.
fn rank_paths(mut paths: Vec<String>, query: &str) -> Vec<String> {
    paths.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    // Directories of a session may contain each other.
    paths.dedup();
    if !query.is_empty() {
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let ranked = pattern.match_list(paths, &mut matcher);
        paths = ranked.into_iter().map(|(path, _)| path).collect();
    }
    paths.truncate(RESULTS_MAX);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn files_are_found_inside_the_directory_without_ignored_ones() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("project"), dir.path().join("outside"));
        for folder in [root.join("src/parser"), root.join("target"), outside.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        for (path, text) in [
            ("src/parser/mod.rs", ""),
            ("src/main.rs", ""),
            ("target/main.rs", ""),
            (".gitignore", "target\n"),
            (".hidden", ""),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        fs::write(outside.join("main.rs"), "").unwrap();
        symlink(&outside, root.join("linked")).unwrap();
        symlink(outside.join("main.rs"), root.join("linked.rs")).unwrap();
        let find = |query: &str| find_files(&[&root], query);
        assert_eq!(find(""), ["src/main.rs", "src/parser/mod.rs"]);
        assert_eq!(find("pmod"), ["src/parser/mod.rs"]);
        assert_eq!(find("main"), ["src/main.rs"]);
        assert_eq!(find_files(&[root.join("missing")], "main"), [""; 0]);
    }

    #[test]
    fn files_of_additional_directories_have_absolute_paths() {
        let dir = tempfile::tempdir().unwrap();
        let (root, other) = (dir.path().join("project"), dir.path().join("library"));
        for folder in [root.join("src"), other.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        for path in [root.join("src/main.rs"), other.join("lib.rs")] {
            fs::write(path, "").unwrap();
        }
        let library = other.join("lib.rs").to_str().unwrap().to_owned();
        let directories = [root.clone(), other, root.join("src"), dir.path().join("missing")];
        assert_eq!(find_files(&directories, ""), ["src/main.rs", &library]);
        assert_eq!(find_files(&directories, "lib"), [library]);
    }

    #[test]
    fn number_of_results_is_limited() {
        let paths = (0..200).map(|it| format!("src/file-{it}.rs")).collect();
        assert_eq!(rank_paths(paths, "file").len(), RESULTS_MAX);
    }
}
