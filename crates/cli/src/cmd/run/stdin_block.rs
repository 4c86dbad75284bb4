//! Input that is piped or redirected to `run` beside a prompt argument, as a content block.

use super::input::text_block;
use crate::{out::CommandOutput, report::CommandError};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
};
use serde_json::Value;
use std::io::{self, Read as _};

/// A longer input does not fit into a message.
const INPUT_BYTES_MAX: u64 = 16 << 20;
/// How long to wait for the first input. A program that starts the command may keep a pipe open and never write to it.
const FIRST_INPUT_MAX: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// The content of stdin if it is a pipe or a file and not empty. A terminal, a device and a socket are not read.
pub(super) fn read_stdin_block(output: &CommandOutput) -> Result<Option<Value>, CommandError> {
    let stdin = io::stdin();
    let kind = fstat(&stdin).map(|it| FileType::from_raw_mode(it.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::RegularFile)) {
        return Ok(None);
    }
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut polled, Some(&FIRST_INPUT_MAX)) == Ok(0) {
        let seconds = FIRST_INPUT_MAX.tv_sec;
        output.print_note(&format!(
            "no input on stdin within {seconds} s; the prompt is sent without it"
        ));
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| CommandError::local("cannot read stdin", source))?;
    if INPUT_BYTES_MAX < bytes.len() as u64 {
        return Err(CommandError::MessageTooLong);
    }
    Ok(format_block(&String::from_utf8_lossy(&bytes)))
}

/// The tags separate the input from the prompt for agents that join all blocks.
fn format_block(text: &str) -> Option<Value> {
    let text = text.trim_end_matches('\n');
    (!text.trim().is_empty()).then(|| text_block(&format!("<stdin>\n{text}\n</stdin>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_one_tagged_block_and_empty_input_is_none() {
        assert_eq!(format_block("a\nb\n\n"), Some(text_block("<stdin>\na\nb\n</stdin>")));
        assert_eq!(format_block(" \n"), None);
    }
}
