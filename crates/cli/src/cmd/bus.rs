//! `jackfield bus`: NDJSON between clients and pools of workers, without the daemon.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    hub::{EndpointAddress, guard},
    out::Volume,
    report::Failure,
};
use clap::{ArgGroup, Args};
use jackfield_bus::{Options, ServeError, Source, Transport};
use jackfield_daemon::{LogTarget, start_log};
use jackfield_transport::TlsCertificate;
use std::{net::SocketAddr, path::PathBuf};

/// Route JSON-RPC lines between clients and pools of workers
///
/// Any program that reads and writes JSON-RPC messages, one a line, can be a worker: ACP agents, MCP
/// servers, your own. Messages of a session stay with one worker; ids of different clients never meet;
/// whoever waits for a worker that dies is answered at once. Nothing is kept: for sessions that outlive
/// their agent use `jackfield acp` and `jackfield serve`.
///
/// SIGTERM and Ctrl-C end it when what was asked is answered, a second one at once. SIGHUP reads the
/// configuration again. On stdio it ends with its input.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("source").required(true),
    group = ArgGroup::new("transport"),
    after_help = "Examples:
  $ jackfield bus --config bus.json
  $ jackfield bus --config bus.json --unix /tmp/bus.sock
  $ jackfield bus --config bus.json --tcp 127.0.0.1:9000 --metrics 127.0.0.1:9100
  $ jackfield bus --config bus.json --tcp 0.0.0.0:9000 --token-file token --tls-cert cert.pem --tls-key key.pem

The configuration:
  {\"pools\": [{\"id\": \"echo\", \"command\": \"python3\", \"args\": [\"-u\", \"echo.py\"], \"instances\": 2}]}"
)]
pub(crate) struct Bus {
    /// The pools and limits, as JSON
    #[arg(long, env = env::CONFIG, hide_env_values = true, value_name = "FILE", group = "source")]
    config: Option<PathBuf>,

    /// Read them from this open descriptor instead
    #[arg(
        long,
        env = env::CONFIG_FD,
        hide_env_values = true,
        value_name = "N",
        group = "source",
        value_parser = clap::value_parser!(u16).range(0..=1024)
    )]
    config_fd: Option<u16>,

    /// Serve one client on stdin and stdout; the default
    #[arg(long, env = env::STDIO, hide_env_values = true, group = "transport", value_parser = env::flag())]
    stdio: bool,

    /// Serve clients on this socket
    #[arg(long, env = env::UNIX, hide_env_values = true, value_name = "PATH", group = "transport")]
    unix: Option<PathBuf>,

    /// Serve clients on this TCP address
    #[arg(
        long,
        env = env::TCP,
        hide_env_values = true,
        value_name = "HOST:PORT",
        group = "transport",
        value_parser = tcp
    )]
    tcp: Option<SocketAddr>,

    /// TCP clients must say what is in this file first; it is made if there is none
    #[arg(long, env = env::TOKEN_FILE, hide_env_values = true, value_name = "FILE", requires = "tcp")]
    token_file: Option<PathBuf>,

    /// The certificate for TCP inside TLS, as PEM
    #[arg(
        long,
        env = env::TLS_CERT,
        hide_env_values = true,
        value_name = "FILE",
        requires_all = ["tcp", "tls_key"]
    )]
    tls_cert: Option<PathBuf>,

    /// Its key, as PEM
    #[arg(
        long,
        env = env::TLS_KEY,
        hide_env_values = true,
        value_name = "FILE",
        requires_all = ["tcp", "tls_cert"]
    )]
    tls_key: Option<PathBuf>,

    /// Serve a page for Prometheus here, as `/metrics`
    #[arg(long, env = env::METRICS, hide_env_values = true, value_name = "HOST:PORT", value_parser = tcp)]
    metrics: Option<SocketAddr>,
}

/// An IP address or `localhost`, and a port.
fn tcp(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "give an IP address or `localhost` with a port: `127.0.0.1:9000`".to_owned();
    match format!("tcp://{text}").parse() {
        Ok(EndpointAddress::Tcp(at)) => Ok(at),
        _ => Err(wrong()),
    }
}

impl Bus {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let log_level = match desk.out.volume() {
            Volume::Low => "warn",
            Volume::Normal => "info",
            Volume::High => "debug",
            Volume::Full => "trace",
        };
        start_log(&LogTarget::Stderr, log_level)
            .map_err(|source| Failure::local("cannot write the log", source))?;
        let options = self.options(desk)?;
        let served = jackfield_bus::serve(options, |ready| {
            let (pools, workers) = (ready.pools, ready.workers);
            desk.out.note(&format!("pools: {pools}, workers: {workers}"));
            if let Some(at) = ready.metrics {
                desk.out.note(&format!("metrics on http://{at}/metrics"));
            }
            // Last: whoever waits for it finds everything else open.
            desk.out.note(&format!("listening on {}", ready.address));
        });
        served.map_err(not_served)
    }

    fn options(self, desk: &Desk) -> Result<Options, Failure> {
        let config = match (self.config, self.config_fd) {
            (Some(path), _) => Source::File(path),
            (None, Some(descriptor)) => Source::Descriptor(descriptor),
            (None, None) => unreachable!("one of them is required"),
        };
        let transport = match (self.unix, self.tcp) {
            (Some(path), _) => Transport::Unix(path),
            (None, Some(at)) => Transport::Tcp(at),
            (None, None) => Transport::Stdio,
        };
        if matches!((&config, &transport), (Source::Descriptor(0..=2), Transport::Stdio)) {
            let message = "stdin and stdout are for the client, and cannot hold the configuration";
            return Err(Failure::usage(message, "give `--unix` or `--tcp`, or use `--config`"));
        }
        let certificate = self.tls_cert.zip(self.tls_key);
        let certificate = certificate.map(|(chain, key)| TlsCertificate { chain, key });
        Ok(Options {
            config,
            transport,
            token: self.token_file,
            certificate,
            metrics: self.metrics,
            guard: guard()?,
            ledger: desk.dial.paths().ledger(),
        })
    }
}

/// A bus that did not come up, with a way out.
fn not_served(error: ServeError) -> Failure {
    let (exit, hint) = match &error {
        ServeError::Config(_) => (Exit::Usage, "`jackfield bus --help` shows a configuration"),
        ServeError::NotLoopback { .. }
        | ServeError::NeedsToken { .. }
        | ServeError::MetricsNotLoopback { .. } => (Exit::Usage, ""),
        ServeError::Listen { .. } => (Exit::Failed, "choose another address"),
        _ => (Exit::Failed, ""),
    };
    let what = "the bus could not start".to_owned();
    Failure::Local { what, source: Box::new(error), exit, hint: hint.to_owned() }
}
