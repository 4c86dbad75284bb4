//! The key reference in `docs/config.md`, made from the table of keys.

use super::keys::{
    CONFIG_KEYS, ConfigChangeTime, ConfigDefault, ConfigKey, ConfigValueType, is_placeholder,
};
use std::fmt::Write as _;

/// Keys that cannot be set together with others of the same example.
const ALTERNATIVES: [&str; 3] = ["mcp.NAME.url", "mcp.NAME.headers", "mcp.NAME.type"];

/// The reference as Markdown: for each section a table of its keys and an example.
pub fn format_key_reference() -> String {
    let mut text = String::new();
    for keys in CONFIG_KEYS.chunk_by(|one, other| one.section() == other.section()) {
        let section = keys[0].section();
        let title =
            if section.is_empty() { "Top level".to_owned() } else { format!("`[{section}]`") };
        add_line(&mut text, format_args!("### {title}\n"));
        add_line(&mut text, format_args!("| key | type | default | a change applies | meaning |"));
        add_line(&mut text, format_args!("|---|---|---|---|---|"));
        for key in keys {
            add_row(&mut text, key);
        }
        add_line(&mut text, format_args!("\n```toml"));
        if !section.is_empty() {
            add_line(&mut text, format_args!("[{}]", example_section(section)));
        }
        for key in keys.iter().filter(|it| !ALTERNATIVES.contains(&it.name)) {
            add_line(&mut text, format_args!("{} = {}", key.last_segment(), key.example));
        }
        add_line(&mut text, format_args!("```\n"));
    }
    text
}

fn add_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string accepts all text");
}

fn add_row(text: &mut String, key: &ConfigKey) {
    let default = match key.default {
        ConfigDefault::Value(value) => format!("`{value}`"),
        ConfigDefault::Unset(effect) => format!("not set: {effect}"),
    };
    let applies = match key.applies {
        ConfigChangeTime::Now => "without restart",
        ConfigChangeTime::AfterRestart => "after a restart",
    };
    let (name, value_type, meaning) = (key.last_segment(), key.value_type.describe(), key.meaning);
    add_line(text, format_args!("| `{name}` | {value_type} | {default} | {applies} | {meaning} |"));
}

fn example_section(section: &str) -> String {
    let name = if section.starts_with("mcp.") { "github" } else { "goose" };
    let segments = section.split('.').map(|it| if is_placeholder(it) { name } else { it });
    segments.collect::<Vec<_>>().join(".")
}

impl ConfigValueType {
    /// The type in words.
    pub fn describe(self) -> String {
        let list = |choices: &[&str]| format!("`{}`", choices.join("`, `"));
        match self {
            ConfigValueType::Text => "text".to_owned(),
            ConfigValueType::Bool => "`true` or `false`".to_owned(),
            ConfigValueType::Path => "path".to_owned(),
            ConfigValueType::Duration => "duration".to_owned(),
            ConfigValueType::Number => "number".to_owned(),
            ConfigValueType::Choice(choices) => format!("one of {}", list(choices)),
            ConfigValueType::TextList => "list of texts".to_owned(),
            ConfigValueType::PathList => "list of paths".to_owned(),
            ConfigValueType::ChoiceList(choices) => format!("list of {}", list(choices)),
            ConfigValueType::TextTable => "table of texts".to_owned(),
            ConfigValueType::TextListTable => "table of lists of texts".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::format_key_reference;
    use std::{env, fs, path::Path};

    const START: &str = "<!-- generated: the keys -->\n";
    const END: &str = "<!-- end of the generated part -->\n";

    #[test]
    fn stored_key_reference_is_current() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
        let stored = fs::read_to_string(&file).unwrap();
        let (before, rest) = stored.split_once(START).expect("the start of the generated part");
        let (_, after) = rest.split_once(END).expect("the end of the generated part");
        let current = format!("{before}{START}\n{}{END}{after}", format_key_reference());
        if env::var("JACKFIELD_CONFIG_REFERENCE").is_ok_and(|it| it == "write") {
            fs::write(&file, &current).unwrap();
            return;
        }
        let command =
            "JACKFIELD_CONFIG_REFERENCE=write cargo nextest run -p jackfield-daemon reference";
        assert!(stored == current, "docs/config.md is outdated: run `{command}`");
    }
}
