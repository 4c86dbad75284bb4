//! The tool `apply_patch`: makes several changes to several files, in the patch format that some
//! models learned, or as a unified diff. All hunks apply, or nothing is changed.
//!
//! Own code because hunks of that format have no line numbers, which crates for unified diffs need.

mod apply;
mod parse;
#[cfg(test)]
mod tests;
mod unified_diff;

use super::{
    PreparedCall, SessionContext, ToolWork,
    arguments::ToolArguments,
    changes::{ChangeSet, PlannedChange},
    files::{ResolvedPath, file_not_found},
};

/// The part of a patch about one file.
#[derive(Debug, PartialEq, Eq)]
enum PatchSection {
    Add { path: String, text: String },
    Delete { path: String },
    Update { path: String, new_path: Option<String>, hunks: Vec<PatchHunk> },
}

/// Consecutive lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct PatchHunk {
    /// Lines of the file that come before the hunk, in this order.
    preceding: Vec<String>,
    /// How many lines of the old file come before the hunk, if the patch says so.
    position: Option<usize>,
    /// Whether the hunk is at the end of the file.
    is_at_end: bool,
    lines: Vec<HunkLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HunkLine {
    Context(String),
    Removed(String),
    Added(String),
}

pub(super) async fn prepare(
    args: &ToolArguments,
    context: &SessionContext,
) -> Result<PreparedCall<ToolWork>, String> {
    let patch = args.required_text("patch")?;
    let sections = parse::parse_patch(&patch)?;
    let mut plan = PatchPlan { context, changes: Vec::new() };
    for section in sections {
        plan.add_section(section).await?;
    }
    ChangeSet(plan.changes).into_prepared_call(args)
}

/// The changes of the sections so far.
struct PatchPlan<'a> {
    context: &'a SessionContext,
    changes: Vec<PlannedChange>,
}

impl PatchPlan<'_> {
    async fn add_section(&mut self, section: PatchSection) -> Result<(), String> {
        match section {
            PatchSection::Add { path, text } => {
                self.change_of(&path).await?.new = Some(text);
            }
            PatchSection::Delete { path } => {
                let change = self.change_of(&path).await?;
                change.new.take().ok_or_else(|| file_not_found(&change.file.display))?;
            }
            PatchSection::Update { path, new_path, hunks } => {
                let change = self.change_of(&path).await?;
                let display = &change.file.display;
                let text = change.new.as_deref().ok_or_else(|| file_not_found(display))?;
                let text = apply::apply_hunks(text, &hunks).map_err(|error| {
                    format!("The patch does not fit `{display}`, so nothing is changed. {error}")
                })?;
                change.new = Some(text.clone());
                if let Some(new_path) = new_path {
                    change.new = None;
                    self.change_of(&new_path).await?.new = Some(text);
                }
            }
        }
        Ok(())
    }

    /// Returns the change of a file. Each file has one change, however many sections name it.
    async fn change_of(&mut self, name: &str) -> Result<&mut PlannedChange, String> {
        let file = ResolvedPath::resolve_file(name, self.context).await?;
        if let Some(at) = self.changes.iter().position(|it| it.file.real == file.real) {
            return Ok(&mut self.changes[at]);
        }
        let old = file.read_if_exists(self.context).await?;
        self.changes.push(PlannedChange { file, new: old.clone(), old });
        Ok(self.changes.last_mut().expect("just pushed"))
    }
}
