//! `jackfield agents import`: writes the agents of an ACP registry as agent files.

use crate::{
    context::CommandContext,
    exit::CliExitCode,
    out::{DIM, paint},
    plain_text::format_count,
    report::CommandError,
};
use clap::Args;
use jackfield_catalog::{AgentSpec, Catalog, import_registry};
use jackfield_private_files as private_files;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Add the agents of an ACP registry file to the folder `agents`
///
/// Each agent becomes a TOML file that you can edit. Existing files are not overwritten, and built-in
/// agents are skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents import registry.json")]
pub(super) struct ImportAgentsCommand {
    /// A registry.json, or the agent.json of a single agent
    file: PathBuf,
}

impl ImportAgentsCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("agents import")?;
        let shown = self.file.display();
        let import_error = |source: Box<dyn std::error::Error + Send + Sync>, hint: &str| {
            let (what, hint) = (format!("cannot import `{shown}`"), hint.to_owned());
            CommandError::Local { what, source, exit: CliExitCode::Usage, hint }
        };
        let text = fs::read_to_string(&self.file)
            .map_err(|it| import_error(Box::new(it), "check the path"))?;
        let imported = import_registry(&text)
            .map_err(|it| import_error(Box::new(it), "use the registry.json of an ACP registry"))?;
        for skipped in &imported.skipped {
            context.output.print_note(&paint(DIM, skipped.to_string()));
        }
        let folder = context.daemon.paths().config.join("agents");
        let failed =
            |source| CommandError::local(format!("cannot write `{}`", folder.display()), source);
        private_files::create_dir(&folder).map_err(failed)?;
        let builtin = Catalog::builtin();
        let mut existing = Vec::new();
        for spec in imported.specs {
            if builtin.get(&spec.id).is_some() {
                let line = format!("skipped `{}`: it is a built-in agent", spec.id);
                context.output.print_note(&paint(DIM, line));
            } else if write_spec(&folder, &spec).map_err(failed)? {
                context.output.print_line(&spec.id)?;
            } else {
                existing.push(folder.join(format!("{}.toml", spec.id)));
            }
        }
        if existing.is_empty() { Ok(()) } else { Err(existing_files_error(&existing)) }
    }
}

/// Returns false if the file exists.
fn write_spec(folder: &Path, spec: &AgentSpec) -> io::Result<bool> {
    let path = folder.join(format!("{}.toml", spec.id));
    match private_files::open_file(&path, OpenOptions::new().write(true).create_new(true)) {
        Ok(mut file) => file.write_all(spec.to_toml().as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn existing_files_error(existing: &[PathBuf]) -> CommandError {
    let what = format!("{} not overwritten", format_count(existing.len(), "existing file"));
    let names: Vec<String> = existing.iter().map(|it| it.display().to_string()).collect();
    let hint = "remove a file to import its agent again".to_owned();
    CommandError::Local { what, source: names.join(", ").into(), exit: CliExitCode::Failed, hint }
}
