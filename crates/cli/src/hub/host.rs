//! What a hub of our own is started with: in the foreground, or inside this process.

use crate::{exit::Exit, report::Failure};
use jackfield_agents::GuardCommand;
use jackfield_daemon::{
    BootError, Isolated, JournalChoice, LogTarget, Options, Paths, Settings,
    config::{self, ConfigError},
};
use jackfield_transport::BlockingSocket;
use std::net::Shutdown;

/// What the daemon's configuration says.
pub(crate) fn settings(paths: &Paths) -> Result<Settings, Failure> {
    config::load(&paths.config_file()).map_err(bad_config)
}

fn bad_config(error: ConfigError) -> Failure {
    let hint = "correct the file, or set `JACKFIELD_CONFIG_DIR` to another directory".to_owned();
    let what = "the configuration cannot be used".to_owned();
    Failure::Local { what, source: Box::new(error), exit: Exit::Usage, hint }
}

/// Ourselves, as the parent of a process tree.
pub(crate) fn guard() -> Result<GuardCommand, Failure> {
    let program = std::env::current_exe()
        .map_err(|source| Failure::local("cannot find our own program", source))?;
    Ok(GuardCommand { program, args: vec![crate::cmd::guard::NAME.to_owned()] })
}

/// A daemon's options with everything at its default.
pub(crate) fn options(paths: &Paths) -> Result<Options, Failure> {
    let settings = settings(paths)?;
    Ok(Options {
        fleet: None,
        paths: paths.clone(),
        listen: Vec::new(),
        idle_after: settings.idle_after(),
        log: LogTarget::Stderr,
        log_level: "info".to_owned(),
        guard: guard()?,
        settings,
        journal: JournalChoice::Sqlite,
        tenants: None,
        routes: None,
    })
}

/// A hub that did not come up, with a way out.
pub(crate) fn not_booted(error: BootError, exit: Exit) -> Failure {
    let hint = match &error {
        BootError::AlreadyRuns { .. } => {
            "`jackfield daemon status` shows it, `jackfield daemon stop` ends it"
        }
        BootError::Tenants(_) => "`jackfield tenants check FILE` shows how it is understood",
        BootError::PassedSocket(_) => {
            "`jackfield.socket` needs exactly one `ListenStream=` with a path"
        }
        BootError::Listen { .. } => "choose another address with `--listen`",
        _ => "`jackfield doctor` says what is wrong",
    };
    let what = "the daemon could not start".to_owned();
    Failure::Local { what, source: Box::new(error), exit, hint: hint.to_owned() }
}

/// A hub inside this process. Dropped, it ends its agents first.
#[derive(Debug)]
pub(crate) struct Hosted(Option<Isolated>);

impl Hosted {
    pub(crate) fn start(paths: &Paths) -> Result<(Hosted, BlockingSocket), Failure> {
        let options =
            Options { journal: JournalChoice::Memory, log: LogTarget::Nowhere, ..options(paths)? };
        let isolated =
            jackfield_daemon::isolated(options).map_err(|error| not_booted(error, Exit::Failed))?;
        let socket = isolated
            .stream
            .try_clone()
            .map_err(|source| Failure::local("cannot connect to the hub", source))?;
        Ok((Hosted(Some(isolated)), BlockingSocket::Unix(socket)))
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if let Some(isolated) = self.0.take() {
            let _ended = isolated.stream.shutdown(Shutdown::Both);
            isolated.finish();
        }
    }
}
