//! A scriptable ACP agent on stdio, for tests and benchmarks: flags say what the process does,
//! words in a prompt say what a turn does. `fake-agent --help` prints what follows.
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

use agent::Agent;
use flags::{Flags, Switch};

const MANUAL: &str = include_str!("manual.md");

/// The whole program, given its arguments without its own name.
pub fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let flags = match Flags::parse(args) {
        Ok(flags) => flags,
        Err(why) => {
            process::note(&format!("fake-agent: {why}; --help has the manual"));
            return ExitCode::from(2);
        }
    };
    if flags.on(Switch::Help) {
        let written = io::stdout().write_all(MANUAL.as_bytes());
        return ExitCode::from(u8::from(written.is_err()));
    }
    if let Some(life) = flags.stray {
        return process::be_orphan(life);
    }
    if let Some(code) = process::become_agent(&flags) {
        return code;
    }
    process::die(Agent::new(flags).run())
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
    fn the_manual_lists_exactly_the_flags_there_are() {
        let flags: Vec<_> = FLAGS.iter().map(|it| format!("{} {}", it.name, it.value)).collect();
        let flags: Vec<_> = flags.iter().map(|it| it.trim_end()).collect();
        assert_eq!(rows("## Flags"), flags);
    }

    #[test]
    fn the_manual_lists_exactly_the_words_there_are() {
        let rows = rows("## Prompt words").into_iter();
        let listed: Vec<_> = rows.map(|it| it.split(' ').next().unwrap_or(it)).collect();
        let words: Vec<_> = WORDS.iter().map(|it| it.name).collect();
        assert_eq!(listed, words);
    }
}
