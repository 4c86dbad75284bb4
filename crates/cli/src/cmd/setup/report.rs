//! What a run of `jackfield setup` prints.

use super::{
    editor::{SupportedEditor, has_lazy_folder},
    plan::{self, PlannedChange},
    program,
};
use crate::{
    context::CommandContext,
    out::{ALERT, BRIGHT, DIM, DONE, OutputFormat, paint, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use jackfield_editor_settings::{EditorAgent, format_document};
use serde_json::{Map, Value, json};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A run: what was chosen, what it changes, and what it has done.
pub(super) struct SetupReport {
    editor: SupportedEditor,
    is_undo: bool,
    pub(super) program: String,
    pub(super) agents: Vec<EditorAgent>,
    /// Settings files, or folders of init files.
    pub(super) settings: Vec<PathBuf>,
    pub(super) changes: Vec<PlannedChange>,
    /// Why files cannot be changed, if the change is only shown.
    pub(super) errors: Vec<CommandError>,
    pub(super) backups: Vec<PathBuf>,
}

impl SetupReport {
    pub(super) fn new(editor: SupportedEditor, is_undo: bool) -> SetupReport {
        SetupReport {
            editor,
            is_undo,
            program: String::new(),
            agents: Vec::new(),
            settings: Vec::new(),
            changes: Vec::new(),
            errors: Vec::new(),
            backups: Vec::new(),
        }
    }

    fn changed(&self) -> impl Iterator<Item = &PlannedChange> {
        self.changes.iter().filter(|it| it.is_change())
    }

    /// Shows the change without making it.
    pub(super) fn print_plan(
        &self,
        context: &CommandContext,
        format: OutputFormat,
    ) -> Result<(), CommandError> {
        match format {
            OutputFormat::Json => return print_json_document(&context.output, &self.to_json(true)),
            OutputFormat::Quiet => return self.print_paths(context),
            OutputFormat::Text => {}
        }
        for error in &self.errors {
            context.output.print_note(&format!("{error}: {}", error.causes().join(": ")));
        }
        if !self.errors.is_empty() {
            self.print_snippets(context)?;
        }
        self.print_diffs(context)?;
        self.print_kept(context);
        if self.errors.is_empty() && self.changed().next().is_none() {
            self.print_nothing_to_do(context);
        }
        for change in self.changed() {
            if let Err(error) = change.file.check_writable() {
                context.output.print_note(&format!("{error}: {}", error.causes().join(": ")));
            }
        }
        Ok(())
    }

    /// What to add by hand.
    fn print_snippets(&self, context: &CommandContext) -> Result<(), CommandError> {
        if let Some((section, indent)) = self.editor.json_section() {
            let text = format_document(&json!({ section: self.entries() }), indent);
            return context.output.print_raw(&text);
        }
        for (path, text) in plan::own_files(self.editor, Path::new(""), &self.program, &self.agents)
        {
            context.output.print_note(&paint(DIM, path.display()));
            context.output.print_raw(&text)?;
        }
        Ok(())
    }

    fn entries(&self) -> Value {
        let entries = self.agents.iter().map(|it| self.editor.make_entry(&self.program, it));
        Value::Object(entries.map(|it| (it.name, it.value)).collect::<Map<_, _>>())
    }

    pub(super) fn print_diffs(&self, context: &CommandContext) -> Result<(), CommandError> {
        for change in self.changed() {
            for line in change.diff().lines() {
                let styled = match line.chars().next() {
                    _ if line.starts_with("--- ") || line.starts_with("+++ ") => {
                        paint(BRIGHT, line)
                    }
                    Some('+') => paint(DONE, line),
                    Some('-') => paint(ALERT, line),
                    Some('@') => paint(DIM, line),
                    _ => line.to_owned(),
                };
                context.output.print_line(&styled)?;
            }
        }
        Ok(())
    }

    /// Asks whether the change is made.
    pub(super) fn confirm(&self, context: &CommandContext) -> Result<(), CommandError> {
        if !context.output.can_prompt_user() {
            return Err(CommandError::usage(
                "the change needs a confirmation, and there is no terminal to ask on",
                "pass `--yes` to write the change, or `--print` to only show it",
            ));
        }
        let files: Vec<String> =
            self.changed().map(|it| format!("`{}`", it.file.path.display())).collect();
        let verb = if self.is_undo { "take this back in" } else { "write this to" };
        context.output.print_question(&format!("{verb} {}? [y/N]", files.join(" and ")));
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.map_err(|source| CommandError::local("cannot read the answer", source))?;
        if matches!(line.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(CommandError::ChangeDeclined)
        }
    }

    /// Says what was done.
    pub(super) fn print_result(
        &self,
        context: &CommandContext,
        format: OutputFormat,
    ) -> Result<(), CommandError> {
        match format {
            OutputFormat::Json => {
                return print_json_document(&context.output, &self.to_json(false));
            }
            OutputFormat::Quiet => return self.print_paths(context),
            OutputFormat::Text => {}
        }
        for change in self.changed() {
            context.output.print_note(&describe_change(change));
        }
        for backup in &self.backups {
            let note = format!("the file as it was: {}", backup.display());
            context.output.print_note(&paint(DIM, note));
        }
        self.print_kept(context);
        if self.changed().next().is_none() {
            self.print_nothing_to_do(context);
            return Ok(());
        }
        for step in self.next_steps() {
            context.output.print_note(&step);
        }
        Ok(())
    }

    fn next_steps(&self) -> Vec<String> {
        let editor = self.editor.name();
        let mut steps = Vec::new();
        if self.is_undo {
            if self.needs_line_of_user() {
                steps.push("remove the line with `jackfield` from your own settings".to_owned());
            }
            return steps;
        }
        if program::is_temporary(&self.program) {
            steps.push(format!(
                "`{}` is in a cache that npm may clear: install Jackfield permanently and run this again",
                self.program
            ));
        }
        if let Some(settings) = self.settings.first() {
            steps.extend(self.editor.describe_next_steps(settings, &self.agents));
        }
        steps.push(format!("`jackfield setup {editor} --undo` takes it back"));
        steps
    }

    /// Whether a line that the user has added refers to a file that was removed.
    fn needs_line_of_user(&self) -> bool {
        let folders = self.changed().filter_map(|it| it.file.path.parent()?.parent());
        match self.editor {
            SupportedEditor::Neovim => !folders.into_iter().any(has_lazy_folder),
            SupportedEditor::Emacs => true,
            _ => false,
        }
    }

    fn print_kept(&self, context: &CommandContext) {
        for (name, reason) in self.changes.iter().flat_map(|it| &it.kept) {
            context.output.print_note(&format!("kept `{name}`: {reason}"));
        }
    }

    fn print_nothing_to_do(&self, context: &CommandContext) {
        let title = self.editor.title();
        let note = if self.is_undo {
            format!(
                "nothing to take back: `jackfield setup` has nothing in the settings of {title}"
            )
        } else {
            let agents = format_count(self.agents.len(), "agent");
            let files: Vec<String> =
                self.changes.iter().map(|it| format!("`{}`", it.file.path.display())).collect();
            format!("nothing to do: {agents} of Jackfield in {}", files.join(" and "))
        };
        context.output.print_note(&note);
    }

    fn print_paths(&self, context: &CommandContext) -> Result<(), CommandError> {
        self.changed()
            .try_for_each(|it| context.output.print_line(&it.file.path.display().to_string()))
    }

    fn to_json(&self, is_plan: bool) -> Value {
        let file = |change: &PlannedChange| {
            let kept = |(name, reason): &(String, &str)| json!({ "name": name, "reason": reason });
            json!({
                "path": change.file.path, "changed": change.is_change(), "added": change.added,
                "updated": change.updated, "removed": change.removed,
                "kept": change.kept.iter().map(kept).collect::<Vec<_>>(),
                "diff": change.is_change().then(|| change.diff()),
            })
        };
        let errors: Vec<String> =
            self.errors.iter().map(|it| format!("{it}: {}", it.causes().join(": "))).collect();
        json!({
            "editor": self.editor.name(), "undo": self.is_undo, "written": !is_plan,
            "program": self.program, "entries": self.entries(),
            "files": self.changes.iter().map(file).collect::<Vec<_>>(),
            "backups": self.backups, "errors": errors, "nextSteps": self.next_steps(),
        })
    }
}

fn describe_change(change: &PlannedChange) -> String {
    let path = change.file.path.display();
    let link = change.file.linked_target();
    let link = link.map(|it| format!(" (a link to {})", it.display())).unwrap_or_default();
    let parts: Vec<String> =
        [("added", &change.added), ("updated", &change.updated), ("removed", &change.removed)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(verb, names)| format!("{verb} {}", format_count(names.len(), "agent")))
            .collect();
    match (change.text.is_some(), parts.is_empty()) {
        (false, _) => format!("removed {path}"),
        (true, true) => format!("wrote {path}{link}"),
        (true, false) => format!("{} in {path}{link}", parts.join(", ")),
    }
}
