//! The `jackfield` command: flags, help, colors, tables and exit codes. Sessions are implemented by the hub; the command
//! is one of its clients.
//!
//! Reading order: `app` (the commands), `cmd` (one file per command), `context` (what each one gets), `hub` (the
//! connection to the daemon), `requests` (permission requests of agents), `out` (all printing), `report` (errors),
//! `plain_text` and `exit`.
//!
//! - **Invariant:** data goes to stdout, everything else to stderr.
//! - **Invariant:** every error has a message, a hint and a documented exit code.
//! - **Invariant:** every wait has a limit, or the user is told what the command waits for.

mod amount;
mod app;
mod cmd;
mod complete;
mod context;
mod env;
mod exit;
mod flag_variables;
mod fleet;
mod fleet_control;
mod hub;
mod out;
mod plain_text;
mod report;
mod requests;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before anything else: every agent has a guard and a sandbox, which must start fast.
    let first = args.next().unwrap_or_default();
    if first == hub::GUARD_SUBCOMMAND {
        return cmd::guard::run(args);
    }
    if let Some(code) = cmd::sandboxed::run(&first, args) {
        return code;
    }
    app::run().into()
}
