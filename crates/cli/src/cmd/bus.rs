//! `jackfield bus`: routes NDJSON between clients and pools of workers, without the daemon.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::{EndpointAddress, guard_command},
    out::VerbosityLevel,
    report::CommandError,
};
use clap::{ArgGroup, Args};
use jackfield_bus::{BusOptions, BusTransport, ConfigSource, ServeError};
use jackfield_daemon::{LogTarget, start_log};
use jackfield_transport::{AddressError, BindError, TlsCertificate};
use std::{net::SocketAddr, path::PathBuf};

/// Route JSON-RPC lines between clients and pools of workers
///
/// Any program that reads and writes JSON-RPC messages, one per line, can be a worker: ACP agents, MCP
/// servers, your own. Messages of a session go to the same worker, request ids of different clients
/// cannot collide, and requests to a worker that dies fail at once. Nothing is stored: for sessions
/// that outlive their agent use `jackfield acp` and `jackfield serve`.
///
/// SIGTERM and Ctrl-C stop it when all requests are answered; a second one stops it at once. SIGHUP
/// reloads the configuration. On stdio it stops at the end of its input.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("source").required(true),
    group = ArgGroup::new("transport"),
    after_help = "Examples:
  $ jackfield bus --config bus.json
  $ jackfield bus --config bus.json --unix /tmp/bus.sock
  $ jackfield bus --config bus.json --tcp 127.0.0.1:9000 --metrics 127.0.0.1:9100
  $ jackfield bus --config bus.json --tcp 0.0.0.0:9000 --token-file token --tls-cert cert.pem --tls-key key.pem
  $ jackfield bus --config bus.json --tcp 0.0.0.0:9000 --insecure

The configuration:
  {\"pools\": [{\"id\": \"echo\", \"command\": \"python3\", \"args\": [\"-u\", \"echo.py\"], \"instances\": 2}]}"
)]
pub(crate) struct BusCommand {
    /// The configuration of pools and limits, as JSON
    #[arg(long, env = env::CONFIG, hide_env_values = true, value_name = "FILE", group = "source")]
    config: Option<PathBuf>,

    /// Read the configuration from this open file descriptor
    #[arg(
        long,
        env = env::CONFIG_FD,
        hide_env_values = true,
        value_name = "N",
        group = "source",
        value_parser = clap::value_parser!(u16).range(0..=1024)
    )]
    config_fd: Option<u16>,

    /// Serve one client on stdin and stdout (the default)
    #[arg(long, env = env::STDIO, hide_env_values = true, group = "transport", value_parser = env::flag_parser())]
    stdio: bool,

    /// Serve clients on this Unix socket
    #[arg(long, env = env::UNIX, hide_env_values = true, value_name = "PATH", group = "transport")]
    unix: Option<PathBuf>,

    /// Serve clients on this TCP address
    #[arg(
        long,
        env = env::TCP,
        hide_env_values = true,
        value_name = "HOST:PORT",
        group = "transport",
        value_parser = parse_tcp_address
    )]
    tcp: Option<SocketAddr>,

    /// Require TCP clients to send the token in this file first; created if it does not exist
    #[arg(long, env = env::TOKEN_FILE, hide_env_values = true, value_name = "FILE", requires = "tcp")]
    token_file: Option<PathBuf>,

    /// The certificate chain for TLS, as PEM
    #[arg(
        long,
        env = env::TLS_CERT,
        hide_env_values = true,
        value_name = "FILE",
        requires_all = ["tcp", "tls_key"]
    )]
    tls_cert: Option<PathBuf>,

    /// The private key for TLS, as PEM
    #[arg(
        long,
        env = env::TLS_KEY,
        hide_env_values = true,
        value_name = "FILE",
        requires_all = ["tcp", "tls_cert"]
    )]
    tls_key: Option<PathBuf>,

    /// Permit unencrypted addresses that other machines can reach, without a token unless one is set
    #[arg(long, env = env::INSECURE, hide_env_values = true, value_parser = env::flag_parser())]
    insecure: bool,

    /// Serve Prometheus metrics on this address, at `/metrics`
    #[arg(long, env = env::METRICS, hide_env_values = true, value_name = "HOST:PORT", value_parser = parse_tcp_address)]
    metrics: Option<SocketAddr>,
}

