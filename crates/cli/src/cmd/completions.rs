//! `jackfield completions`: prints shell completions.

use crate::{complete, context::CommandContext, report::CommandError};
use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

/// Print the completion script of a shell
///
/// The script runs jackfield when you press Tab, so that it completes the agents, sessions and
/// configuration keys that exist at that moment, besides commands and options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield completions bash > ~/.local/share/bash-completion/completions/jackfield
  $ jackfield completions zsh > ~/.zfunc/_jackfield
  $ jackfield completions fish > ~/.config/fish/completions/jackfield.fish")]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: CompletedShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletedShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// From a directory in `fpath`, zsh loads the script at the first completion, as the body of a function with the name of
/// the file. That completion then has candidates only if the body asks for them.
const ZSH_FIRST_COMPLETION: &str = "
if [[ $funcstack[1] == _jackfield ]]; then
    _clap_dynamic_completer_jackfield \"$@\"
fi
";

impl CompletionsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let shell: &dyn EnvCompleter = match self.shell {
            CompletedShell::Bash => &Bash,
            CompletedShell::Elvish => &Elvish,
            CompletedShell::Fish => &Fish,
            CompletedShell::Powershell => &Powershell,
            CompletedShell::Zsh => &Zsh,
        };
        let mut text = Vec::new();
        let name = "jackfield";
        shell
            .write_registration(complete::VARIABLE, name, name, name, &mut text)
            .map_err(|source| CommandError::local("cannot write the script", source))?;
        if matches!(self.shell, CompletedShell::Zsh) {
            text.extend_from_slice(ZSH_FIRST_COMPLETION.as_bytes());
        }
        context.output.print_raw(&String::from_utf8_lossy(&text))
    }
}
