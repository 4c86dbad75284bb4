//! The tool `grep`: finds lines of files by a regular expression.

use super::{
    PreparedCall, RequiredPermission, SessionContext, ToolOutcome, ToolWork,
    arguments::ToolArguments,
    files::ResolvedPath,
    glob::PathFilter,
    truncate::{OUTPUT_CHARS_MAX, truncate_middle},
    walk::{CancelFlag, display_entry, run_search, search_roots, walk_entries},
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use std::{
    fs::File,
    io::{self, Read},
};

const LINES_MAX: usize = 200;
/// Longer lines are in generated files.
const LINE_CHARS_MAX: usize = 400;
/// A file with a longer line is skipped.
const HEAP_BYTES_MAX: usize = 16 << 20;
const NARROW_ADVICE: &str = "use a narrower pattern, `path` or `glob`";

#[derive(Debug)]
pub(crate) struct GrepSearch {
    matcher: RegexMatcher,
    roots: Vec<ResolvedPath>,
    filter: Option<PathFilter>,
    /// Whether the pattern is not a valid regular expression and is searched as plain text.
    is_literal: bool,
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let pattern = args.required_text("pattern")?;
    let (matcher, is_literal) = compile_pattern(&pattern, args.flag("ignore_case")?)?;
    let filter = PathFilter::from_arguments(args)?;
    let roots = search_roots(args.optional_text("path")?, context).await?;
    Ok(PreparedCall {
        input: args.to_input(),
        title: pattern,
        kind: args.tool().kind,
        locations: roots.iter().map(|it| it.to_location(None)).collect(),
        content: Vec::new(),
        permission: RequiredPermission::None,
        work: ToolWork::Grep(GrepSearch { matcher, roots, filter, is_literal }),
    })
}

/// Compiles the pattern, as plain text if it is not a valid regular expression, such as `foo(`.
/// Returns whether it is plain text.
fn compile_pattern(pattern: &str, ignore_case: bool) -> Result<(RegexMatcher, bool), String> {
    let build = |is_literal| {
        RegexMatcherBuilder::new()
            .case_insensitive(ignore_case)
            .fixed_strings(is_literal)
            .line_terminator(Some(b'\n'))
            .build(pattern)
    };
    if let Ok(matcher) = build(false) {
        return Ok((matcher, false));
    }
    let literal = build(true);
    literal
        .map(|it| (it, true))
        .map_err(|error| format!("`{pattern}` cannot be searched: {error}."))
}

impl GrepSearch {
    pub(super) async fn run(self) -> ToolOutcome {
        ToolOutcome::success(run_search(move |cancel| self.find_lines(cancel)).await)
    }

    fn find_lines(&self, cancel: &CancelFlag) -> String {
        let mut found = MatchedLines { lines: Vec::new(), file: String::new(), cancel };
        let detection = BinaryDetection::quit(0);
        let mut builder = SearcherBuilder::new();
        builder.binary_detection(detection).heap_limit(Some(HEAP_BYTES_MAX));
        let mut searcher = builder.build();
        'all: for root in &self.roots {
            for entry in walk_entries(&root.real, None) {
                if found.should_stop() {
                    break 'all;
                }
                // Reading a pipe or a device could block forever.
                let is_file = entry.file_type().is_some_and(|it| it.is_file());
                let relative = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
                let is_root = relative.as_os_str().is_empty();
                let is_match =
                    is_root || self.filter.as_ref().is_none_or(|it| it.is_match(relative));
                if !is_file || !is_match {
                    continue;
                }
                found.file = display_entry(entry.path(), root);
                // Files that cannot be read are skipped.
                let Ok(file) = File::open(entry.path()) else { continue };
                let file = CancelableFile { file, cancel };
                let _skipped = searcher.search_reader(&self.matcher, file, &mut found);
            }
        }
        self.format_lines(found.lines)
    }

    fn format_lines(&self, mut lines: Vec<String>) -> String {
        let note = if self.is_literal {
            "[the pattern is not a regular expression: it was searched for as plain text]\n"
        } else {
            ""
        };
        if lines.is_empty() {
            return format!("{note}No line matches.");
        }
        if LINES_MAX < lines.len() {
            lines.truncate(LINES_MAX);
            lines.push(format!("[… more than {LINES_MAX} lines match: {NARROW_ADVICE} …]"));
        }
        truncate_middle(&format!("{note}{}", lines.join("\n")), OUTPUT_CHARS_MAX, NARROW_ADVICE)
    }
}

