//! `jackfield config edit`: opens config.toml in an editor and checks the result.

use super::{
    ConfigFile,
    file::{invalid_file_error, report_change},
};
use crate::{context::CommandContext, exit::CliExitCode, report::CommandError};
use clap::Args;
use jackfield_daemon::{Settings, config::ConfigLineError};
use jackfield_private_files::replace_file;
use std::{fs, io, path::Path, process::Command};

/// Edit config.toml with $VISUAL or $EDITOR
///
/// The file is replaced only if the edited text is valid. Otherwise you can edit it again, and the
/// rejected text stays in config.toml.rejected.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config edit
  $ EDITOR=\"code --wait\" jackfield config edit")]
pub(super) struct EditConfigCommand {}

pub(super) fn edit_config(context: &CommandContext) -> Result<(), CommandError> {
    context.daemon.require_operator("config edit")?;
    let editor = choose_editor()?;
    let file = ConfigFile::read(&context.daemon.paths().config_file())?;
    let draft = file.path.with_file_name("config.toml.rejected");
    let unwritable = |source: io::Error| {
        CommandError::local(format!("cannot write `{}`", draft.display()), source)
    };
    replace_file(&draft, file.text.as_bytes()).map_err(unwritable)?;
    let (text, settings) = loop {
        let text = run_editor(&editor, &draft)?;
        match file.parse(&text) {
            Ok(settings) => break (text, settings),
            Err(problems) => confirm_retry(context, &draft, &problems)?,
        }
    };
    let old = file.parse(&file.text);
    if text != file.text {
        file.replace(&text)?;
    }
    fs::remove_file(&draft).map_err(unwritable)?;
    // Nothing of an invalid file was in effect.
    report_change(context, old.unwrap_or_else(|_| Settings::default()), settings)
}

fn choose_editor() -> Result<String, CommandError> {
    let is_set = |it: &String| !it.trim().is_empty();
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|it| std::env::var(it).ok().filter(is_set));
    editor.ok_or_else(|| {
        CommandError::usage(
            "no editor is configured: `VISUAL` and `EDITOR` are not set",
            "set one of them, or change single settings with `jackfield config set KEY VALUE`",
        )
    })
}

/// Runs the editor on the file and returns the edited text. Like in other programs, the variable may
/// contain arguments.
fn run_editor(editor: &str, file: &Path) -> Result<String, CommandError> {
    let failure = |source: io::Error| CommandError::Local {
        what: format!("cannot edit with `{editor}`"),
        source: source.into(),
        exit: CliExitCode::Failed,
        hint: "config.toml was not changed".to_owned(),
    };
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file);
    let status = command.status().map_err(failure)?;
    if !status.success() {
        return Err(failure(io::Error::other(format!("the editor ended with {status}"))));
    }
    fs::read_to_string(file).map_err(failure)
}

/// Asks whether to edit the rejected text again. The error reports the rejected text.
fn confirm_retry(
    context: &CommandContext,
    draft: &Path,
    problems: &[ConfigLineError],
) -> Result<(), CommandError> {
    let hint =
        "config.toml was not changed; correct these lines and run `jackfield config edit` again";
    let error = invalid_file_error(draft, problems, hint);
    if !context.output.can_prompt_user() {
        return Err(error);
    }
    for problem in problems {
        context.output.print_alert(&problem.to_string());
    }
    context.output.print_question("the file is invalid; edit it again? [Y/n]");
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|source| CommandError::local("cannot read the answer", source))?;
    if matches!(line.trim(), "" | "y" | "Y" | "yes") { Ok(()) } else { Err(error) }
}
