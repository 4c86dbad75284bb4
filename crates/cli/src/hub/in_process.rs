//! The options of a daemon that this process runs: in the foreground, or as a hub for one command.

use crate::{exit::CliExitCode, report::CommandError};
use jackfield_agents::GuardCommand;
use jackfield_daemon::{
    BootError, DaemonOptions, IsolatedHub, JournalChoice, LogTarget, Paths, Settings,
    config::{self, ConfigError},
};
use jackfield_transport::{AddressError, BindError, BlockingSocket};
use std::net::Shutdown;

/// The subcommand that runs a guard. It must be the first argument.
pub(crate) const GUARD_SUBCOMMAND: &str = "guard";

/// The way out if the daemon refuses an address that other machines can reach.
pub(crate) const UNENCRYPTED_HINT: &str = "use `https://` with a certificate (`cert` and `key` under [http] in config.toml), or 127.0.0.1 \
     and `ssh -L` from other machines; `--insecure` permits unencrypted connections";

/// Loads the configuration of the daemon.
pub(crate) fn load_settings(paths: &Paths) -> Result<Settings, CommandError> {
    config::load(&paths.config_file()).map_err(config_failure)
}

fn config_failure(error: ConfigError) -> CommandError {
    let hint = "correct the file, or set `JACKFIELD_CONFIG_DIR` to another directory".to_owned();
    let what = "invalid configuration".to_owned();
    CommandError::Local { what, source: Box::new(error), exit: CliExitCode::Usage, hint }
}

/// The command that starts this program as the guard of an agent's process tree.
pub(crate) fn guard_command() -> Result<GuardCommand, CommandError> {
    let program = std::env::current_exe().map_err(|source| {
        CommandError::local("cannot find the path of the jackfield program", source)
    })?;
    Ok(GuardCommand { program, args: vec![GUARD_SUBCOMMAND.to_owned()] })
}

/// The options of a daemon without any flags.
pub(crate) fn default_options(paths: &Paths) -> Result<DaemonOptions, CommandError> {
    let settings = load_settings(paths)?;
    Ok(DaemonOptions {
        fleet: None,
        paths: paths.clone(),
        listen: Vec::new(),
        insecure: settings.http.insecure,
        idle_after: settings.idle_after(),
        log: LogTarget::Stderr,
        log_level: "info".to_owned(),
        guard: guard_command()?,
        settings,
        journal: JournalChoice::Sqlite,
        tenants: None,
        routes: None,
    })
}

/// A daemon that did not start, with a hint.
pub(crate) fn boot_error(error: BootError, exit: CliExitCode) -> CommandError {
    let hint = match &error {
        BootError::AlreadyRuns { .. } => {
            "`jackfield daemon status` shows it, `jackfield daemon stop` stops it"
        }
        BootError::Tenants(_) => "`jackfield tenants check FILE` shows how the file is read",
        BootError::PassedSocket(_) => {
            "`jackfield.socket` needs exactly one `ListenStream=` with a path"
        }
        BootError::Listen {
            source: BindError::Address(AddressError::NotLoopback { .. }), ..
        } => UNENCRYPTED_HINT,
        BootError::Listen { .. } => "choose another address with `--listen`",
        _ => "run `jackfield doctor` to find the cause",
    };
    let what = "the daemon could not start".to_owned();
    CommandError::Local { what, source: Box::new(error), exit, hint: hint.to_owned() }
}

/// A hub inside this process. When it is dropped, it stops its agents first.
#[derive(Debug)]
pub(crate) struct InProcessHub(Option<IsolatedHub>);

impl InProcessHub {
    pub(crate) fn start(paths: &Paths) -> Result<(InProcessHub, BlockingSocket), CommandError> {
        let options = DaemonOptions {
            journal: JournalChoice::Memory,
            log: LogTarget::Nowhere,
            ..default_options(paths)?
        };
        let isolated = jackfield_daemon::start_isolated(options)
            .map_err(|error| boot_error(error, CliExitCode::Failed))?;
        let socket = isolated.stream.try_clone().map_err(|source| {
            CommandError::local("cannot connect to the hub in this process", source)
        })?;
        Ok((InProcessHub(Some(isolated)), BlockingSocket::Unix(socket)))
    }
}

impl Drop for InProcessHub {
    fn drop(&mut self) {
        if let Some(isolated) = self.0.take() {
            let _ended = isolated.stream.shutdown(Shutdown::Both);
            isolated.finish();
        }
    }
}
