//! What `jackfield setup` has written, so that `--undo` takes back exactly that. It is a file in the state directory.

use super::editor::SupportedEditor;
use crate::report::CommandError;
use jackfield_daemon::Paths;
use jackfield_editor_settings::{EditorAgent, InsertedValue};
use jackfield_private_files as private_files;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    files: Vec<WrittenFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WrittenFile {
    editor: String,
    /// As it was named: a symbolic link is resolved when it is used.
    pub(super) path: PathBuf,
    /// Whether there was no such file.
    pub(super) is_created: bool,
    /// Folders that were created for it, the innermost last.
    pub(super) created_folders: Vec<PathBuf>,
    pub(super) content: WrittenContent,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenContent {
    /// Members of a settings file in JSON.
    Members(Vec<InsertedValue>),
    /// The whole file, and the agents in it.
    Whole { text: String, agents: Vec<EditorAgent> },
}

impl WrittenFile {
    pub(super) fn new(
        editor: SupportedEditor,
        path: PathBuf,
        content: WrittenContent,
    ) -> WrittenFile {
        let editor = editor.name().to_owned();
        WrittenFile { editor, path, is_created: false, created_folders: Vec::new(), content }
    }
}

impl SetupRecord {
    pub(super) fn load(paths: &Paths) -> Result<SetupRecord, CommandError> {
        let path = record_path(paths);
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
            CommandError::local(format!("cannot read `{}`", path.display()), source)
        };
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|it| failed(it.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SetupRecord::default()),
            Err(error) => Err(failed(error.into())),
        }
    }

    pub(super) fn save(&self, paths: &Paths) -> Result<(), CommandError> {
        let path = record_path(paths);
        let text = serde_json::to_string_pretty(self).expect("paths and values are JSON");
        private_files::replace_file(&path, text.as_bytes()).map_err(|source| {
            CommandError::local(format!("cannot write `{}`", path.display()), source)
        })
    }

    pub(super) fn find(&self, path: &Path) -> Option<&WrittenFile> {
        self.files.iter().find(|it| it.path == path)
    }

    /// The text of a file that is ours as a whole, and the agents in it.
    pub(super) fn find_whole(&self, path: &Path) -> Option<(&str, &[EditorAgent])> {
        match &self.find(path)?.content {
            WrittenContent::Whole { text, agents } => Some((text, agents)),
            WrittenContent::Members(_) => None,
        }
    }

    /// The files of an editor, or only one of them.
    pub(super) fn list(&self, editor: SupportedEditor, only: Option<&Path>) -> Vec<WrittenFile> {
        let files = self.files.iter().filter(|it| it.editor == editor.name());
        files.filter(|it| only.is_none_or(|only| it.path.starts_with(only))).cloned().collect()
    }

    pub(super) fn insert(&mut self, file: WrittenFile) {
        self.remove(&file.path);
        self.files.push(file);
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.files.retain(|it| it.path != path);
    }
}

fn record_path(paths: &Paths) -> PathBuf {
    paths.state.join("setup.json")
}

/// The folder for copies of files as they were before a change.
pub(super) fn backup_folder(paths: &Paths) -> PathBuf {
    paths.state.join("setup-backups")
}
