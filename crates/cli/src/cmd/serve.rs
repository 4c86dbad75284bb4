//! `jackfield serve`: the daemon in the foreground.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    fleet::FleetArgs,
    hub::{ALREADY_RUNS, EndpointAddress, not_booted, options},
    out::Volume,
    report::Failure,
};
use clap::Args;
use jackfield_agents::{find::ProgramLocations, probe::AgentSurvey};
use jackfield_daemon::{
    BootError, LogTarget, Options, Paths, Routes, Tenant, UNCONFINED_AGENTS_WARNING, environment,
};
use jackfield_web::rest::{self, Dirs, Hosted, Metrics};
use std::{collections::BTreeMap, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

/// Run the daemon in the foreground
///
/// It always listens on the socket of the runtime directory. Ctrl-C stops it when the running turns
/// are over or have been told; a second one stops it at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield serve
  $ jackfield serve --listen tcp://127.0.0.1:7777 --idle-after never
  $ jackfield serve --listen http://127.0.0.1:7456
  $ jackfield serve --listen http://127.0.0.1:7456 --tenants tenants.toml
  $ jackfield serve --fleet tls://n1:4222 --role host --label zone=a
  $ jackfield serve --log daemon.log -v")]
pub(crate) struct Serve {
    /// Listen here too: `unix:///path`, `tcp://127.0.0.1:PORT`, `http://127.0.0.1:PORT`, `https://…`
    /// or `stdio://`
    #[arg(long, env = env::LISTEN, hide_env_values = true, value_name = "URL", value_delimiter = ',')]
    listen: Vec<EndpointAddress>,

    /// End after so many seconds with nothing alive [default: never in the foreground]
    #[arg(long, env = env::IDLE_AFTER, hide_env_values = true, value_name = "SECS|never")]
    idle_after: Option<IdleAfter>,

    /// Let the tenants of this file in, too, each to its own sessions
    #[arg(long, env = env::TENANTS, hide_env_values = true, value_name = "FILE")]
    tenants: Option<PathBuf>,

    #[command(flatten)]
    fleet: FleetArgs,

    /// Write the log here [default: stderr]
    #[arg(long, env = env::LOG, hide_env_values = true, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Leave the terminal of whoever started us
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
                .map_err(|_| "give a number of seconds, or `never`".to_owned()),
        }
    }
}

impl Serve {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        if self.detached {
            // Ctrl-C in the terminal that happened to start us is not meant for us.
            let _leads_already = rustix::process::setsid();
        }
        let options = options(desk.dial.paths())?;
        let idle_after = match self.idle_after {
            Some(IdleAfter::Seconds(seconds)) => Some(Duration::from_secs(seconds)),
            None if self.detached || options.settings.idle_after.is_some() => options.idle_after,
            Some(IdleAfter::Never) | None => None,
        };
        let log_level = match desk.out.volume() {
            Volume::Low => "warn",
            Volume::Normal => "info",
            Volume::High => "debug",
            Volume::Full => "trace",
        };
        let log = match self.log {
            Some(path) => LogTarget::File(path),
            // It is our stderr, too; as a file it is kept small.
            None if self.detached => LogTarget::File(options.paths.log()),
            None => LogTarget::Stderr,
        };
        let options = Options {
            fleet: self.fleet.fleet()?,
            listen: self.listen,
            tenants: self.tenants,
            idle_after,
            log,
            log_level: log_level.to_owned(),
            routes: Some(routes(&options)),
            ..options
        };
        let detached = self.detached;
        // A log on stderr has the warning already.
        let must_warn = options.tenants.is_some() && options.log != LogTarget::Stderr;
        let served = jackfield_daemon::serve(options, |ready| {
            if must_warn {
                desk.out.alert(&format!("warning: {UNCONFINED_AGENTS_WARNING}"));
            }
            for address in &ready.addresses {
                desk.out.note(&format!("listening on {address}"));
            }
        });
        served.map_err(|error| {
            let second = detached && matches!(error, BootError::AlreadyRuns { .. });
            not_booted(error, if second { ALREADY_RUNS } else { Exit::Failed })
        })
    }
}

/// What is served over HTTP beside the protocol itself.
fn routes(options: &Options) -> Routes {
    let (paths, settings) = (options.paths.clone(), options.settings.clone());
    let commands: BTreeMap<String, Vec<String>> = settings
        .agents
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), it.command.clone()?)))
        .collect();
    let below = |named: &Option<PathBuf>, name: &str| {
        named.clone().unwrap_or_else(|| paths.state.join(name))
    };
    let dirs = Dirs {
        projects: below(&settings.http.projects, "projects"),
        uploads: below(&settings.http.uploads, "uploads"),
        roots: settings.http.roots.clone(),
    };
    Routes::new(move |front| {
        let (paths, metrics) = (paths.clone(), front.metrics);
        rest::routes(&rest::Front {
            hub: front.hub,
            survey: Arc::new(move || survey(&paths)),
            commands: commands.clone(),
            hosted: front.hosts.map(|hosts| -> Hosted {
                Arc::new(move || hosts.borrow().iter().flat_map(|it| it.agents.clone()).collect())
            }),
            dirs: front.tenant.map_or_else(|| dirs.clone(), |it| dirs_of(&it, &dirs)),
            metrics: metrics.map(|metrics| -> Metrics {
                Arc::new(move || {
                    let metrics = metrics.clone();
                    Box::pin(async move { metrics.page().await })
                })
            }),
        })
    })
}

/// A tenant has nothing but its roots: the first is where its projects and pictures are.
fn dirs_of(tenant: &Tenant, all: &Dirs) -> Dirs {
    let nowhere = || all.projects.join(&*tenant.name);
    let first = tenant.roots.first().cloned().unwrap_or_else(nowhere);
    Dirs { projects: first.clone(), uploads: first, roots: tenant.roots.clone() }
}

fn survey(paths: &Paths) -> AgentSurvey {
    let places = ProgramLocations::new(environment::ours());
    AgentSurvey::new(jackfield_daemon::catalogue(paths), places, &paths.probes())
}