/// A file that appears to end when the search is canceled.
struct CancelableFile<'a> {
    file: File,
    cancel: &'a CancelFlag,
}

impl Read for CancelableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_set() { Ok(0) } else { self.file.read(buffer) }
    }
}

struct MatchedLines<'a> {
    lines: Vec<String>,
    /// The file that is being searched.
    file: String,
    cancel: &'a CancelFlag,
}

impl MatchedLines<'_> {
    fn should_stop(&self) -> bool {
        self.cancel.is_set() || LINES_MAX < self.lines.len()
    }
}

impl Sink for MatchedLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = String::from_utf8_lossy(found.bytes());
        let line = line.trim_end_matches(['\n', '\r']);
        let mut text: String = line.chars().take(LINE_CHARS_MAX).collect();
        if text.len() < line.len() {
            text.push_str(" [… the line is longer …]");
        }
        let number = found.line_number().unwrap_or_default();
        self.lines.push(format!("{}:{number}:{text}", self.file));
        Ok(!self.should_stop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{IoCapabilities, test_session::with_test_session};
    use serde_json::json;
    use std::{fs, time::Duration};

    #[tokio::test]
    async fn lines_are_found_with_their_locations() {
        with_test_session(IoCapabilities::default(), async |session| {
            fs::create_dir_all(session.at("src")).unwrap();
            fs::write(session.at("src/a.rs"), "fn main() {\r\n}\nfn Main() {}\n").unwrap();
            fs::write(session.at("b.txt"), "fn main(\n").unwrap();
            fs::write(session.at("binary"), b"fn main\0").unwrap();
            let grep = async |args| session.call("grep", args).await.text;
            let both = grep(json!({ "pattern": r"fn \w+\(" })).await;
            let (first, last) = ("b.txt:1:fn main(", "src/a.rs:3:fn Main() {}");
            assert_eq!(both, format!("{first}\nsrc/a.rs:1:fn main() {{\n{last}"));
            let rust = grep(json!({ "pattern": "fn main", "glob": "*.rs" })).await;
            assert_eq!(rust, "src/a.rs:1:fn main() {");
            let any = json!({ "pattern": "MAIN", "ignore_case": true, "path": "src/a.rs" });
            assert_eq!(grep(any).await.lines().count(), 2);
            let plain = grep(json!({ "pattern": "main(" })).await;
            assert!(plain.starts_with("[the pattern is not a regular"), "{plain}");
            assert!(plain.ends_with("a.rs:1:fn main() {"), "{plain}");
            assert_eq!(grep(json!({ "pattern": "nowhere" })).await, "No line matches.");
        })
        .await;
    }

    #[tokio::test]
    async fn matches_are_truncated() {
        with_test_session(IoCapabilities::default(), async |session| {
            let line = format!("{}\n", "x".repeat(5_000));
            fs::write(session.at("wide"), line.repeat(500)).unwrap();
            let text = session.call("grep", json!({ "pattern": "x" })).await.text;
            assert!(text.chars().count() <= OUTPUT_CHARS_MAX);
            assert!(text.ends_with(&format!("{NARROW_ADVICE} …]")), "{}", &text[text.len() - 99..]);
        })
        .await;
    }

    #[tokio::test]
    async fn dropped_search_ends() {
        let (sender, ended) = tokio::sync::oneshot::channel();
        let search = run_search(move |cancel| {
            while !cancel.is_set() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
        });
        let dropped = tokio::time::timeout(Duration::from_millis(1), search).await;
        assert!(dropped.is_err());
        tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
    }
}
