//! Finds files for `@` in a prompt: in the directory of the session, without ignored ones. Symbolic links are not
//! followed, so a path never leaves the directory.

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
    cwd: String,
    query: String,
}

impl FileSearches {
    /// Searches now, or after the search that runs.
    pub(super) fn request(&mut self, session: String, cwd: String, query: String) {
        self.next = Some(FileQuery { session, cwd, query });
        self.start_next();
    }

    /// Starts the last search that was requested, unless one runs.
    pub(super) fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(FileQuery { session, cwd, query }) = self.next.take() else { return };
        self.running = Some(tokio::task::spawn_blocking(move || {
            let paths = find_files(Path::new(&cwd), &query);
            AppInput::Files { session, query, paths }
        }));
    }
}

/// Paths relative to the directory that match the query, the best first. Blocks.
fn find_files(directory: &Path, query: &str) -> Vec<String> {
    let until = Instant::now() + SEARCH_MAX;
    let entries = WalkBuilder::new(directory).require_git(false).follow_links(false).build();
    let files = entries
        .take_while(|_| Instant::now() < until)
        .filter_map(Result::ok)
        .filter(|it| it.file_type().is_some_and(|it| it.is_file()))
        .take(FILES_MAX)
        .filter_map(|it| it.path().strip_prefix(directory).ok()?.to_str().map(str::to_owned))
        // Such a path would not be shown as it is.
        .filter(|it| !it.chars().any(char::is_control));
    rank_paths(files.collect(), query)
}

/// The paths that match, the best first; the shorter first among equals.
fn rank_paths(mut paths: Vec<String>, query: &str) -> Vec<String> {
    paths.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
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
        assert_eq!(find_files(&root, ""), ["src/main.rs", "src/parser/mod.rs"]);
        assert_eq!(find_files(&root, "pmod"), ["src/parser/mod.rs"]);
        assert_eq!(find_files(&root, "main"), ["src/main.rs"]);
        assert_eq!(find_files(&root.join("missing"), "main"), [""; 0]);
    }

    #[test]
    fn number_of_results_is_limited() {
        let paths = (0..200).map(|it| format!("src/file-{it}.rs")).collect();
        assert_eq!(rank_paths(paths, "file").len(), RESULTS_MAX);
    }
}
