//! The configuration file: reading, checking and replacing it.

use crate::{
    context::CommandContext, exit::CliExitCode, plain_text::format_count, report::CommandError,
};
use jackfield_daemon::{
    Settings,
    config::{ConfigDocument, ConfigLineError, parse_file},
};
use jackfield_private_files::replace_file;
use jackfield_tui::check_key_bindings;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file as it is now.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// Empty if the file does not exist.
    pub(super) text: String,
    pub(super) exists: bool,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> Result<ConfigFile, CommandError> {
        let path = path.to_owned();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(ConfigFile { path, text, exists: true }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(ConfigFile { path, text: String::new(), exists: false })
            }
            Err(source) => Err(CommandError::Local {
                what: format!("cannot read `{}`", path.display()),
                source: source.into(),
                exit: CliExitCode::Usage,
                hint: "correct the file's permissions, or set `JACKFIELD_CONFIG_DIR`".to_owned(),
            }),
        }
    }

    /// The settings of this file with another text, or all errors in that text.
    pub(super) fn parse(&self, text: &str) -> Result<Settings, Vec<ConfigLineError>> {
        let settings = parse_file(text, &self.path)?;
        check_key_bindings(&settings.tui.bindings).map_err(|error| {
            let path = ["tui", "bindings", &error.action];
            let document = ConfigDocument::parse(text).ok();
            let line = document.and_then(|it| it.find_line(&path));
            vec![ConfigLineError { line, reason: error.reason }]
        })?;
        Ok(settings)
    }

    /// The settings of the file, or an error that lists all errors in it.
    pub(super) fn settings(&self) -> Result<Settings, CommandError> {
        let hint = "correct these lines; `jackfield config edit` opens the file";
        self.parse(&self.text).map_err(|it| invalid_file_error(&self.path, &it, hint))
    }

    /// Replaces the file. A symbolic link stays, and its target is replaced.
    pub(super) fn replace(&self, text: &str) -> Result<(), CommandError> {
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        replace_file(&target, text.as_bytes()).map_err(|source| {
            CommandError::local(format!("cannot write `{}`", target.display()), source)
        })
    }
}

pub(super) fn invalid_file_error(
    path: &Path,
    problems: &[ConfigLineError],
    hint: &str,
) -> CommandError {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    CommandError::Local {
        what: format!("`{}` has {}", path.display(), format_count(problems.len(), "error")),
        source: lines.join("\n").into(),
        exit: CliExitCode::Usage,
        hint: hint.to_owned(),
    }
}

/// Says when a change takes effect. The connection makes a running daemon read the file.
pub(super) fn report_change(
    context: &CommandContext,
    old: Settings,
    new: Settings,
) -> Result<(), CommandError> {
    let changes = { old }.apply_changes(new);
    if changes.applied.is_empty() && changes.need_restart.is_empty() {
        context.output.print_note("no setting has changed");
        return Ok(());
    }
    if context.daemon.connect_if_running("config")?.is_none() {
        context.output.print_note("no daemon is running; the next one uses the new settings");
        return Ok(());
    }
    if !changes.applied.is_empty() {
        let names = changes.applied.join("`, `");
        context.output.print_note(&format!("the running daemon uses the change of `{names}`"));
    }
    if !changes.need_restart.is_empty() {
        let names = changes.need_restart.join("`, `");
        context.output.print_note(&format!(
            "the change of `{names}` applies after a restart: `jackfield daemon restart`"
        ));
    }
    Ok(())
}
