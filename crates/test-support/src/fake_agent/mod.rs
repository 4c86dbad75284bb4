//! A scriptable ACP agent on stdio, for tests and benchmarks: flags control the process, words in a prompt control a turn.
//! `fake-agent --help` prints the following.
//!
#![doc = include_str!("manual.md")]

mod agent;
mod asks;
mod flags;
mod input;
pub(crate) mod output;
mod process;
mod report;
mod restore;
mod serve;
mod session;
mod turn;
mod witness;
mod words;

use std::{io, io::Write as _, process::ExitCode};

use agent::FakeAgent;
use flags::{AgentFlags, FlagSwitch};

const MANUAL: &str = include_str!("manual.md");

/// Runs the program with its arguments, without the program name.
pub fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let flags = match AgentFlags::parse(args) {
        Ok(flags) => flags,
        Err(why) => {
            process::write_stderr_line(&format!("fake-agent: {why}; --help has the manual"));
            return ExitCode::from(2);
        }
    };
    if flags.has_switch(FlagSwitch::Help) {
        let written = io::stdout().write_all(MANUAL.as_bytes());
        return ExitCode::from(u8::from(written.is_err()));
    }
    if let Some(life) = flags.stray {
        return process::run_orphan(life);
    }
    if let Some(code) = process::become_agent(&flags) {
        return code;
    }
    process::end_process(FakeAgent::new(flags).run())
}

#[cfg(test)]
mod tests {
    use super::{MANUAL, flags::FLAGS, words::WORDS};

    fn rows(heading: &str) -> Vec<&str> {
        let section = MANUAL.split(heading).nth(1).expect("the manual has this section");
        let section = section.split("\n## ").next().unwrap_or_default();
        section.lines().filter_map(|it| it.strip_prefix("| `")?.split('`').next()).collect()
    }

    #[test]
    fn manual_lists_exactly_the_existing_flags() {
        let flags: Vec<_> = FLAGS.iter().map(|it| format!("{} {}", it.name, it.value)).collect();
        let flags: Vec<_> = flags.iter().map(|it| it.trim_end()).collect();
        assert_eq!(rows("## Flags"), flags);
    }

    #[test]
    fn manual_lists_exactly_the_existing_words() {
        let rows = rows("## Prompt words").into_iter();
        let listed: Vec<_> = rows.map(|it| it.split(' ').next().unwrap_or(it)).collect();
        let words: Vec<_> = WORDS.iter().map(|it| it.name).collect();
        assert_eq!(listed, words);
    }
}
