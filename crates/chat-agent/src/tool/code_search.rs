//! The tool `code_search`: finds the files that fit several words best.
//!
//! Unlike `grep` it needs no exact pattern: it ranks files by how many of the words they contain,
//! and prefers names of files and lines that define something.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::ResolvedPath,
    glob::PathFilter,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
    walk::{CancelFlag, display_entry, run_search, search_roots, walk_entries},
};
use std::{fmt::Write as _, fs, path::Path};

const FILES_MAX: usize = 15;
const LINES_MAX: usize = 3;
const LINE_CHARS_MAX: usize = 200;
/// Larger files are data or were generated.
const FILE_BYTES_MAX: u64 = 1 << 20;
const WORDS_MAX: usize = 8;
/// Words that start a definition in common languages.
const DEFINING_WORDS: [&str; 14] = [
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "let",
    "mod",
    "struct",
    "trait",
    "type",
];

#[derive(Debug)]
pub(crate) struct CodeSearch {
    /// In lowercase.
    terms: Vec<String>,
    roots: Vec<ResolvedPath>,
    filter: Option<PathFilter>,
}

/// A file with its best lines.
struct RankedFile {
    score: usize,
    name: String,
    lines: Vec<(usize, String)>,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let query = args.required_text("query")?;
    let terms: Vec<String> =
        query.split_whitespace().take(WORDS_MAX).map(str::to_lowercase).collect();
    if terms.is_empty() {
        return Err("The query has no words.".to_owned());
    }
    let filter = PathFilter::from_arguments(args)?;
    let roots = search_roots(args.optional_text("path")?, context).await?;
    Ok(PreparedCall {
        input: args.to_input(),
        title: query,
        kind: args.tool().kind,
        locations: roots.iter().map(|it| it.to_location(None)).collect(),
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::CodeSearch(CodeSearch { terms, roots, filter }),
    })
}

impl CodeSearch {
    pub(super) async fn run(self) -> ToolOutcome {
        ToolOutcome::success(run_search(move |cancel| self.find_files(cancel)).await)
    }

    fn find_files(&self, cancel: &CancelFlag) -> String {
        let mut found = Vec::new();
        for root in &self.roots {
            for entry in walk_entries(&root.real, None) {
                if cancel.is_set() {
                    return String::new();
                }
                let is_file = entry.file_type().is_some_and(|it| it.is_file());
                let relative = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
                let is_match = self.filter.as_ref().is_none_or(|it| it.is_match(relative));
                if is_file && is_match {
                    found.extend(self.rank_file(entry.path(), display_entry(entry.path(), root)));
                }
            }
        }
        // The sort is stable, so files of the same score stay in the order of their names.
        found.sort_by_key(|it| std::cmp::Reverse(it.score));
        format_files(&found)
    }

    /// Returns `None` for a file without any of the words, and for one that is not text.
    fn rank_file(&self, path: &Path, name: String) -> Option<RankedFile> {
        let is_small = path.metadata().is_ok_and(|it| it.len() <= FILE_BYTES_MAX);
        let text = fs::read(path).ok().filter(|it| is_small && !it.contains(&0))?;
        let text = String::from_utf8_lossy(&text);
        let lower_name = name.to_lowercase();
        let mut lines: Vec<(usize, usize, &str)> = Vec::new();
        let mut is_found = vec![false; self.terms.len()];
        for (number, line) in (1..).zip(text.lines()) {
            let score = self.score_line(line, &mut is_found);
            if 0 < score {
                lines.push((score, number, line));
            }
        }
        let in_name = self.terms.iter().filter(|it| lower_name.contains(it.as_str())).count();
        let in_text = is_found.iter().filter(|it| **it).count();
        if in_name + in_text == 0 {
            return None;
        }
        lines.sort_by_key(|it| std::cmp::Reverse(it.0));
        let best = lines.first().map_or(0, |it| it.0);
        lines.truncate(LINES_MAX);
        lines.sort_by_key(|it| it.1);
        let cut = |line: &str| line.trim().chars().take(LINE_CHARS_MAX).collect();
        let lines = lines.into_iter().map(|(_, number, line)| (number, cut(line))).collect();
        Some(RankedFile { score: 10 * in_text + 10 * in_name + best, name, lines })
    }

    /// Counts the words in a line, doubled if the line defines something.
    fn score_line(&self, line: &str, is_found: &mut [bool]) -> usize {
        let lower = line.to_lowercase();
        let mut count = 0;
        for (term, is_found) in self.terms.iter().zip(is_found) {
            if lower.contains(term.as_str()) {
                *is_found = true;
                count += 1;
            }
        }
        let defines = lower.split_whitespace().take(4).any(|it| DEFINING_WORDS.contains(&it));
        if defines { 2 * count } else { count }
    }
}

fn format_files(found: &[RankedFile]) -> String {
    if found.is_empty() {
        return "No file has any of these words.".to_owned();
    }
    let mut text = String::new();
    for RankedFile { name, lines, .. } in found.iter().take(FILES_MAX) {
        let _ = writeln!(text, "{name}");
        for (number, line) in lines {
            let _ = writeln!(text, "  {number}: {line}");
        }
    }
    if FILES_MAX < found.len() {
        let _ =
            writeln!(text, "[… {} more files have some of the words …]", found.len() - FILES_MAX);
    }
    truncate_middle(&text, OUTPUT_CHARS_MAX, "use more words, `path` or `glob`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use serde_json::json;

    #[tokio::test]
    async fn files_with_more_words_and_definitions_come_first() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::write(session.at("a.txt"), "retry\n").unwrap();
            fs::write(session.at("b.rs"), "// retry with backoff\nlet x = 1;\n").unwrap();
            fs::write(session.at("c.rs"), "\nfn retry_with_backoff() {}\n").unwrap();
            fs::write(session.at("binary"), b"retry backoff\0").unwrap();
            fs::write(session.at(".gitignore"), "ignored\n").unwrap();
            fs::write(session.at("ignored"), "retry backoff\n").unwrap();
            let search = async |args| session.call("code_search", args).await.text;
            let found = search(json!({ "query": "Retry backoff" })).await;
            let expected = "c.rs\n  2: fn retry_with_backoff() {}\nb.rs\n  1: // retry with backoff\n\
                            a.txt\n  1: retry\n";
            assert_eq!(found, expected);
            let text = search(json!({ "query": "retry", "glob": "*.txt" })).await;
            assert_eq!(text, "a.txt\n  1: retry\n");
            let none = search(json!({ "query": "nowhere" })).await;
            assert_eq!(none, "No file has any of these words.");
        })
        .await;
    }
}
