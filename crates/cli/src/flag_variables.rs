//! What errors about the command line add: the variables of flags that the user did not type, and similar commands.

use jackfield_protocol::find_similar_name;
use std::ffi::OsString;

/// The flags of the command line and the variables of the environment, as this process got them.
pub(crate) struct FlagSources {
    tree: clap::Command,
    args: Vec<OsString>,
    is_set: fn(&str) -> bool,
}

impl FlagSources {
    /// `tree` has all commands.
    pub(crate) fn of_process(tree: clap::Command) -> FlagSources {
        let args = std::env::args_os().skip(1).collect();
        FlagSources { tree, args, is_set: |name| std::env::var_os(name).is_some() }
    }

    /// The command with the most similar name, among those that are valid in place of an unknown one.
    pub(crate) fn suggest_command(&self, unknown: &str) -> Option<&str> {
        let command = *self.command_chain().last()?;
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        find_similar_name(unknown, visible.map(clap::Command::get_name))
    }

    /// The commands that the user typed, from the program to the innermost one.
    fn command_chain(&self) -> Vec<&clap::Command> {
        let mut chain = vec![&self.tree];
        for name in self.args.iter().filter_map(|it| it.to_str()) {
            let inner = chain.last().and_then(|it| it.find_subcommand(name));
            chain.extend(inner);
        }
        chain
    }

    /// One sentence for each flag in the message whose value comes from a variable.
    pub(crate) fn describe_variables(&self, message: &str) -> Vec<String> {
        let flags = self.command_chain().into_iter().flat_map(clap::Command::get_arguments);
        let sentence = |flag: &clap::Arg| {
            let (long, variable) = (flag.get_long()?, flag.get_env()?.to_str()?);
            let is_relevant =
                has_flag(message, long) && !self.is_typed(flag) && (self.is_set)(variable);
            is_relevant
                .then(|| format!("`--{long}` is set by the environment variable `{variable}`"))
        };
        flags.filter_map(sentence).collect()
    }

    fn is_typed(&self, flag: &clap::Arg) -> bool {
        let flags = self.args.iter().take_while(|it| *it != "--").filter_map(|it| it.to_str());
        let long = flag.get_long().map(|it| format!("--{it}")).unwrap_or_default();
        let is_long = |it: &str| {
            it.strip_prefix(&long).is_some_and(|it| it.is_empty() || it.starts_with('='))
        };
        let is_short = |it: &str| {
            it.strip_prefix('-').is_some_and(|it| {
                !it.starts_with('-') && flag.get_short().is_some_and(|short| it.contains(short))
            })
        };
        flags.into_iter().any(|it| is_long(it) || is_short(it))
    }
}

/// Whether a message names the flag, and not one whose name only starts the same way.
fn has_flag(message: &str, long: &str) -> bool {
    let flag = format!("--{long}");
    message.match_indices(&flag).any(|(at, _)| {
        let next = message[at + flag.len()..].chars().next();
        next.is_none_or(|it| !it.is_ascii_alphanumeric() && it != '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn sources(args: &[&str]) -> FlagSources {
        let count = Arg::new("keep_count").long("keep").short('k').env("X_KEEP_COUNT");
        let other = Arg::new("keep_all").long("keep-all").env("X_KEEP_ALL");
        let tree = Command::new("x").subcommand(Command::new("prune").arg(count).arg(other));
        FlagSources {
            tree,
            args: args.iter().map(Into::into).collect(),
            is_set: |name| name == "X_KEEP_COUNT" || name == "X_KEEP_ALL",
        }
    }

    #[test]
    fn similar_command_is_found_among_the_valid_ones() {
        assert_eq!(sources(&["prnue"]).suggest_command("prnue"), Some("prune"));
        assert_eq!(sources(&["prune", "prnue"]).suggest_command("prnue"), None);
        assert_eq!(sources(&["other"]).suggest_command("other"), None);
    }

    #[test]
    fn variable_is_named_for_a_flag_that_was_not_typed() {
        let message = "invalid value 'x' for '--keep <COUNT>'";
        let named = ["`--keep` is set by the environment variable `X_KEEP_COUNT`"];
        assert_eq!(sources(&["prune"]).describe_variables(message), named);
        assert_eq!(sources(&["prune", "--", "--keep"]).describe_variables(message), named);
        for args in [&["prune", "--keep", "x"][..], &["prune", "--keep=x"], &["prune", "-kx"], &[]]
        {
            assert!(sources(args).describe_variables(message).is_empty(), "{args:?}");
        }
    }
}
