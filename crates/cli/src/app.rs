//! The commands and the flags that all of them share.

use crate::{
    cmd, env, exit,
    hub::{Dial, EndpointAddress},
    out::{Color, Out},
    report::Failure,
};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};

/// Runs any coding agent as a durable session that any client can attach to
///
/// Without a command: what is running, and the next useful command.
#[derive(Debug, Parser)]
#[command(name = "jackfield", version, max_term_width = 100, after_help = after_help())]
pub(crate) struct App {
    #[command(flatten)]
    globals: Globals,

    #[command(subcommand)]
    command: Option<Verb>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// The daemon to talk to: a path, `unix:///path` or `tcp://127.0.0.1:PORT`
    #[arg(long, global = true, env = env::SOCKET, hide_env_values = true, value_name = "ADDRESS")]
    socket: Option<EndpointAddress>,

    /// When to use color; `NO_COLOR` counts too
    #[arg(long, global = true, env = env::COLOR, hide_env_values = true, value_enum, default_value_t)]
    color: Color,

    /// Only data and errors
    #[arg(short, long, global = true, env = env::QUIET, hide_env_values = true, action = ArgAction::Count)]
    quiet: u8,

    /// More about what happens; twice for everything
    #[arg(short, long, global = true, env = env::VERBOSE, hide_env_values = true, action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(cmd::run::Run),
    Acp(cmd::acp::Acp),
    Attach(cmd::attach::Attach),
    Ps(cmd::ps::Ps),
    Sessions(cmd::sessions::Sessions),
    Log(cmd::log::Log),
    Asks(cmd::asks::Asks),
    Answer(cmd::answer::Answer),
    Cancel(cmd::cancel::Cancel),
    Queue(cmd::queue::Queue),
    Serve(cmd::serve::Serve),
    Daemon(cmd::daemon::Daemon),
    Fleet(cmd::fleet::Fleet),
    Host(cmd::host::Host),
    Token(cmd::token::Token),
    Tenants(cmd::tenants::Tenants),
    Agents(cmd::agents::Agents),
    Agent(cmd::agent::Agent),
    Adapt(cmd::adapt::Adapt),
    Bus(cmd::bus::Bus),
    Models(cmd::models::Models),
    Policy(cmd::policy::Policy),
    Trust(cmd::trust::Trust),
    Doctor(cmd::doctor::Doctor),
    Bugreport(cmd::bugreport::Bugreport),
    Completions(cmd::completions::Completions),
    Man(cmd::man::Man),
}

/// What every command needs: the way to the daemon, and the way to the screen.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) dial: Dial,
    pub(crate) out: Out,
}

/// Reads the command line, runs the command, reports how it went.
pub(crate) fn run() -> exit::Exit {
    let app = match App::try_parse() {
        Ok(app) => app,
        Err(error) => return Out::usage(&error),
    };
    let Globals { socket, color, quiet, verbose } = app.globals;
    let out = Out::new(color, 0 < quiet, verbose);
    let desk = Desk { dial: Dial::new(socket, &out), out };
    match dispatch(app.command, &desk) {
        Ok(()) => exit::Exit::Ok,
        Err(failure) => failure.report(&desk.out),
    }
}

fn dispatch(verb: Option<Verb>, desk: &Desk) -> Result<(), Failure> {
    match verb {
        None => cmd::status::run(desk),
        Some(Verb::Run(it)) => it.run(desk),
        Some(Verb::Acp(it)) => it.run(desk),
        Some(Verb::Attach(it)) => it.run(desk),
        Some(Verb::Ps(it)) => it.run(desk),
        Some(Verb::Sessions(it)) => it.run(desk),
        Some(Verb::Log(it)) => it.run(desk),
        Some(Verb::Asks(it)) => it.run(desk),
        Some(Verb::Answer(it)) => it.run(desk),
        Some(Verb::Cancel(it)) => it.run(desk),
        Some(Verb::Queue(it)) => it.run(desk),
        Some(Verb::Serve(it)) => it.run(desk),
        Some(Verb::Daemon(it)) => it.run(desk),
        Some(Verb::Fleet(it)) => it.run(desk),
        Some(Verb::Host(it)) => it.run(desk),
        Some(Verb::Token(it)) => it.run(desk),
        Some(Verb::Tenants(it)) => it.run(desk),
        Some(Verb::Agents(it)) => it.run(desk),
        Some(Verb::Agent(_)) => cmd::agent::run(desk),
        Some(Verb::Adapt(it)) => it.run(desk),
        Some(Verb::Bus(it)) => it.run(desk),
        Some(Verb::Models(it)) => it.run(desk),
        Some(Verb::Policy(it)) => it.run(desk),
        Some(Verb::Trust(it)) => it.run(desk),
        Some(Verb::Doctor(it)) => it.run(desk),
        Some(Verb::Bugreport(it)) => it.run(desk),
        Some(Verb::Completions(it)) => it.run(desk),
        Some(Verb::Man(it)) => it.run(desk),
    }
}

/// The whole tree, for completions and the manual.
pub(crate) fn tree() -> clap::Command {
    App::command()
}

const DIRECTORIES: &str = "\
Directories:
  $JACKFIELD_CONFIG_DIR   config.toml, policy.toml, agents/ [default: $XDG_CONFIG_HOME/jackfield]
  $JACKFIELD_STATE_DIR    journal, ledger, log, token [default: $XDG_STATE_HOME/jackfield]
  $JACKFIELD_RUNTIME_DIR  socket [default: $XDG_RUNTIME_DIR/jackfield]";

fn after_help() -> String {
    format!(
        "Examples:\n  \
         $ jackfield run \"What does this project do?\" -- goose acp\n  \
         $ jackfield acp -- goose acp          # what an editor starts\n  \
         $ jackfield attach\n\n{DIRECTORIES}\n\n{}",
        exit::TABLE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_command(command: &clap::Command, check: &mut dyn FnMut(&clap::Command)) {
        check(command);
        command.get_subcommands().for_each(|it| each_command(it, check));
    }

    #[test]
    fn the_tree_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn every_command_has_a_line_of_help_and_examples() {
        each_command(&tree(), &mut |command| {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no line of help");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:\n"), "{name} has no examples");
        });
    }

    #[test]
    fn every_flag_has_a_variable_of_ours() {
        each_command(&tree(), &mut |command| {
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
