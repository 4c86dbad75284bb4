//! The tree of commands and the global options.

use crate::{
    cmd, complete,
    context::CommandContext,
    env, exit,
    flag_variables::FlagSources,
    hub::{DaemonConnector, EndpointAddress},
    out::{ColorMode, CommandOutput},
    report::CommandError,
};
use clap::{
    ArgAction, Args, CommandFactory as _, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

/// Runs any coding agent as a durable session that any client can attach to
///
/// Without a command, it opens the full-screen interface on a terminal; elsewhere it prints what is running and the
/// next useful command.
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
    Tui(cmd::tui::TuiCommand),
    Ps(cmd::ps::PsCommand),
    Sessions(cmd::sessions::SessionsCommand),
    Log(cmd::log::LogCommand),
    Usage(cmd::usage::UsageCommand),
    Asks(cmd::asks::AsksCommand),
    Answer(cmd::answer::AnswerCommand),
    Cancel(cmd::cancel::CancelCommand),
    Queue(cmd::queue::QueueCommand),
    Console(cmd::console::ConsoleCommand),
    Devices(cmd::devices::DevicesCommand),
    Serve(cmd::serve::ServeCommand),
    Listen(cmd::listen::ListenCommand),
    Daemon(cmd::daemon::DaemonCommand),
    Fleet(cmd::fleet::FleetCommand),
    Host(cmd::host::HostCommand),
    Token(cmd::token::TokenCommand),
    Tenants(cmd::tenants::TenantsCommand),
    Setup(cmd::setup::SetupCommand),
    Agents(cmd::agents::AgentsCommand),
    Agent(cmd::agent::AgentCommand),
    Adapt(cmd::adapt::AdaptCommand),
    Bus(cmd::bus::BusCommand),
    Models(cmd::models::ModelsCommand),
    Config(cmd::config::ConfigCommand),
    Policy(cmd::policy::PolicyCommand),
    Sandbox(cmd::sandbox::SandboxCommand),
    Trust(cmd::trust::TrustCommand),
    Doctor(cmd::doctor::DoctorCommand),
    Bugreport(cmd::bugreport::BugreportCommand),
    Completions(cmd::completions::CompletionsCommand),
    Man(cmd::man::ManCommand),
}

/// Parses the command line, runs the command and reports its error.
pub(crate) fn run() -> exit::CliExitCode {
    complete::answer_shell(command_tree);
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => return CommandOutput::print_usage(&add_context(error)),
    };
    let GlobalOptions { socket, color, quiet, verbose } = command_line.globals;
    let output = CommandOutput::new(color, 0 < quiet, verbose);
    let context = CommandContext { daemon: DaemonConnector::new(socket, &output), output };
    match run_command(command_line.command, &context) {
        Ok(()) => exit::CliExitCode::Ok,
        Err(mut error) => {
            if let CommandError::Usage { message, hint } = &mut error {
                let variables = FlagSources::of_process(command_tree()).describe_variables(message);
                let hints = [std::mem::take(hint)].into_iter().filter(|it| !it.is_empty());
                *hint = variables.into_iter().chain(hints).collect::<Vec<_>>().join("; ");
            }
            context.output.print_error(&error)
        }
    }
}

/// Adds the environment variables of flags that the user did not type, and a similar command, to an error of clap.
fn add_context(mut error: clap::Error) -> clap::Error {
    if !error.use_stderr() {
        return error;
    }
    let sources = FlagSources::of_process(command_tree());
    let variables = sources.describe_variables(&error.to_string());
    if !variables.is_empty() {
        let tips = variables.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) {
        let unknown = unknown.clone();
        // One measure of similarity for all names; clap has its own.
        error.remove(ContextKind::SuggestedSubcommand);
        if let Some(similar) = sources.suggest_command(&unknown) {
            let similar = ContextValue::Strings(vec![similar.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, similar);
        }
    }
    error
}

fn run_command(command: Option<CliCommand>, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        None if cmd::tui::has_terminal() => cmd::tui::TuiCommand::default().run(context),
        None => cmd::status::run(context),
        Some(CliCommand::Run(it)) => it.run(context),
        Some(CliCommand::Acp(it)) => it.run(context),
        Some(CliCommand::Attach(it)) => it.run(context),
        Some(CliCommand::Tui(it)) => it.run(context),
        Some(CliCommand::Ps(it)) => it.run(context),
        Some(CliCommand::Sessions(it)) => it.run(context),
        Some(CliCommand::Log(it)) => it.run(context),
        Some(CliCommand::Usage(it)) => it.run(context),
        Some(CliCommand::Asks(it)) => it.run(context),
        Some(CliCommand::Answer(it)) => it.run(context),
        Some(CliCommand::Cancel(it)) => it.run(context),
        Some(CliCommand::Queue(it)) => it.run(context),
        Some(CliCommand::Console(it)) => it.run(context),
        Some(CliCommand::Devices(it)) => it.run(context),
        Some(CliCommand::Serve(it)) => it.run(context),
        Some(CliCommand::Listen(it)) => it.run(context),
        Some(CliCommand::Daemon(it)) => it.run(context),
        Some(CliCommand::Fleet(it)) => it.run(context),
        Some(CliCommand::Host(it)) => it.run(context),
        Some(CliCommand::Token(it)) => it.run(context),
        Some(CliCommand::Tenants(it)) => it.run(context),
        Some(CliCommand::Setup(it)) => it.run(context),
        Some(CliCommand::Agents(it)) => it.run(context),
        Some(CliCommand::Agent(it)) => cmd::agent::run(&it, context),
        Some(CliCommand::Adapt(it)) => it.run(context),
        Some(CliCommand::Bus(it)) => it.run(context),
        Some(CliCommand::Models(it)) => it.run(context),
        Some(CliCommand::Config(it)) => it.run(context, &command_tree()),
        Some(CliCommand::Policy(it)) => it.run(context),
        Some(CliCommand::Sandbox(it)) => it.run(context),
        Some(CliCommand::Trust(it)) => it.run(context),
        Some(CliCommand::Doctor(it)) => it.run(context),
        Some(CliCommand::Bugreport(it)) => it.run(context),
        Some(CliCommand::Completions(it)) => it.run(context),
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
    use std::collections::{BTreeMap, BTreeSet};

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

    #[test]
    fn environment_variable_of_several_flags_has_one_meaning() {
        // Flags whose help differs in details only. Any other flag needs an id of its own.
        let shared = [
            env::AFTER,
            env::AGENT,
            env::CELL,
            env::CWD,
            env::DRY_RUN,
            env::FLEET,
            env::FLEET_CERTS,
            env::FOLLOW,
            env::FORMAT,
            env::INSECURE,
            env::MODEL,
            env::NAME,
            env::OUTPUT,
            env::PROBE,
            env::SINCE,
        ];
        let mut help_texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut kinds: BTreeMap<String, BTreeSet<(bool, String)>> = BTreeMap::new();
        visit_commands(&command_tree(), &mut |command| {
            for argument in command.get_arguments() {
                let Some(variable) = argument.get_env().and_then(|it| it.to_str()) else {
                    continue;
                };
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                help_texts.entry(variable.to_owned()).or_default().insert(help);
                let action = format!("{:?}", argument.get_action());
                let kind = (argument.get_action().takes_values(), action);
                kinds.entry(variable.to_owned()).or_default().insert(kind);
            }
        });
        for (variable, texts) in help_texts {
            assert!(texts.len() == 1 || shared.contains(&&*variable), "{variable}: {texts:#?}");
            assert_eq!(kinds[&variable].len(), 1, "{variable}");
        }
    }
}
