//! The tree of commands and the global options.

use crate::{
    cmd,
    context::CommandContext,
    env, exit,
    hub::{DaemonConnector, EndpointAddress},
    out::{ColorMode, CommandOutput},
    report::CommandError,
};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};

/// Runs any coding agent as a durable session that any client can attach to
///
/// Without a command, it shows what is running and the next useful command.
#[derive(Debug, Parser)]
#[command(name = "jackfield", version, max_term_width = 100, after_help = help_footer())]
pub(crate) struct CommandLine {
    #[command(flatten)]
    globals: GlobalOptions,

    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalOptions {
    /// The daemon to connect to: a path, `unix:///path` or `tcp://127.0.0.1:PORT`
    #[arg(long, global = true, env = env::SOCKET, hide_env_values = true, value_name = "ADDRESS")]
    socket: Option<EndpointAddress>,

    /// When to use color; `NO_COLOR` is respected
    #[arg(long, global = true, env = env::COLOR, hide_env_values = true, value_enum, default_value_t)]
    color: ColorMode,

    /// Print only data and errors
    #[arg(short, long, global = true, env = env::QUIET, hide_env_values = true, action = ArgAction::Count)]
    quiet: u8,

    /// Print more detail; `-vv` for everything
    #[arg(short, long, global = true, env = env::VERBOSE, hide_env_values = true, action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Run(cmd::run::RunCommand),
    Acp(cmd::acp::AcpCommand),
    Attach(cmd::attach::AttachCommand),
    Ps(cmd::ps::PsCommand),
    Sessions(cmd::sessions::SessionsCommand),
    Log(cmd::log::LogCommand),
    Asks(cmd::asks::AsksCommand),
    Answer(cmd::answer::AnswerCommand),
    Cancel(cmd::cancel::CancelCommand),
    Queue(cmd::queue::QueueCommand),
    Serve(cmd::serve::ServeCommand),
    Listen(cmd::listen::ListenCommand),
    Daemon(cmd::daemon::DaemonCommand),
    Fleet(cmd::fleet::FleetCommand),
    Host(cmd::host::HostCommand),
    Token(cmd::token::TokenCommand),
    Tenants(cmd::tenants::TenantsCommand),
    Agents(cmd::agents::AgentsCommand),
    Agent(cmd::agent::AgentCommand),
    Adapt(cmd::adapt::AdaptCommand),
    Bus(cmd::bus::BusCommand),
    Models(cmd::models::ModelsCommand),
    Policy(cmd::policy::PolicyCommand),
    Trust(cmd::trust::TrustCommand),
    Doctor(cmd::doctor::DoctorCommand),
    Bugreport(cmd::bugreport::BugreportCommand),
    Completions(cmd::completions::CompletionsCommand),
    Man(cmd::man::ManCommand),
}

/// Parses the command line, runs the command and reports its error.
pub(crate) fn run() -> exit::CliExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => return CommandOutput::print_usage(&error),
    };
    let GlobalOptions { socket, color, quiet, verbose } = command_line.globals;
    let output = CommandOutput::new(color, 0 < quiet, verbose);
    let context = CommandContext { daemon: DaemonConnector::new(socket, &output), output };
    match run_command(command_line.command, &context) {
        Ok(()) => exit::CliExitCode::Ok,
        Err(error) => context.output.print_error(&error),
    }
}

fn run_command(command: Option<CliCommand>, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        None => cmd::status::run(context),
        Some(CliCommand::Run(it)) => it.run(context),
        Some(CliCommand::Acp(it)) => it.run(context),
        Some(CliCommand::Attach(it)) => it.run(context),
        Some(CliCommand::Ps(it)) => it.run(context),
        Some(CliCommand::Sessions(it)) => it.run(context),
        Some(CliCommand::Log(it)) => it.run(context),
        Some(CliCommand::Asks(it)) => it.run(context),
        Some(CliCommand::Answer(it)) => it.run(context),
        Some(CliCommand::Cancel(it)) => it.run(context),
        Some(CliCommand::Queue(it)) => it.run(context),
        Some(CliCommand::Serve(it)) => it.run(context),
        Some(CliCommand::Listen(it)) => it.run(context),
        Some(CliCommand::Daemon(it)) => it.run(context),
        Some(CliCommand::Fleet(it)) => it.run(context),
        Some(CliCommand::Host(it)) => it.run(context),
        Some(CliCommand::Token(it)) => it.run(context),
        Some(CliCommand::Tenants(it)) => it.run(context),
        Some(CliCommand::Agents(it)) => it.run(context),
        Some(CliCommand::Agent(it)) => cmd::agent::run(&it, context),
        Some(CliCommand::Adapt(it)) => it.run(context),
        Some(CliCommand::Bus(it)) => it.run(context),
        Some(CliCommand::Models(it)) => it.run(context),
        Some(CliCommand::Policy(it)) => it.run(context),
        Some(CliCommand::Trust(it)) => it.run(context),
        Some(CliCommand::Doctor(it)) => it.run(context),
        Some(CliCommand::Bugreport(it)) => it.run(context),
        Some(CliCommand::Completions(it)) => it.run(context, command_tree()),
        Some(CliCommand::Man(it)) => it.run(context, command_tree()),
    }
}

/// The whole tree, for completions and manual pages.
fn command_tree() -> clap::Command {
    CommandLine::command()
}

const DIRECTORIES: &str = "\
Directories:
  $JACKFIELD_CONFIG_DIR   config.toml, policy.toml, agents/ [default: $XDG_CONFIG_HOME/jackfield]
  $JACKFIELD_STATE_DIR    journal, ledger, log, token [default: $XDG_STATE_HOME/jackfield]
  $JACKFIELD_RUNTIME_DIR  socket [default: $XDG_RUNTIME_DIR/jackfield]";

fn help_footer() -> String {
    format!(
        "Examples:\n  \
         $ jackfield run \"What does this project do?\" -- goose acp\n  \
         $ jackfield acp -- goose acp          # for an editor\n  \
         $ jackfield attach\n\n{DIRECTORIES}\n\n{}",
        exit::TABLE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit_commands(command: &clap::Command, check: &mut dyn FnMut(&clap::Command)) {
        check(command);
        command.get_subcommands().for_each(|it| visit_commands(it, check));
    }

    #[test]
    fn command_tree_is_valid() {
        command_tree().debug_assert();
    }

    #[test]
    fn every_command_has_a_summary_and_examples() {
        visit_commands(&command_tree(), &mut |command| {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no summary");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:\n"), "{name} has no examples");
        });
    }

    #[test]
    fn every_flag_has_an_environment_variable() {
        visit_commands(&command_tree(), &mut |command| {
            for flag in
                command.get_arguments().filter(|it| !it.is_positional() && !it.is_hide_set())
            {
                let id = flag.get_id().as_str();
                if matches!(id, "help" | "version") {
                    continue;
                }
                let variable = flag.get_env().and_then(|it| it.to_str()).unwrap_or_default();
                let name = id.to_uppercase().replace('-', "_");
                assert_eq!(variable, format!("{}{name}", env::PREFIX), "{}", command.get_name());
            }
        });
    }
}
