//! `jackfield setup`: adds agents to the settings of an editor, and takes them out again.

mod agents;
mod editor;
mod plan;
mod program;
mod record;
mod report;
mod settings_file;

use crate::{
    complete,
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{OutputFormat, rfc3339_now},
    report::CommandError,
};
use clap::Args;
use editor::SupportedEditor;
use jackfield_editor_settings::EditorAgent;
use jackfield_private_files as private_files;
use plan::PlannedChange;
use record::SetupRecord;
use report::SetupReport;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Add agents to the settings of an editor
///
/// Finds the settings, shows the change as a diff, asks, and writes it. Everything else in the file
/// stays as it is: comments, order and indentation. A copy of the file is kept in the state directory.
/// A second run adds only what is new, and `--undo` removes exactly what was added.
///
/// The editor starts `jackfield acp NAME` with the full path of this program, unless it is in a
/// folder that every desktop session has on its PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield setup zed
  $ jackfield setup vscode --agent claude --agent codex
  $ jackfield setup jetbrains --print
  $ jackfield setup neovim --yes
  $ jackfield setup zed --undo")]
pub(crate) struct SetupCommand {
    /// The editor
    #[arg(value_enum)]
    editor: SupportedEditor,

    /// The name of an agent to add; can be repeated [default: all that are found on this machine]
    #[arg(long = "agent", env = env::SETUP_AGENTS, hide_env_values = true, value_name = "NAME", value_delimiter = ',', add = complete::agents())]
    setup_agents: Vec<String>,

    /// The settings file, or for Neovim and Emacs the folder of the init file [default: those of every installed edition]
    #[arg(long, env = env::SETTINGS, hide_env_values = true, value_name = "PATH")]
    settings: Option<PathBuf>,

    /// Only show the change
    #[arg(long, env = env::PRINT, hide_env_values = true, value_parser = env::flag_parser())]
    print: bool,

    /// Remove what earlier runs have added
    #[arg(long, env = env::UNDO, hide_env_values = true, value_parser = env::flag_parser(), conflicts_with = "setup_agents")]
    undo: bool,

    /// Do not ask for confirmation
    #[arg(short, long, env = env::YES, hide_env_values = true, value_parser = env::flag_parser())]
    yes: bool,

    /// How to print the result; `quiet` prints the changed files
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl SetupCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        if !self.print {
            context.daemon.require_operator("setup")?;
        }
        if self.format == OutputFormat::Json && !self.print && !self.yes {
            return Err(CommandError::usage(
                "`--format json` cannot ask for confirmation",
                "pass `--yes` to write the change, or `--print` to only show it",
            ));
        }
        let named = self.settings.as_deref().map(std::path::absolute).transpose();
        let named = named.map_err(|it| CommandError::local("cannot use `--settings`", it))?;
        let mut record = SetupRecord::load(context.daemon.paths())?;
        let mut report = SetupReport::new(self.editor, self.undo);
        if self.undo {
            let files = record.list(self.editor, named.as_deref());
            report.changes = files.iter().map(plan::plan_undo).collect::<Result<_, _>>()?;
        } else {
            let agents = agents::choose_agents(context, &self.setup_agents)?;
            self.plan_setup(&mut report, &record, named, agents)?;
        }
        if self.print {
            return report.print_plan(context, self.format);
        }
        if report.changes.iter().any(PlannedChange::is_change) {
            for change in report.changes.iter().filter(|it| it.is_change()) {
                change.file.check_writable()?;
            }
            if self.format == OutputFormat::Text {
                report.print_diffs(context)?;
            }
            if !self.yes {
                report.confirm(context)?;
            }
        }
        for change in &report.changes {
            report.backups.extend(apply(context, change, &mut record)?);
        }
        report.print_result(context, self.format)
    }

    fn plan_setup(
        &self,
        report: &mut SetupReport,
        record: &SetupRecord,
        named: Option<PathBuf>,
        agents: Vec<EditorAgent>,
    ) -> Result<(), CommandError> {
        report.program = program::choose_program()?;
        report.agents = agents;
        report.settings = match named {
            Some(named) => vec![named],
            None => self.find_settings(report)?,
        };
        for settings in &report.settings {
            let (program, agents) = (&report.program, &report.agents);
            match plan::plan_setup(self.editor, settings, program, agents, record) {
                Ok(changes) => report.changes.extend(changes),
                // What to add by hand can be shown for any file.
                Err(error) if self.print => report.errors.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn find_settings(&self, report: &mut SetupReport) -> Result<Vec<PathBuf>, CommandError> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let locations = self.editor.locate_settings(&var);
        if !locations.found.is_empty() {
            return Ok(locations.found);
        }
        let title = self.editor.title();
        let searched: Vec<String> =
            locations.searched.iter().map(|it| format!("`{}`", it.display())).collect();
        let error = CommandError::Local {
            what: format!("cannot find the settings of {title}"),
            source: format!("none of these folders exists: {}", searched.join(", ")).into(),
            exit: CliExitCode::NotFound,
            hint: format!(
                "start {title} once, or name its settings with `--settings`; `--print` shows what to add"
            ),
        };
        if !self.print {
            return Err(error);
        }
        report.errors.push(error);
        Ok(Vec::new())
    }
}

/// Writes one file and what is recorded about it. Returns the copy of the file as it was.
///
/// A crash in between leaves a record of values that are not in the file, which does no harm.
fn apply(
    context: &CommandContext,
    change: &PlannedChange,
    record: &mut SetupRecord,
) -> Result<Option<PathBuf>, CommandError> {
    let paths = context.daemon.paths();
    if let Some(written) = &change.record {
        record.insert(written.clone());
        record.save(paths)?;
    }
    let mut backup = None;
    if change.is_change() {
        if let Some(text) = &change.file.text {
            backup = Some(write_backup(&record::backup_folder(paths), &change.file.path, text)?);
        }
        change.file.replace(change.text.as_deref())?;
        remove_empty_folders(&change.removed_folders)?;
    }
    if change.record.is_none() && record.find(&change.file.path).is_some() {
        record.remove(&change.file.path);
        record.save(paths)?;
    }
    Ok(backup)
}

fn write_backup(folder: &Path, path: &Path, text: &str) -> Result<PathBuf, CommandError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let backup = folder.join(format!("{}-{name}", rfc3339_now()));
    private_files::replace_file(&backup, text.as_bytes()).map_err(|source| {
        CommandError::local(format!("cannot write the backup `{}`", backup.display()), source)
    })?;
    Ok(backup)
}

fn remove_empty_folders(folders: &[PathBuf]) -> Result<(), CommandError> {
    for folder in folders.iter().rev() {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = format!("cannot remove the folder `{}`", folder.display());
                return Err(CommandError::local(what, error));
            }
            _ => {}
        }
    }
    Ok(())
}
