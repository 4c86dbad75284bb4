//! Builds the system prompt.

use crate::{options::AgentMode, settings::ChatSettings};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Puts the user's own system prompt first. `mode` is `None` for a model without tools, which gets
/// nothing else.
pub(crate) fn build_system_prompt(
    settings: &ChatSettings,
    dirs: &[PathBuf],
    mode: Option<AgentMode>,
) -> String {
    let mut text = settings.system_prompt.clone().unwrap_or_default();
    let Some(mode) = mode else { return text };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(
        "You are a coding agent. You work on the files of a project with the tools you are given.\n\
         - Look before you act: read and search instead of guessing.\n\
         - Do what was asked and nothing more. Keep changes small and in the style of what is there.\n\
         - Call tools through the interface for calls, never as text in an answer.\n\
         - For work of several steps keep a list with `todo`, and keep it up to date.\n\
         - When a tool fails, read why, and try something else rather than the same again.\n\
         - When you are done, say in a few sentences what you did and what you checked.\n",
    );
    text.push_str(match mode {
        AgentMode::Ask => "The user is asked before you change a file or run a command.\n",
        AgentMode::Edit => "You may change files; the user is asked about commands.\n",
        AgentMode::ReadOnly => "You may look and not change anything.\n",
    });
    if let Some((cwd, additional)) = dirs.split_first() {
        let _ = writeln!(text, "The working directory is {}.", cwd.display());
        for dir in additional {
            let _ = writeln!(text, "You may also use {}.", dir.display());
        }
    }
    text
}
