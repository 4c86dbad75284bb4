//! `jackfield agents import`: agents of an ACP registry as files of the user's.

use crate::{
    app::Desk,
    exit::Exit,
    out::{DIM, count, paint},
    report::Failure,
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
/// Each becomes a TOML file that you can change. What is there already is never overwritten, and
/// agents that come with jackfield are left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents import registry.json")]
pub(super) struct Import {
    /// A registry.json, or the agent.json of a single agent
    file: PathBuf,
}

impl Import {
    pub(super) fn run(&self, desk: &Desk) -> Result<(), Failure> {
        desk.dial.require_operator("agents import")?;
        let shown = self.file.display();
        let unusable = |source: Box<dyn std::error::Error + Send + Sync>, hint: &str| {
            let (what, hint) = (format!("cannot import `{shown}`"), hint.to_owned());
            Failure::Local { what, source, exit: Exit::Usage, hint }
        };
        let text = fs::read_to_string(&self.file)
            .map_err(|it| unusable(Box::new(it), "check the path"))?;
        let imported = import_registry(&text)
            .map_err(|it| unusable(Box::new(it), "give the registry.json of an ACP registry"))?;
        for skipped in &imported.skipped {
            desk.out.note(&paint(DIM, skipped.to_string()));
        }
        let folder = desk.dial.paths().config.join("agents");
        let failed =
            |source| Failure::local(format!("cannot write `{}`", folder.display()), source);
        private_files::create_dir(&folder).map_err(failed)?;
        let ours = Catalog::builtin();
        let mut kept = Vec::new();
        for spec in imported.specs {
            if ours.get(&spec.id).is_some() {
                let line = format!("`{}` was skipped: it comes with jackfield", spec.id);
                desk.out.note(&paint(DIM, line));
            } else if write(&folder, &spec).map_err(failed)? {
                desk.out.line(&spec.id)?;
            } else {
                kept.push(folder.join(format!("{}.toml", spec.id)));
            }
        }
        if kept.is_empty() { Ok(()) } else { Err(exists(&kept)) }
    }
}

/// False if there is a file of that name.
fn write(folder: &Path, spec: &AgentSpec) -> io::Result<bool> {
    let path = folder.join(format!("{}.toml", spec.id));
    match private_files::open_file(&path, OpenOptions::new().write(true).create_new(true)) {
        Ok(mut file) => file.write_all(spec.to_toml().as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn exists(kept: &[PathBuf]) -> Failure {
    let what = format!("{} of that name existed and stayed as before", count(kept.len(), "file"));
    let names: Vec<String> = kept.iter().map(|it| it.display().to_string()).collect();
    let hint = "remove a file to have it imported anew".to_owned();
    Failure::Local { what, source: names.join(", ").into(), exit: Exit::Failed, hint }
}
