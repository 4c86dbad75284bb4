//! `glob`: files by their names.

use super::{
    Grant, Job, Outcome, Site, Work,
    args::Args,
    files::Target,
    walk::{self, Flag},
};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

const FILES_MAX: usize = 200;

#[derive(Debug)]
pub(crate) struct Glob {
    roots: Vec<Target>,
    fits: Fits,
}

/// Which names are wanted.
#[derive(Debug)]
pub(super) struct Fits {
    matcher: GlobMatcher,
    /// A pattern without a slash means names in any directory.
    by_name: bool,
}

impl Fits {
    pub(super) fn new(pattern: &str) -> Result<Fits, String> {
        let pattern = pattern.trim().trim_start_matches("./");
        let built = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = built.map_err(|error| format!("`{pattern}` is no glob pattern: {error}."))?;
        Ok(Fits { matcher: glob.compile_matcher(), by_name: !pattern.contains('/') })
    }

    /// `below` is relative to where the search began.
    pub(super) fn fit(&self, below: &Path) -> bool {
        let name = if self.by_name { below.file_name().map(Path::new) } else { Some(below) };
        name.is_some_and(|it| self.matcher.is_match(it))
    }
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let pattern = args.text("pattern")?;
    let (pattern, fits) = match pattern.strip_prefix('/') {
        // An absolute pattern is as good as one that begins at a directory of the session.
        Some(_) => {
            let below = site.dirs.iter().find_map(|it| {
                Some(Path::new(&pattern).strip_prefix(it).ok()?.to_string_lossy().into_owned())
            });
            let below = below.ok_or_else(|| {
                format!("`{pattern}` leads outside the session's directories: use a relative one.")
            })?;
            (pattern.clone(), Fits::new(&below)?)
        }
        None => (pattern.clone(), Fits::new(&pattern)?),
    };
    let roots = walk::roots(args.optional_text("path")?, site).await?;
    Ok(Job {
        input: args.input(),
        title: pattern,
        kind: args.tool().kind,
        locations: roots.iter().map(|it| it.location(None)).collect(),
        content: Vec::new(),
        grant: Grant::Free,
        work: Work::Glob(Glob { roots, fits }),
    })
}

impl Glob {
    pub(super) async fn run(self) -> Outcome {
        Outcome::told(walk::search(move |flag| self.find(flag)).await)
    }

    fn find(&self, flag: &Flag) -> String {
        let mut found: Vec<String> = Vec::new();
        'all: for root in &self.roots {
            for entry in walk::entries(&root.real, None) {
                if flag.is_up() || FILES_MAX < found.len() {
                    break 'all;
                }
                let is_file = entry.file_type().is_some_and(|it| !it.is_dir());
                let below = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
                if is_file && self.fits.fit(below) {
                    found.push(walk::shown(entry.path(), root));
                }
            }
        }
        if found.is_empty() {
            return "No file fits the pattern.".to_owned();
        }
        if FILES_MAX < found.len() {
            found.truncate(FILES_MAX);
            let more = format!("[… there are more than {FILES_MAX}: use a narrower pattern …]");
            found.push(more);
        }
        found.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::{Offers, world::in_world};
    use serde_json::json;
    use std::fs;

    #[tokio::test]
    async fn files_are_found_by_name_and_by_path() {
        in_world(Offers::default(), async |world| {
            fs::create_dir_all(world.at("src/deep")).unwrap();
            fs::create_dir_all(world.at("target")).unwrap();
            fs::write(world.at(".gitignore"), "target\n").unwrap();
            for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", "target/e.rs"] {
                fs::write(world.at(name), "").unwrap();
            }
            let absolute = format!("{}/src/*.rs", world.site.dirs[0].display());
            for (pattern, found) in [
                ("*.rs", "a.rs\nsrc/b.rs\nsrc/deep/c.rs"),
                ("./src/*.rs", "src/b.rs"),
                ("src/**/*.{rs,txt}", "src/b.rs\nsrc/d.txt\nsrc/deep/c.rs"),
                ("*.py", "No file fits the pattern."),
                (&absolute, "src/b.rs"),
            ] {
                let outcome = world.call("glob", json!({ "pattern": pattern })).await;
                assert_eq!(outcome.text, found, "{pattern}");
            }
            let inside = json!({ "pattern": "*.rs", "path": "src/deep" });
            assert_eq!(world.call("glob", inside).await.text, "src/deep/c.rs");
            for bad in ["{", "/etc/*"] {
                assert!(world.call("glob", json!({ "pattern": bad })).await.failed, "{bad}");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn many_files_are_cut_and_that_is_told() {
        in_world(Offers::default(), async |world| {
            for number in 0..300 {
                fs::write(world.at(&format!("{number}.x")), "").unwrap();
            }
            let told = world.call("glob", json!({ "pattern": "*.x" })).await.text;
            assert_eq!(told.lines().count(), 201);
            assert!(told.ends_with("use a narrower pattern …]"), "{told}");
        })
        .await;
    }
}
