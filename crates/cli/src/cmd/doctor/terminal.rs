//! Checks the locale and the terminal.

use super::{check_context::CheckContext, finding::DoctorFinding};
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal as _, stdout};

/// The smallest size that the terminal interface is made for.
const SIZE_MIN: (u16, u16) = (40, 12);

pub(super) fn check_locale(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    vec![judge_locale(&read_variable)]
}

pub(super) fn check_terminal(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let size = tcgetwinsize(stdout()).ok().map(|it| (it.ws_col, it.ws_row));
    let size = size.filter(|_| stdout().is_terminal());
    vec![judge_terminal(&read_variable, size)]
}

/// The value of a variable, if it is set and not empty.
fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|it| !it.is_empty())
}

/// The locale must use UTF-8, because agents print it.
fn judge_locale(variable: &dyn Fn(&str) -> Option<String>) -> DoctorFinding {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names.into_iter().find_map(|it| Some((it, variable(it)?)));
    let fix = "export LANG=C.UTF-8, or the UTF-8 locale of your language";
    match set {
        None => DoctorFinding::warning("LANG is not set: programs may print `?` for letters", fix),
        Some((name, value)) => {
            let lower = value.to_lowercase();
            if lower.contains("utf-8") || lower.contains("utf8") {
                return DoctorFinding::ok(value);
            }
            let fix = if name == "LANG" { fix.to_owned() } else { format!("unset {name}; {fix}") };
            let found = format!("{name} is `{value}`, which is not UTF-8");
            DoctorFinding::warning(found, fix)
        }
    }
}

/// `size` is present if stdout is a terminal.
fn judge_terminal(
    variable: &dyn Fn(&str) -> Option<String>,
    size: Option<(u16, u16)>,
) -> DoctorFinding {
    let Some((columns, rows)) = size else {
        return DoctorFinding::ok("stdout is not a terminal");
    };
    let term = variable("TERM").unwrap_or_default();
    let is_multiplexed = variable("TMUX").is_some();
    if matches!(term.as_str(), "" | "dumb") {
        let found = "TERM is not set: `jackfield` prints a list instead of its interface";
        return DoctorFinding::warning(found, "export TERM=xterm-256color");
    }
    if is_multiplexed && !term.starts_with("tmux") && !term.starts_with("screen") {
        let found = format!("TERM is `{term}` inside tmux: keys and colors may be wrong");
        let fix = "add `set -g default-terminal tmux-256color` to ~/.tmux.conf, and unset TERM in your shell";
        return DoctorFinding::warning(found, fix);
    }
    // Some terminals report no size.
    if 0 < columns && (columns < SIZE_MIN.0 || rows < SIZE_MIN.1) {
        let found = format!("{columns}x{rows} is small: the interface needs 40x12");
        return DoctorFinding::warning(found, "enlarge the terminal, or use `jackfield attach`");
    }
    DoctorFinding::ok(format!("{term}, {columns}x{rows}, {}", describe_colors(variable, &term)))
}

fn describe_colors(variable: &dyn Fn(&str) -> Option<String>, term: &str) -> &'static str {
    let depth = variable("COLORTERM").unwrap_or_default();
    if variable("NO_COLOR").is_some() {
        "no colors (NO_COLOR)"
    } else if matches!(depth.as_str(), "truecolor" | "24bit") {
        "24-bit colors"
    } else if term.contains("256color") {
        "256 colors"
    } else {
        "16 colors"
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::CheckVerdict, *};

    type Variables = &'static [(&'static str, &'static str)];

    fn lookup(variables: Variables) -> impl Fn(&str) -> Option<String> {
        move |name| variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned())
    }

    #[test]
    fn locale_without_utf_8_is_a_warning_with_the_variable_to_change() {
        let judge = |variables: Variables| judge_locale(&lookup(variables));
        assert_eq!(judge(&[("LANG", "de_DE.UTF-8")]).verdict, CheckVerdict::Ok);
        assert_eq!(judge(&[("LANG", "C"), ("LC_ALL", "C.utf8")]).verdict, CheckVerdict::Ok);
        assert!(judge(&[]).fix.unwrap().starts_with("export LANG=C.UTF-8"));
        let finding = judge(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]);
        assert_eq!(finding.found, "LC_ALL is `C`, which is not UTF-8");
        assert!(finding.fix.unwrap().starts_with("unset LC_ALL; "));
    }

    #[test]
    fn terminal_that_cannot_show_the_interface_is_a_warning() {
        let judge = |variables: Variables, size| judge_terminal(&lookup(variables), Some(size));
        let good = judge(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], (80, 24));
        assert_eq!(good.found, "xterm-256color, 80x24, 24-bit colors");
        assert_eq!(judge(&[("TERM", "xterm-256color")], (0, 0)).verdict, CheckVerdict::Ok);
        for (variables, size, fix) in [
            (&[("TERM", "dumb")][..], (80, 24), "export TERM="),
            (&[("TERM", "xterm"), ("TMUX", "/t,1,0")][..], (80, 24), "add `set -g default-t"),
            (&[("TERM", "xterm")][..], (30, 24), "enlarge"),
        ] {
            let finding = judge(variables, size);
            assert_eq!(finding.verdict, CheckVerdict::Warning, "{variables:?}");
            assert!(finding.fix.unwrap().starts_with(fix), "{variables:?}");
        }
        assert_eq!(judge_terminal(&lookup(&[]), None).verdict, CheckVerdict::Ok);
    }
}
