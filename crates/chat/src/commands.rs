//! Commands that a user types instead of a prompt.

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, SessionUpdate,
    UnstructuredCommandInput,
};

/// What a user can type, besides prompts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Help,
    Compact,
    /// Shows the model, or chooses one.
    Model(Option<&'a str>),
}

impl Command<'_> {
    /// A prompt that is a command. Anything else with a slash is a prompt like any other: paths have
    /// slashes too.
    pub(crate) fn read(content: &[ContentBlock]) -> Option<Command<'_>> {
        let [ContentBlock::Text(text)] = content else { return None };
        let line = text.text.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|it| !it.is_empty());
        match (name, rest) {
            ("/help", None) => Some(Command::Help),
            ("/compact", None) => Some(Command::Compact),
            ("/model", model) if !model.is_some_and(|it| it.contains(char::is_whitespace)) => {
                Some(Command::Model(model))
            }
            _ => None,
        }
    }
}

const COMMANDS: [(&str, &str, Option<&str>); 3] = [
    ("help", "Say what can be typed here", None),
    ("compact", "Sum up the conversation, so that more of it fits", None),
    ("model", "Show the model, or choose another", Some("the name of a model")),
];

/// The commands, for a client that completes them.
pub(crate) fn available() -> SessionUpdate {
    let commands = COMMANDS.map(|(name, about, hint)| {
        let input = hint.map(|it| {
            AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(it.to_owned()))
        });
        AvailableCommand::new(name, about).input(input)
    });
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands.to_vec()))
}

/// The answer to `/help`.
pub(crate) fn help() -> String {
    let line = |(name, about, hint): &(&str, &str, Option<&str>)| match hint {
        Some(hint) => format!("- `/{name} [{hint}]`: {about}\n"),
        None => format!("- `/{name}`: {about}\n"),
    };
    COMMANDS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_command_is_one() {
        let read = |text: &str| {
            let content = [ContentBlock::from(text)];
            format!("{:?}", Command::read(&content))
        };
        assert_eq!(read(" /help "), "Some(Help)");
        assert_eq!(read("/model gpt-4o"), r#"Some(Model(Some("gpt-4o")))"#);
        assert_eq!(read("/model"), "Some(Model(None))");
        for prompt in ["/etc/hosts is wrong", "help", "/help me with this", "/model is what?"] {
            assert_eq!(read(prompt), "None", "{prompt}");
        }
    }

    #[test]
    fn help_names_what_clients_are_offered() {
        let offered = serde_json::to_value(available()).unwrap();
        for command in offered["availableCommands"].as_array().unwrap() {
            let name = command["name"].as_str().unwrap();
            assert!(help().contains(&format!("`/{name}")), "{name}");
        }
    }
}
