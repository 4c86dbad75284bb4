//! Prints the error of a command: the message, its causes and a hint.

use super::{ALERT, CommandOutput, DIM, NAME, paint};
use crate::{exit::CliExitCode, report::CommandError};

impl CommandOutput {
    /// Prints the error to stderr and returns the exit code.
    pub(crate) fn print_error(&self, error: &CommandError) -> CliExitCode {
        if error.needs_report() {
            self.print_alert(&format!("{} {error}", paint(ALERT, "error:")));
            for cause in error.causes() {
                let cause = cause.trim_end().replace('\n', "\n    ");
                self.print_alert(&format!("  {} {cause}", paint(ALERT, "caused by:")));
            }
            for line in error.quoted_lines() {
                self.print_alert(&paint(DIM, format!("  | {line}")));
            }
            let hint = error.hint();
            if !hint.is_empty() {
                self.print_alert(&format!("{} {hint}", paint(NAME, "hint:")));
            }
        }
        error.exit_code()
    }
}
