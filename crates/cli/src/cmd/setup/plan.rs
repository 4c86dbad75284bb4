//! What a run changes in each file, before anything is written.

use super::{
    editor::{SupportedEditor, has_lazy_folder},
    record::{SetupRecord, WrittenContent, WrittenFile},
    settings_file::SettingsFile,
};
use crate::{exit::CliExitCode, report::CommandError};
use jackfield_editor_settings::{
    EditorAgent, SettingsEntry, add_entries, generate_elisp_file, generate_lazy_spec,
    generate_lua_module, remove_entries,
};
use jackfield_views::render_diff;
use std::path::{Path, PathBuf};

/// The change of one file.
#[derive(Debug)]
pub(super) struct PlannedChange {
    pub(super) file: SettingsFile,
    /// `None` if the file is removed or stays missing.
    pub(super) text: Option<String>,
    /// What is recorded about the file afterwards; `None` if it is forgotten.
    pub(super) record: Option<WrittenFile>,
    /// Folders to remove if they are empty, the innermost last.
    pub(super) removed_folders: Vec<PathBuf>,
    pub(super) added: Vec<String>,
    pub(super) updated: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Names of agents that are kept as they are, each with the reason.
    pub(super) kept: Vec<(String, &'static str)>,
}

const CHANGED_BY_USER: &str = "it was changed since `jackfield setup` wrote it";
const NOT_OURS: &str =
    "`jackfield setup` did not write the entry of this name; rename or remove it to replace it";

impl PlannedChange {
    fn new(file: SettingsFile) -> PlannedChange {
        let text = file.text.clone();
        let (added, updated, removed, kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (record, removed_folders) = (None, Vec::new());
        PlannedChange { file, text, record, removed_folders, added, updated, removed, kept }
    }

    pub(super) fn is_change(&self) -> bool {
        self.text != self.file.text
    }

    pub(super) fn diff(&self) -> String {
        let path = self.file.path.display().to_string();
        render_diff(&path, self.file.text.as_deref(), self.text.as_deref().unwrap_or_default())
    }
}

/// The files of an editor whose settings are at `settings`, with the agents added.
pub(super) fn plan_setup(
    editor: SupportedEditor,
    settings: &Path,
    program: &str,
    agents: &[EditorAgent],
    record: &SetupRecord,
) -> Result<Vec<PlannedChange>, CommandError> {
    if let Some((section, indent)) = editor.json_section() {
        let entries: Vec<SettingsEntry> =
            agents.iter().map(|it| editor.make_entry(program, it)).collect();
        let change = plan_entries(editor, settings, section, &entries, indent, record)?;
        return Ok(vec![change]);
    }
    let agents = add_earlier_agents(editor, settings, agents, record);
    let files = own_files(editor, settings, program, &agents);
    files
        .into_iter()
        .map(|(path, text)| plan_own_file(editor, &path, text, &agents, record))
        .collect()
}

/// The agents of the files that earlier runs have written, and those that are new.
fn add_earlier_agents(
    editor: SupportedEditor,
    folder: &Path,
    agents: &[EditorAgent],
    record: &SetupRecord,
) -> Vec<EditorAgent> {
    let files = own_files(editor, folder, "", &[]);
    let earlier = files.first().and_then(|(path, _)| record.find_whole(path));
    let mut all = earlier.map(|(_, agents)| agents.to_vec()).unwrap_or_default();
    let is_new = |it: &&EditorAgent| all.iter().all(|earlier| earlier.id != it.id);
    let new: Vec<EditorAgent> = agents.iter().filter(is_new).cloned().collect();
    all.extend(new);
    all
}

/// The files of ours for an editor whose settings are a program.
pub(super) fn own_files(
    editor: SupportedEditor,
    folder: &Path,
    program: &str,
    agents: &[EditorAgent],
) -> Vec<(PathBuf, String)> {
    if editor == SupportedEditor::Emacs {
        return vec![(folder.join("jackfield.el"), generate_elisp_file(program, agents))];
    }
    let module = generate_lua_module(program, agents);
    let mut files = vec![(folder.join("lua/jackfield.lua"), module)];
    if has_lazy_folder(folder) {
        let spec = generate_lazy_spec().to_owned();
        files.push((folder.join("lua/plugins/jackfield.lua"), spec));
    }
    files
}

fn plan_entries(
    editor: SupportedEditor,
    path: &Path,
    section: &str,
    entries: &[SettingsEntry],
    indent: &str,
    record: &SetupRecord,
) -> Result<PlannedChange, CommandError> {
    let mut change = PlannedChange::new(SettingsFile::read(path)?);
    let written = record.find(path);
    let earlier = match written.map(|it| &it.content) {
        Some(WrittenContent::Members(inserted)) => inserted.as_slice(),
        _ => &[],
    };
    let text = change.file.text.as_deref().unwrap_or_default();
    let edit = add_entries(text, section, entries, earlier, indent)
        .map_err(|it| invalid_settings(path, it.into()))?;
    if !edit.is_unchanged() {
        change.text = Some(edit.text);
    }
    let kept = |names: Vec<String>, reason| names.into_iter().map(move |it| (it, reason));
    change.kept.extend(kept(edit.changed_by_user, CHANGED_BY_USER));
    change.kept.extend(kept(edit.not_ours, NOT_OURS));
    (change.added, change.updated) = (edit.added, edit.updated);
    let content = WrittenContent::Members(edit.inserted);
    change.set_record(editor, written, content);
    Ok(change)
}

/// A file that has only our text. One that the user has written or changed is not replaced.
fn plan_own_file(
    editor: SupportedEditor,
    path: &Path,
    text: String,
    agents: &[EditorAgent],
    record: &SetupRecord,
) -> Result<PlannedChange, CommandError> {
    let mut change = PlannedChange::new(SettingsFile::read(path)?);
    let earlier = record.find_whole(path).map(|(text, _)| text);
    let current = change.file.text.as_deref();
    if current.is_some_and(|it| it != text) && current != earlier {
        let what = format!("cannot replace `{}`", path.display());
        let reason = if earlier.is_some() { CHANGED_BY_USER } else { "it is a file of yours" };
        let hint = "move it away and run the command again".to_owned();
        let (source, exit) = (reason.into(), CliExitCode::Failed);
        return Err(CommandError::Local { what, source, exit, hint });
    }
    let is_ours = current.is_none() || earlier.is_some();
    change.text = Some(text.clone());
    if is_ours {
        let content = WrittenContent::Whole { text, agents: agents.to_vec() };
        change.set_record(editor, record.find(path), content);
    }
    Ok(change)
}

impl PlannedChange {
    fn set_record(
        &mut self,
        editor: SupportedEditor,
        written: Option<&WrittenFile>,
        content: WrittenContent,
    ) {
        let mut record = WrittenFile::new(editor, self.file.path.clone(), content);
        match (written, &self.file.text) {
            (_, None) => {
                record.is_created = true;
                record.created_folders = self.file.missing_folders();
            }
            (Some(written), Some(_)) => {
                record.is_created = written.is_created;
                record.created_folders.clone_from(&written.created_folders);
            }
            (None, Some(_)) => {}
        }
        let is_empty = matches!(&record.content, WrittenContent::Members(it) if it.is_empty());
        self.record = (!is_empty).then_some(record);
    }
}

/// The file without what earlier runs have written.
pub(super) fn plan_undo(written: &WrittenFile) -> Result<PlannedChange, CommandError> {
    let mut change = PlannedChange::new(SettingsFile::read(&written.path)?);
    let Some(text) = change.file.text.as_deref() else { return Ok(change) };
    let name = written.path.display().to_string();
    match &written.content {
        WrittenContent::Members(inserted) => {
            let removal = remove_entries(text, inserted)
                .map_err(|it| invalid_settings(&written.path, it.into()))?;
            let is_removed = written.is_created && removal.text.is_empty();
            change.text = (!is_removed).then_some(removal.text);
            change.removed = removal.removed;
            change.kept =
                removal.changed_by_user.into_iter().map(|it| (it, CHANGED_BY_USER)).collect();
        }
        WrittenContent::Whole { text: whole, .. } if whole == text => {
            change.text = None;
            change.removed.push(name);
        }
        WrittenContent::Whole { .. } => change.kept.push((name, CHANGED_BY_USER)),
    }
    if change.text.is_none() {
        change.removed_folders.clone_from(&written.created_folders);
    }
    Ok(change)
}

fn invalid_settings(path: &Path, source: Box<dyn std::error::Error + Send + Sync>) -> CommandError {
    CommandError::Local {
        what: format!("cannot change the settings `{}`", path.display()),
        source,
        exit: CliExitCode::Failed,
        hint:
            "correct the file in the editor and run the command again; `--print` shows what to add"
                .to_owned(),
    }
}
