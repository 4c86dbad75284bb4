//! `apply_patch`: several changes to several files, in the format that some models learned, or as a
//! unified diff. All of it fits, or nothing is changed.

mod apply;
mod parse;
mod unified;

use super::{
    Job, Site, Work,
    args::Args,
    change::{Change, Changes},
    files::{Target, no_file},
};

/// What a patch says about one file.
#[derive(Debug, PartialEq, Eq)]
enum Section {
    Add { path: String, text: String },
    Delete { path: String },
    Update { path: String, to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that belong together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// Lines of the file above it, each below the one before.
    above: Vec<String>,
    /// How many lines of the old file are before it, if the patch says so.
    at: Option<usize>,
    /// Whether it is at the end of the file.
    at_end: bool,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Same(String),
    Old(String),
    New(String),
}

pub(super) async fn prepare(args: &Args, site: &Site) -> Result<Job<Work>, String> {
    let patch = args.text("patch")?;
    let sections = parse::parse(&patch)?;
    let mut draft = Draft { site, changes: Vec::new() };
    for section in sections {
        draft.take(section).await?;
    }
    Changes(draft.changes).into_job(args)
}

/// What the files will be after the sections so far.
struct Draft<'a> {
    site: &'a Site,
    changes: Vec<Change>,
}

impl Draft<'_> {
    async fn take(&mut self, section: Section) -> Result<(), String> {
        match section {
            Section::Add { path, text } => {
                self.file(&path).await?.new = Some(text);
            }
            Section::Delete { path } => {
                let file = self.file(&path).await?;
                file.new.take().ok_or_else(|| no_file(&file.target.shown))?;
            }
            Section::Update { path, to, hunks } => {
                let file = self.file(&path).await?;
                let shown = &file.target.shown;
                let text = file.new.as_deref().ok_or_else(|| no_file(shown))?;
                let text = apply::apply(text, &hunks).map_err(|why| {
                    format!("The patch does not fit `{shown}`, so nothing is changed. {why}")
                })?;
                file.new = Some(text.clone());
                if let Some(to) = to {
                    file.new = None;
                    self.file(&to).await?.new = Some(text);
                }
            }
        }
        Ok(())
    }

    /// A file as it is by now; each stands here once.
    async fn file(&mut self, name: &str) -> Result<&mut Change, String> {
        let target = Target::find_file(name, self.site).await?;
        if let Some(at) = self.changes.iter().position(|it| it.target.real == target.real) {
            return Ok(&mut self.changes[at]);
        }
        let old = target.read_if_there(self.site).await?;
        self.changes.push(Change { target, new: old.clone(), old });
        Ok(self.changes.last_mut().expect("just pushed"))
    }
}

#[cfg(test)]
mod tests;
