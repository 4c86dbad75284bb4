//! `jackfield config set`: changes one key of config.toml and keeps everything else in the file.

use super::{
    ConfigFile,
    file::{invalid_file_error, report_change},
};
use crate::{complete, context::CommandContext, report::CommandError};
use clap::Args;
use jackfield_daemon::config::{
    describe_unknown_key,
    keys::{ConfigKey, ConfigValueType, find_config_key},
};
use toml_edit::{Array, DocumentMut, Item, Key, Table, Value};

/// Set one key of config.toml; comments and other keys stay as they are
///
/// Nothing is changed if the new value is invalid. docs/config.md lists the keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config set default_agent claude
  $ jackfield config set sessions.idle_after 1h
  $ jackfield config set agents.goose.command goose acp
  $ jackfield config set agents.goose.env.GOOSE_MODE approve")]
pub(super) struct SetConfigCommand {
    /// The key, as in `sessions.idle_after`
    #[arg(add = complete::config_keys())]
    key: String,

    /// The value; several for a list
    #[arg(required = true, allow_hyphen_values = true)]
    value: Vec<String>,
}

impl SetConfigCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        context.daemon.require_operator("config set")?;
        let file = ConfigFile::read(&context.daemon.paths().config_file())?;
        let old = file.settings()?;
        let text = self.edit_text(&file.text)?;
        let hint = "config.toml was not changed; pass a valid value";
        let new = file.parse(&text).map_err(|it| invalid_file_error(&file.path, &it, hint))?;
        file.replace(&text)?;
        report_change(context, old, new)
    }

    /// The text with the new value.
    fn edit_text(&self, text: &str) -> Result<String, CommandError> {
        let path = self.parse_key()?;
        let names: Vec<&str> = path.iter().map(Key::get).collect();
        let value = self.parse_value(&names)?;
        let mut document: DocumentMut =
            text.parse().map_err(|error| CommandError::local("cannot parse config.toml", error))?;
        set_value(document.as_item_mut(), &names, value).ok_or_else(|| {
            let message = format!("a part of `{}` is not a table in config.toml", self.key);
            CommandError::usage(message, "`jackfield config edit` opens the file")
        })?;
        Ok(document.to_string())
    }

    fn parse_key(&self) -> Result<Vec<Key>, CommandError> {
        Key::parse(&self.key).map_err(|_| {
            let message = format!("`{}` is not a key", self.key);
            CommandError::usage(message, "write it as in `sessions.idle_after`")
        })
    }

    fn parse_value(&self, path: &[&str]) -> Result<Value, CommandError> {
        let key = find_config_key(path);
        let entry_type = |it: &ConfigKey| match it.value_type {
            ConfigValueType::TextTable => Some(ConfigValueType::Text),
            ConfigValueType::TextListTable => Some(ConfigValueType::TextList),
            _ => None,
        };
        let entry_of = path.split_last().and_then(|(_, above)| find_config_key(above));
        let (value_type, example) = match (key, entry_of.and_then(entry_type)) {
            (Some(key), _) => (key.value_type, key.example),
            (None, Some(entry_type)) => (entry_type, ""),
            (None, None) => {
                let hint = "`jackfield config show` and docs/config.md list the keys";
                return Err(CommandError::usage(describe_unknown_key(path), hint));
            }
        };
        let wrong_value = || {
            let given = self.value.join(" ");
            let message =
                format!("`{}` must be a {}, not `{given}`", self.key, value_type.describe());
            CommandError::usage(message, format!("write it as in `{example}`"))
        };
        match (value_type, self.value.as_slice()) {
            (ConfigValueType::Number, [it]) => {
                it.parse::<i64>().map(Value::from).map_err(|_| wrong_value())
            }
            (
                ConfigValueType::TextList
                | ConfigValueType::PathList
                | ConfigValueType::ChoiceList(_),
                values,
            ) => match values {
                [it] if it.starts_with('[') => it.parse().map_err(|_| wrong_value()),
                values => Ok(Value::Array(values.iter().collect::<Array>())),
            },
            (ConfigValueType::TextTable | ConfigValueType::TextListTable, [it]) => {
                it.parse().map_err(|_| wrong_value())
            }
            (ConfigValueType::Bool, [it]) => {
                it.parse::<bool>().map(Value::from).map_err(|_| wrong_value())
            }
            (_, [it]) => Ok(Value::from(it.as_str())),
            _ => Err(wrong_value()),
        }
    }
}

/// Sets the value at the path and creates missing tables; `None` if a part of the path is not a table.
fn set_value(root: &mut Item, path: &[&str], mut value: Value) -> Option<()> {
    let (last, above) = path.split_last()?;
    let mut item = root;
    for segment in above {
        let mut table = Table::new();
        table.set_implicit(true);
        item = item.as_table_like_mut()?.entry(segment).or_insert(Item::Table(table));
    }
    let table = item.as_table_like_mut()?;
    match table.get_mut(last).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            table.insert(last, Item::Value(value));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, args: &[&str]) -> Result<String, String> {
        let (key, value) = args.split_first().unwrap();
        let value = value.iter().map(|&it| it.to_owned()).collect();
        let command = SetConfigCommand { key: (*key).to_owned(), value };
        command.edit_text(text).map_err(|it| it.to_string())
    }

    #[test]
    fn value_is_replaced_and_comments_stay() {
        let text = "# mine\nidle_after = 5 # short\n\n[agents.goose] # local\nwarm = 1\n";
        assert_eq!(
            edit(text, &["idle_after", "60"]).unwrap(),
            "# mine\nidle_after = 60 # short\n\n[agents.goose] # local\nwarm = 1\n"
        );
        assert_eq!(
            edit(text, &["agents.goose.command", "goose", "acp"]).unwrap(),
            format!("{text}command = [\"goose\", \"acp\"]\n")
        );
        assert_eq!(
            edit(text, &["default_agent", "goose"]).unwrap(),
            text.replace("short\n", "short\ndefault_agent = \"goose\"\n")
        );
    }

    #[test]
    fn missing_tables_are_created() {
        assert_eq!(
            edit("", &["agents.goose.env.MODE", "a b"]).unwrap(),
            "[agents.goose.env]\nMODE = \"a b\"\n"
        );
        assert_eq!(edit("", &["notify.on", "[\"done\"]"]).unwrap(), "[notify]\non = [\"done\"]\n");
        assert_eq!(
            edit("", &["tui.bindings.\"session.cancel\"", "f8", "ctrl-c"]).unwrap(),
            "[tui.bindings]\n\"session.cancel\" = [\"f8\", \"ctrl-c\"]\n"
        );
        assert_eq!(edit("", &["tui.mouse", "true"]).unwrap(), "[tui]\nmouse = true\n");
    }

    #[test]
    fn unknown_key_and_wrong_type_are_refused() {
        let refused = |args: &[&str]| edit("", args).unwrap_err();
        assert!(refused(&["default_agents", "x"]).contains("did you mean `default_agent`?"));
        assert!(refused(&["idle_after", "soon"]).contains("must be a number, not `soon`"));
        assert!(refused(&["default_agent", "a", "b"]).contains("must be a text, not `a b`"));
        assert!(refused(&["a b", "x"]).contains("is not a key"));
        assert!(edit("agents = 1\n", &["agents.x.warm", "1"]).unwrap_err().contains("not a table"));
    }
}
