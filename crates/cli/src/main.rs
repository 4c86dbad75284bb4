//! The `jackfield` command. Flags, words, colors, tables and exit codes live in this crate; what a
//! session is and does is the hub's business, and the command is one more client of it.
//!
//! Read in this order: `app` (the commands), `cmd` (one file per verb), `hub` (reaching a daemon and
//! talking to it), `ask` (what agents ask of us), `out` (the only place that prints), `report` (what
//! can go wrong) and `exit`.
//!
//! - **Invariant:** data goes to stdout, everything else to stderr.
//! - **Invariant:** every way to fail has a message, a way out and an exit code that is documented.
//! - **Invariant:** nothing is waited for without a bound or a word about what it is.

mod amount;
mod app;
mod ask;
mod cmd;
mod env;
mod exit;
mod fleet;
mod hub;
mod out;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before anything else: there are as many guards as agents, and they must start fast.
    if args.next().is_some_and(|it| it == cmd::guard::NAME) {
        return cmd::guard::run(args);
    }
    app::run().into()
}
