//! Slash commands that a user types instead of a prompt.

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, SessionUpdate,
    UnstructuredCommandInput,
};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SlashCommand<'a> {
    Help,
    Compact,
    /// Shows the model, or sets it.
    Model(Option<&'a str>),
}

impl SlashCommand<'_> {
    /// Parses a prompt. Returns `None` for any other text that starts with a slash, because a
    /// prompt may start with a path.
    pub(crate) fn parse(content: &[ContentBlock]) -> Option<SlashCommand<'_>> {
        let [ContentBlock::Text(text)] = content else { return None };
        let line = text.text.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|it| !it.is_empty());
        match (name, rest) {
            ("/help", None) => Some(SlashCommand::Help),
            ("/compact", None) => Some(SlashCommand::Compact),
            ("/model", model) if !model.is_some_and(|it| it.contains(char::is_whitespace)) => {
                Some(SlashCommand::Model(model))
            }
            _ => None,
        }
    }
}

/// The name, the description and the hint for the argument of each command.
const COMMANDS: [(&str, &str, Option<&str>); 3] = [
    ("help", "List the commands", None),
    ("compact", "Summarize the conversation to free space in the context window", None),
    ("model", "Show the model, or choose another", Some("the name of a model")),
];

/// Returns the update that lists the commands, for clients that complete them.
pub(crate) fn available_commands_update() -> SessionUpdate {
    let commands = COMMANDS.map(|(name, description, hint)| {
        let input = hint.map(|it| {
            AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(it.to_owned()))
        });
        AvailableCommand::new(name, description).input(input)
    });
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands.to_vec()))
}

/// Returns the reply to `/help`.
pub(crate) fn help_text() -> String {
    let to_line = |(name, description, hint): &(&str, &str, Option<&str>)| match hint {
        Some(hint) => format!("- `/{name} [{hint}]`: {description}\n"),
        None => format!("- `/{name}`: {description}\n"),
    };
    COMMANDS.iter().map(to_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_commands_are_parsed() {
        let parse = |text: &str| {
            let content = [ContentBlock::from(text)];
            format!("{:?}", SlashCommand::parse(&content))
        };
        assert_eq!(parse(" /help "), "Some(Help)");
        assert_eq!(parse("/model gpt-4o"), r#"Some(Model(Some("gpt-4o")))"#);
        assert_eq!(parse("/model"), "Some(Model(None))");
        for prompt in ["/etc/hosts is wrong", "help", "/help me with this", "/model is what?"] {
            assert_eq!(parse(prompt), "None", "{prompt}");
        }
    }

    #[test]
    fn help_lists_every_available_command() {
        let offered = serde_json::to_value(available_commands_update()).unwrap();
        for command in offered["availableCommands"].as_array().unwrap() {
            let name = command["name"].as_str().unwrap();
            assert!(help_text().contains(&format!("`/{name}")), "{name}");
        }
    }
}
