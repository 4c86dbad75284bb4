//! `jackfield tui`: the full-screen interface. `jackfield` without a command opens it on a terminal.

use crate::{
    complete,
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::{
        InterfaceDaemon, caller_environment, find_session, list_sessions, load_settings,
        working_directory,
    },
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_daemon::config::EditingKeysSetting;
use jackfield_tui::{EditingKeys, TuiEnd, TuiError, TuiOptions, run_tui};
use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

/// Open the full-screen interface: all sessions, their transcripts, and open requests
///
/// `jackfield` without a command opens it, too, if stdin and stdout are a terminal. `?` shows the keys.
/// Leaving it with `q` stops nothing: sessions continue without you.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  $ jackfield
  $ jackfield tui s-7f3
  $ jackfield tui --inline              # keeps the scrollback of the terminal
  $ jackfield tui --keys vi --mouse")]
pub(crate) struct TuiCommand {
    /// A name, an id, a unique prefix of an id, or a title [default: show all sessions]
    #[arg(add = complete::sessions())]
    session: Option<String>,

    /// Draw below the prompt of the shell instead of on the whole screen
    #[arg(long, env = env::INLINE, hide_env_values = true, value_parser = env::flag_parser())]
    inline: bool,

    /// Use the mouse: the terminal no longer selects text with it, unless you hold Shift
    #[arg(long, env = env::MOUSE, hide_env_values = true, value_parser = env::flag_parser())]
    mouse: bool,

    /// The editing keys of the input field [default: `tui.keys` in config.toml, or emacs]
    #[arg(long, env = env::KEYS, hide_env_values = true, value_enum)]
    keys: Option<EditingStyle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EditingStyle {
    Emacs,
    Vi,
}

/// Whether the interface can be shown: it needs a terminal that can move its cursor.
pub(crate) fn has_terminal() -> bool {
    let can_move_cursor = std::env::var("TERM").is_ok_and(|it| !matches!(it.as_str(), "" | "dumb"));
    can_move_cursor && io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl TuiCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        if !has_terminal() {
            return Err(CommandError::usage(
                "the interface needs a terminal as stdin and stdout, and `TERM` that is not `dumb`",
                "`jackfield ps` lists sessions, `jackfield attach` follows one line by line",
            ));
        }
        let session = match &self.session {
            Some(named) => {
                let mut conn = context.daemon.connect("tui")?;
                Some(find_session(&list_sessions(&mut conn)?, named)?.session_id)
            }
            None => None,
        };
        let settings = load_settings(context.daemon.paths())?.tui;
        let key_seed = getrandom::u64().map_err(|error| {
            CommandError::local(
                "cannot create keys for requests",
                io::Error::other(error.to_string()),
            )
        })?;
        let ended = run_tui(TuiOptions {
            daemon: Arc::new(InterfaceDaemon::new(&context.daemon)),
            environment: caller_environment(),
            key_seed,
            cwd: working_directory(None)?.to_string_lossy().into_owned(),
            session,
            is_inline: self.inline,
            uses_mouse: self.mouse || settings.mouse,
            has_color: context.output.has_color(),
            editing: match (self.keys, settings.keys) {
                (Some(EditingStyle::Vi), _) | (None, EditingKeysSetting::Vi) => EditingKeys::Vi,
                (Some(EditingStyle::Emacs), _) | (None, EditingKeysSetting::Emacs) => {
                    EditingKeys::Emacs
                }
            },
            key_changes: settings.bindings,
        });
        match ended {
            Ok(TuiEnd::Quit) => Ok(()),
            Ok(TuiEnd::Signal) => Err(CommandError::AlreadyReported(CliExitCode::Interrupted)),
            Err(TuiError::Keys(why)) => Err(CommandError::usage(
                format!("the keys in config.toml are invalid: {why}"),
                "`jackfield config edit` opens the file",
            )),
            Err(error) => Err(CommandError::local("the interface failed", error)),
        }
    }
}
