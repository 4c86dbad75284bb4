//! `jackfield daemon`: controls the daemon in the background.

mod stop;

use crate::{
    context::CommandContext,
    env,
    hub::{CommandConnection, storage_warning},
    out::{DIM, OutputFormat, WARNING, paint, print_json_document},
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};

/// Start, stop and inspect the daemon in the background
///
/// Commands that need the daemon start it. It exits when it has been idle for ten minutes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon start
  $ jackfield daemon status
  $ jackfield daemon restart
  $ jackfield daemon stop")]
pub(crate) struct DaemonCommand {
    #[command(subcommand)]
    command: DaemonSubcommand,
}

#[derive(Debug, Subcommand)]
enum DaemonSubcommand {
    Start(StartDaemonCommand),
    Stop(StopDaemonCommand),
    Restart(RestartDaemonCommand),
    Status(DaemonStatusCommand),
}

/// Start the daemon if it is not running
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon start")]
struct StartDaemonCommand {}

/// Stop the daemon and every agent; sessions stay in the journal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon stop
  $ jackfield daemon stop --force")]
struct StopDaemonCommand {
    #[command(flatten)]
    args: StopArgs,
}

/// Stop the daemon if it is running, and start it again
///
/// Sessions stay in the journal; running turns are interrupted. The new daemon is started like with
/// `daemon start`: it uses config.toml and the environment, not the flags of an earlier `jackfield
/// serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon restart
  $ jackfield daemon restart --force")]
struct RestartDaemonCommand {
    #[command(flatten)]
    args: StopArgs,
}

#[derive(Debug, Clone, Copy, Args)]
struct StopArgs {
    /// Kill the daemon if it does not answer: SIGTERM, then SIGKILL
    ///
    /// Running turns are interrupted, and the guards kill their agents. Acknowledged events are in the
    /// journal.
    #[arg(long, env = env::FORCE, hide_env_values = true, value_parser = env::flag_parser())]
    force: bool,
}

/// Show whether the daemon is running, and its load
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield daemon status
  $ jackfield daemon status --format json | jq .pid")]
struct DaemonStatusCommand {
    /// How to print it
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl DaemonCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            DaemonSubcommand::Start(_) => start_daemon(context),
            DaemonSubcommand::Stop(it) => stop::stop_daemon(context, it.args.force),
            DaemonSubcommand::Restart(it) => it.run(context),
            DaemonSubcommand::Status(it) => it.run(context),
        }
    }
}

impl RestartDaemonCommand {
    fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        if context.daemon.has_explicit_address() {
            return Err(CommandError::usage(
                "`daemon restart` cannot be combined with `--socket`: it restarts the daemon of this user",
                "leave out `--socket`",
            ));
        }
        stop::stop_daemon(context, self.args.force)?;
        start_daemon(context)
    }
}

fn start_daemon(context: &CommandContext) -> Result<(), CommandError> {
    let was_running = context.daemon.dial_if_running()?.is_some();
    let conn = context.daemon.connect("daemon")?;
    let pid = context.daemon.daemon_pid(&conn).map(|it| format!(", pid {it}")).unwrap_or_default();
    let state = if was_running { "is already running" } else { "started" };
    context.output.print_note(&format!("the daemon {state}{pid}"));
    Ok(())
}

/// Requests the status of the daemon.
pub(super) fn request_status(conn: &mut CommandConnection) -> Result<Value, CommandError> {
    conn.call_hub(Method::ControlStatus, &json!({}), "the daemon's status")
}

impl DaemonStatusCommand {
    fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let Some(mut conn) = context.daemon.connect_if_running("daemon")? else {
            if self.format == OutputFormat::Json {
                print_json_document(&context.output, &json!({ "running": false }))?;
            }
            let hint = "`jackfield daemon start` starts it; commands that need it do so, too";
            return Err(CommandError::NoDaemon { hint });
        };
        let mut status = request_status(&mut conn)?;
        let address = conn.peer_address().unwrap_or_else(|| context.daemon.address());
        status["address"] = json!(address.to_string());
        status["running"] = json!(true);
        status["pid"] = json!(context.daemon.daemon_pid(&conn));
        match self.format {
            OutputFormat::Json => return print_json_document(&context.output, &status),
            OutputFormat::Quiet => return Ok(()),
            OutputFormat::Text => {}
        }
        for name in ["version", "pid", "address", "sessions", "agents", "clients"] {
            let value = match &status[name] {
                Value::String(text) => text.clone(),
                Value::Null => continue,
                other => other.to_string(),
            };
            context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<9}"))))?;
        }
        if status["stopping"] == true {
            context.output.print_line(&paint(WARNING, "the daemon is stopping"))?;
        }
        if let Some(warning) = storage_warning(&status["storage"]) {
            context.output.print_line(&paint(WARNING, warning))?;
        }
        Ok(())
    }
}