/// Parses an IP address or a host name, and a port.
fn parse_tcp_address(text: &str) -> Result<SocketAddr, String> {
    match EndpointAddress::resolve(&format!("tcp://{text}")) {
        Ok(EndpointAddress::Tcp(at)) => Ok(at),
        Err(error @ AddressError::UnknownHost { .. }) => Err(error.to_string()),
        _ => Err("write an address or a host name and a port, as in `127.0.0.1:9000`".to_owned()),
    }
}

impl BusCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let log_level = match context.output.verbosity() {
            VerbosityLevel::Quiet => "warn",
            VerbosityLevel::Normal => "info",
            VerbosityLevel::Verbose => "debug",
            VerbosityLevel::Debug => "trace",
        };
        start_log(&LogTarget::Stderr, log_level)
            .map_err(|source| CommandError::local("cannot write the log", source))?;
        let options = self.build_options(context)?;
        let served = jackfield_bus::serve(options, |ready| {
            let (pools, workers) = (ready.pools, ready.workers);
            context.output.print_note(&format!("pools: {pools}, workers: {workers}"));
            if let Some(at) = ready.metrics {
                context.output.print_note(&format!("metrics on http://{at}/metrics"));
            }
            // Printed last: a program that waits for this line can use all addresses.
            context.output.print_note(&format!("listening on {}", ready.address));
        });
        served.map_err(serve_failure)
    }

    fn build_options(self, context: &CommandContext) -> Result<BusOptions, CommandError> {
        let config = match (self.config, self.config_fd) {
            (Some(path), _) => ConfigSource::File(path),
            (None, Some(descriptor)) => ConfigSource::Descriptor(descriptor),
            (None, None) => unreachable!("clap requires one of them"),
        };
        let transport = match (self.unix, self.tcp) {
            (Some(path), _) => BusTransport::Unix(path),
            (None, Some(at)) => BusTransport::Tcp(at),
            (None, None) => BusTransport::Stdio,
        };
        if matches!((&config, &transport), (ConfigSource::Descriptor(0..=2), BusTransport::Stdio)) {
            let message = "stdin and stdout are used by the client, so the configuration cannot be read from them";
            return Err(CommandError::usage(message, "use `--unix` or `--tcp`, or `--config`"));
        }
        let certificate = self.tls_cert.zip(self.tls_key);
        let certificate = certificate.map(|(chain, key)| TlsCertificate { chain, key });
        Ok(BusOptions {
            config,
            transport,
            token: self.token_file,
            certificate,
            insecure: self.insecure,
            metrics: self.metrics,
            catalog: jackfield_daemon::load_catalog(context.daemon.paths()),
            guard: guard_command()?,
            ledger: context.daemon.paths().ledger(),
        })
    }
}

/// A bus that did not start, with a hint.
fn serve_failure(error: ServeError) -> CommandError {
    let (exit, hint) = match &error {
        ServeError::Config(_) => (CliExitCode::Usage, "`jackfield bus --help` shows an example"),
        ServeError::NeedsToken { .. } => (CliExitCode::Usage, ""),
        ServeError::Listen { source: BindError::Address(_), .. } => (
            CliExitCode::Usage,
            "pass --tls-cert, --tls-key and --token-file, or listen on 127.0.0.1; `--insecure` permits \
             unencrypted connections",
        ),
        ServeError::Metrics { source: BindError::Address(_), .. } => (
            CliExitCode::Usage,
            "serve metrics on 127.0.0.1, behind a proxy if necessary; `--insecure` permits other \
             addresses",
        ),
        ServeError::Listen { .. } => (CliExitCode::Failed, "choose another address"),
        _ => (CliExitCode::Failed, ""),
    };
    let what = "the bus could not start".to_owned();
    CommandError::Local { what, source: Box::new(error), exit, hint: hint.to_owned() }
}
