//! `jackfield completions`: words for the shell.

use crate::{app, app::Desk, report::Failure};
use clap::Args;
use clap_complete::Shell;

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield completions bash > ~/.local/share/bash-completion/completions/jackfield
  $ jackfield completions zsh > ~/.zfunc/_jackfield
  $ jackfield completions fish > ~/.config/fish/completions/jackfield.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut app::tree(), "jackfield", &mut text);
        desk.out.exact(&String::from_utf8_lossy(&text))
    }
}
