//! The tool `glob`: finds files by name.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::ResolvedPath,
    walk::{CancelFlag, display_entry, run_search, search_roots, walk_entries},
};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

const FILES_MAX: usize = 200;

#[derive(Debug)]
pub(crate) struct GlobSearch {
    roots: Vec<ResolvedPath>,
    filter: PathFilter,
}

/// A glob pattern for paths.
#[derive(Debug)]
pub(super) struct PathFilter {
    matcher: GlobMatcher,
    /// Whether the pattern has no slash, and matches names in any directory.
    matches_name_only: bool,
}

impl PathFilter {
    pub(super) fn new(pattern: &str) -> Result<PathFilter, String> {
        let pattern = pattern.trim().trim_start_matches("./");
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob =
            glob.map_err(|error| format!("`{pattern}` is not a valid glob pattern: {error}."))?;
        let matches_name_only = !pattern.contains('/');
        Ok(PathFilter { matcher: glob.compile_matcher(), matches_name_only })
    }

    /// The filter of a search, from its argument `glob`.
    pub(super) fn from_arguments(args: &ToolArguments) -> Result<Option<PathFilter>, String> {
        let glob = args.optional_text("glob")?.filter(|it| !it.is_empty());
        glob.as_deref().map(PathFilter::new).transpose()
    }

    /// `relative` is the path below the root of the search.
    pub(super) fn is_match(&self, relative: &Path) -> bool {
        let name = if self.matches_name_only {
            relative.file_name().map(Path::new)
        } else {
            Some(relative)
        };
        name.is_some_and(|it| self.matcher.is_match(it))
    }
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let pattern = args.required_text("pattern")?;
    let filter = if pattern.starts_with('/') {
        // An absolute pattern is made relative to a directory of the session.
        let relative = context.dirs.iter().find_map(|it| {
            Some(Path::new(&pattern).strip_prefix(it).ok()?.to_string_lossy().into_owned())
        });
        let relative = relative.ok_or_else(|| {
            format!("`{pattern}` leads outside the session's directories: use a relative one.")
        })?;
        PathFilter::new(&relative)?
    } else {
        PathFilter::new(&pattern)?
    };
    let roots = search_roots(args.optional_text("path")?, context).await?;
    Ok(PreparedCall {
        input: args.to_input(),
        title: pattern,
        kind: args.tool().kind,
        locations: roots.iter().map(|it| it.to_location(None)).collect(),
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::Glob(GlobSearch { roots, filter }),
    })
}

impl GlobSearch {
    pub(super) async fn run(self) -> ToolOutcome {
        ToolOutcome::success(run_search(move |cancel| self.find_files(cancel)).await)
    }

    fn find_files(&self, cancel: &CancelFlag) -> String {
        let mut found: Vec<String> = Vec::new();
        'all: for root in &self.roots {
            for entry in walk_entries(&root.real, None) {
                if cancel.is_set() || FILES_MAX < found.len() {
                    break 'all;
                }
                let is_file = entry.file_type().is_some_and(|it| !it.is_dir());
                let relative = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
                if is_file && self.filter.is_match(relative) {
                    found.push(display_entry(entry.path(), root));
                }
            }
        }
        if found.is_empty() {
            return "No file matches the pattern.".to_owned();
        }
        if FILES_MAX < found.len() {
            found.truncate(FILES_MAX);
            let note = format!("[… there are more than {FILES_MAX}: use a narrower pattern …]");
            found.push(note);
        }
        found.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn files_are_found_by_name_and_by_path() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::create_dir_all(session.at("src/deep")).unwrap();
            fs::create_dir_all(session.at("target")).unwrap();
            fs::write(session.at(".gitignore"), "target\n").unwrap();
            for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", "target/e.rs"] {
                fs::write(session.at(name), "").unwrap();
            }
            let absolute = format!("{}/src/*.rs", session.context.dirs[0].display());
            for (pattern, found) in [
                ("*.rs", "a.rs\nsrc/b.rs\nsrc/deep/c.rs"),
                ("./src/*.rs", "src/b.rs"),
                ("src/**/*.{rs,txt}", "src/b.rs\nsrc/d.txt\nsrc/deep/c.rs"),
                ("*.py", "No file matches the pattern."),
                (&absolute, "src/b.rs"),
            ] {
                let outcome = session.call("glob", json!({ "pattern": pattern })).await;
                assert_eq!(outcome.text, found, "{pattern}");
            }
            let in_dir = json!({ "pattern": "*.rs", "path": "src/deep" });
            assert_eq!(session.call("glob", in_dir).await.text, "src/deep/c.rs");
            for bad in ["{", "/etc/*"] {
                assert!(session.call("glob", json!({ "pattern": bad })).await.is_error, "{bad}");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn long_list_of_files_is_truncated_with_a_note() {
        with_test_session(IoCapabilities::default(), async |session| {
            for number in 0..300 {
                fs::write(session.at(&format!("{number}.x")), "").unwrap();
            }
            let text = session.call("glob", json!({ "pattern": "*.x" })).await.text;
            assert_eq!(text.lines().count(), 201);
            assert!(text.ends_with("use a narrower pattern …]"), "{text}");
        })
        .await;
    }
}
