//! `jackfield serve`: runs the daemon in the foreground.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    fleet::FleetArgs,
    fleet_control::fleet_control,
    hub::{ALREADY_RUNS, EndpointAddress, boot_error, default_options},
    out::VerbosityLevel,
    report::CommandError,
};
use clap::Args;
use jackfield_agents::probe::AgentSurvey;
use jackfield_daemon::{
    BootError, DaemonOptions, ExtraRoutes, LogTarget, Paths, Tenant, UNCONFINED_AGENTS_WARNING,
    environment,
};
use jackfield_web::rest::{self, LoginScope, MetricsRenderer, WorkDirs};
use std::{collections::BTreeMap, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

/// Run the daemon in the foreground
///
/// It always listens on the socket in the runtime directory. Ctrl-C stops it after the running turns
/// have ended or were canceled; a second Ctrl-C stops it at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield serve
  $ jackfield serve --listen tcp://127.0.0.1:7777 --idle-after never
  $ jackfield serve --listen http://127.0.0.1:7456
  $ jackfield serve --listen http://127.0.0.1:7456 --tenants tenants.toml
  $ jackfield serve --fleet tls://n1:4222 --role host --label zone=a
  $ jackfield serve --log daemon.log -v")]
pub(crate) struct ServeCommand {
    /// Also listen here: `unix:///path`, `tcp://127.0.0.1:PORT`, `http://127.0.0.1:PORT`, `https://…`
    /// or `stdio://`
    #[arg(
        long,
        env = env::LISTEN,
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ',',
        value_parser = EndpointAddress::resolve
    )]
    listen: Vec<EndpointAddress>,

    /// Permit unencrypted addresses that other machines can reach; they read the token and all messages
    #[arg(long, env = env::INSECURE, hide_env_values = true, value_parser = env::flag_parser())]
    insecure: bool,

    /// Exit after this many idle seconds [default: never in the foreground]
    #[arg(long, env = env::IDLE_AFTER, hide_env_values = true, value_name = "SECS|never")]
    idle_after: Option<IdleAfter>,

    /// Also accept the tenants in this file, each with access to its own sessions
    #[arg(long, env = env::TENANTS, hide_env_values = true, value_name = "FILE")]
    tenants: Option<PathBuf>,

    #[command(flatten)]
    fleet: FleetArgs,

    /// Write the log here [default: stderr]
    #[arg(long, env = env::LOG, hide_env_values = true, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Detach from the terminal
    #[arg(long, hide = true)]
    detached: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleAfter {
    Seconds(u64),
    Never,
}

impl FromStr for IdleAfter {
    type Err = String;

    fn from_str(text: &str) -> Result<IdleAfter, String> {
        match text {
            "never" => Ok(IdleAfter::Never),
            _ => text
                .parse()
                .map(IdleAfter::Seconds)
                .map_err(|_| "write a number of seconds, or `never`".to_owned()),
        }
    }
}

impl ServeCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        if self.detached {
            // Ctrl-C in the terminal of the parent must not stop the daemon.
            let _already_leader = rustix::process::setsid();
        }
        let options = default_options(context.daemon.paths())?;
        let idle_after = match self.idle_after {
            Some(IdleAfter::Seconds(seconds)) => Some(Duration::from_secs(seconds)),
            None if self.detached || options.settings.idle_after.is_some() => options.idle_after,
            Some(IdleAfter::Never) | None => None,
        };
        let log_level = match context.output.verbosity() {
            VerbosityLevel::Quiet => "warn",
            VerbosityLevel::Normal => "info",
            VerbosityLevel::Verbose => "debug",
            VerbosityLevel::Debug => "trace",
        };
        let log = match self.log {
            Some(path) => LogTarget::File(path),
            // Stderr is the same file; as a log file its size is limited.
            None if self.detached => LogTarget::File(options.paths.log()),
            None => LogTarget::Stderr,
        };
        let options = DaemonOptions {
            fleet: self.fleet.into_fleet()?,
            listen: self.listen,
            insecure: self.insecure || options.insecure,
            tenants: self.tenants,
            idle_after,
            log,
            log_level: log_level.to_owned(),
            routes: Some(build_routes(&options)),
            ..options
        };
        let detached = self.detached;
        // A log on stderr already contains the warning.
        let must_warn = options.tenants.is_some() && options.log != LogTarget::Stderr;
        let served = jackfield_daemon::serve(options, |ready| {
            if must_warn {
                context.output.print_alert(&format!("warning: {UNCONFINED_AGENTS_WARNING}"));
            }
            for address in &ready.addresses {
                context.output.print_note(&format!("listening on {address}"));
            }
        });
        served.map_err(|error| {
            let is_second = detached && matches!(error, BootError::AlreadyRuns { .. });
            boot_error(error, if is_second { ALREADY_RUNS } else { CliExitCode::Failed })
        })
    }
}

/// The HTTP routes apart from the protocol itself.
fn build_routes(options: &DaemonOptions) -> ExtraRoutes {
    let (paths, settings) = (options.paths.clone(), options.settings.clone());
    let commands: BTreeMap<String, Vec<String>> = settings
        .agents
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), it.command.clone()?)))
        .collect();
    let directory = |configured: &Option<PathBuf>, name: &str| {
        configured.clone().unwrap_or_else(|| paths.state.join(name))
    };
    let dirs = WorkDirs {
        projects: directory(&settings.http.projects, "projects"),
        uploads: directory(&settings.http.uploads, "uploads"),
        roots: settings.http.roots.clone(),
    };
    let (profile, approve) = (settings.http.profile, settings.http.approve);
    ExtraRoutes::new(move |context| {
        let (paths, metrics) = (paths.clone(), context.metrics);
        let tenant = context.tenant.as_ref().map(|it| it.name.to_string());
        rest::routes(&rest::RestConfig {
            hub: context.hub,
            survey: Arc::new(move || survey_agents(&paths)),
            commands: commands.clone(),
            fleet: context.hosts.map(|it| fleet_control(&it, context.tenant.is_none())),
            dirs: context.tenant.map_or_else(|| dirs.clone(), |it| tenant_dirs(&it, &dirs)),
            profile,
            approve,
            login: LoginScope { logins: context.logins, tenant },
            metrics: metrics.map(|metrics| -> MetricsRenderer {
                Arc::new(move || {
                    let metrics = metrics.clone();
                    Box::pin(async move { metrics.render_page().await })
                })
            }),
        })
    })
}

/// A tenant can only use its roots: projects and uploads are in the first one.
fn tenant_dirs(tenant: &Tenant, all: &WorkDirs) -> WorkDirs {
    let default_dir = || all.projects.join(&*tenant.name);
    let first = tenant.roots.first().cloned().unwrap_or_else(default_dir);
    WorkDirs { projects: first.clone(), uploads: first, roots: tenant.roots.clone() }
}

fn survey_agents(paths: &Paths) -> AgentSurvey {
    let locations = environment::program_locations(paths);
    AgentSurvey::new(jackfield_daemon::load_catalog(paths), locations, &paths.probes())
}
