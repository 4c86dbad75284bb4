//! `jackfield man`: the manual, from the same source as the help.

use crate::{app, app::Desk, report::Failure};
use clap::Args;

/// Print the manual page of a command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield man | man -l -
  $ jackfield man sessions rm > jackfield-sessions-rm.1")]
pub(crate) struct Man {
    /// Which command; without one, `jackfield` itself
    command: Vec<String>,
}

impl Man {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut tree = app::tree();
        tree.build();
        let mut page = &tree;
        for name in &self.command {
            page = page.find_subcommand(name).ok_or_else(|| {
                let words = self.command.join(" ");
                Failure::usage(
                    format!("there is no command `{words}`"),
                    "`jackfield --help` lists them",
                )
            })?;
        }
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone())
            .render(&mut text)
            .map_err(|source| Failure::local("cannot write the manual page", source))?;
        desk.out.exact(&String::from_utf8_lossy(&text))
    }
}
