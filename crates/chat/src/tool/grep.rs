//! `grep`: lines of files by a regular expression.

use super::{
    Grant, Job, Outcome, Site, Work,
    args::Args,
    cut::{OUTPUT_CHARS_MAX, cut},
    files::Target,
    glob::Fits,
    walk::{self, Flag},
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use std::{
    fs::File,
    io::{self, Read},
};

const LINES_MAX: usize = 200;
/// A longer line is of a file that nobody wrote by hand.
const LINE_CHARS_MAX: usize = 400;
/// A file with a longer line is passed over.
const HEAP_BYTES_MAX: usize = 16 << 20;
const NARROWER: &str = "use a narrower pattern, `path` or `glob`";

#[derive(Debug)]
pub(crate) struct Grep {
    matcher: RegexMatcher,
    roots: Vec<Target>,
    fits: Option<Fits>,
    /// The pattern was no regular expression, and is searched for as it is.
    is_literal: bool,
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let pattern = args.text("pattern")?;
    let (matcher, is_literal) = compile(&pattern, args.flag("ignore_case")?)?;
    let glob = args.optional_text("glob")?.filter(|it| !it.is_empty());
    let fits = glob.as_deref().map(Fits::new).transpose()?;
    let roots = walk::roots(args.optional_text("path")?, site).await?;
    Ok(Job {
        input: args.input(),
        title: pattern,
        kind: args.tool().kind,
        locations: roots.iter().map(|it| it.location(None)).collect(),
        content: Vec::new(),
        grant: Grant::Free,
        work: Work::Grep(Grep { matcher, roots, fits, is_literal }),
    })
}

/// `foo(` is no regular expression, and what it means is plain.
fn compile(pattern: &str, ignore_case: bool) -> Result<(RegexMatcher, bool), String> {
    let build = |literal| {
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(ignore_case).fixed_strings(literal).line_terminator(Some(b'\n'));
        builder.build(pattern)
    };
    if let Ok(matcher) = build(false) {
        return Ok((matcher, false));
    }
    let plain = build(true);
    plain.map(|it| (it, true)).map_err(|error| format!("`{pattern}` cannot be searched: {error}."))
}

impl Grep {
    pub(super) async fn run(self) -> Outcome {
        Outcome::told(walk::search(move |flag| self.find(flag)).await)
    }

    fn find(&self, flag: &Flag) -> String {
        let mut found = Found { lines: Vec::new(), shown: String::new(), flag };
        let detection = BinaryDetection::quit(0);
        let mut builder = SearcherBuilder::new();
        builder.binary_detection(detection).heap_limit(Some(HEAP_BYTES_MAX));
        let mut searcher = builder.build();
        'all: for root in &self.roots {
            for entry in walk::entries(&root.real, None) {
                if found.is_enough() {
                    break 'all;
                }
                // Pipes and devices would wait for ever.
                let is_file = entry.file_type().is_some_and(|it| it.is_file());
                let below = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
                let is_named = below.as_os_str().is_empty();
                let fits = is_named || self.fits.as_ref().is_none_or(|it| it.fit(below));
                if !is_file || !fits {
                    continue;
                }
                found.shown = walk::shown(entry.path(), root);
                // A file that cannot be read has nothing to find.
                let Ok(file) = File::open(entry.path()) else { continue };
                let file = Watched { file, flag };
                let _unread = searcher.search_reader(&self.matcher, file, &mut found);
            }
        }
        self.tell(found.lines)
    }

    fn tell(&self, mut lines: Vec<String>) -> String {
        let note = if self.is_literal {
            "[the pattern is no regular expression: it was searched for as plain text]\n"
        } else {
            ""
        };
        if lines.is_empty() {
            return format!("{note}No line matches.");
        }
        if LINES_MAX < lines.len() {
            lines.truncate(LINES_MAX);
            lines.push(format!("[… more than {LINES_MAX} lines match: {NARROWER} …]"));
        }
        cut(&format!("{note}{}", lines.join("\n")), OUTPUT_CHARS_MAX, NARROWER)
    }
}

/// A file that ends when nobody waits for it any more.
struct Watched<'a> {
    file: File,
    flag: &'a Flag,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.flag.is_up() { Ok(0) } else { self.file.read(buffer) }
    }
}

struct Found<'a> {
    lines: Vec<String>,
    /// The file that is being searched.
    shown: String,
    flag: &'a Flag,
}

impl Found<'_> {
    fn is_enough(&self) -> bool {
        self.flag.is_up() || LINES_MAX < self.lines.len()
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = String::from_utf8_lossy(found.bytes());
        let line = line.trim_end_matches(['\n', '\r']);
        let mut text: String = line.chars().take(LINE_CHARS_MAX).collect();
        if text.len() < line.len() {
            text.push_str(" [… the line is longer …]");
        }
        let number = found.line_number().unwrap_or_default();
        self.lines.push(format!("{}:{number}:{text}", self.shown));
        Ok(!self.is_enough())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Offers, world::in_world};
    use serde_json::json;
    use std::{fs, time::Duration};

    #[tokio::test]
    async fn lines_are_found_with_their_places() {
        in_world(Offers::default(), async |world| {
            fs::create_dir_all(world.at("src")).unwrap();
            fs::write(world.at("src/a.rs"), "fn main() {\r\n}\nfn Main() {}\n").unwrap();
            fs::write(world.at("b.txt"), "fn main(\n").unwrap();
            fs::write(world.at("binary"), b"fn main\0").unwrap();
            let grep = async |args| world.call("grep", args).await.text;
            let both = grep(json!({ "pattern": r"fn \w+\(" })).await;
            let (first, last) = ("b.txt:1:fn main(", "src/a.rs:3:fn Main() {}");
            assert_eq!(both, format!("{first}\nsrc/a.rs:1:fn main() {{\n{last}"));
            let rust = grep(json!({ "pattern": "fn main", "glob": "*.rs" })).await;
            assert_eq!(rust, "src/a.rs:1:fn main() {");
            let any = json!({ "pattern": "MAIN", "ignore_case": true, "path": "src/a.rs" });
            assert_eq!(grep(any).await.lines().count(), 2);
            let plain = grep(json!({ "pattern": "main(" })).await;
            assert!(plain.starts_with("[the pattern is no regular"), "{plain}");
            assert!(plain.ends_with("a.rs:1:fn main() {"), "{plain}");
            assert_eq!(grep(json!({ "pattern": "nowhere" })).await, "No line matches.");
        })
        .await;
    }

    #[tokio::test]
    async fn what_is_found_is_bounded() {
        in_world(Offers::default(), async |world| {
            let line = format!("{}\n", "x".repeat(5_000));
            fs::write(world.at("wide"), line.repeat(500)).unwrap();
            let told = world.call("grep", json!({ "pattern": "x" })).await.text;
            assert!(told.chars().count() <= OUTPUT_CHARS_MAX);
            assert!(told.ends_with(&format!("{NARROWER} …]")), "{}", &told[told.len() - 99..]);
        })
        .await;
    }

    #[tokio::test]
    async fn a_search_that_nobody_waits_for_ends() {
        let (sender, ended) = tokio::sync::oneshot::channel();
        let search = walk::search(move |flag| {
            while !flag.is_up() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
        });
        let dropped = tokio::time::timeout(Duration::from_millis(1), search).await;
        assert!(dropped.is_err());
        tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
    }
}
