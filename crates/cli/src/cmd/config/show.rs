//! `jackfield config show`: the effective settings, each with its origin.

use super::ConfigFile;
use crate::{
    context::CommandContext,
    env,
    out::{DIM, NAME, OutputFormat, TableCell, TextTable, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::{
    Paths,
    config::{
        ConfigDocument,
        keys::{CONFIG_KEYS, ConfigDefault, ConfigKey, ConfigValueType, is_placeholder},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toml_edit::{Document, Item, TableLike};

/// Show the effective settings and where each comes from
///
/// The origin is the line of config.toml, the name of an environment variable, or `default`. The
/// values of variables for agents are hidden. Variables that set flags of commands are listed, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config show
  $ jackfield config show --format json | jq '.settings[] | select(.origin != \"default\")'")]
pub(super) struct ShowConfigCommand {
    /// How to print the settings; `quiet` prints only those that are not defaults
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The settings that a variable overrides for commands and for daemons that they start.
const OVERRIDES: [(&str, &str); 2] =
    [("default_agent", env::AGENT), ("idle_after", env::IDLE_AFTER)];

/// One setting.
#[derive(Debug, PartialEq, Eq)]
struct SettingRow {
    key: String,
    /// In TOML; absent if the setting has no value.
    value: Option<String>,
    /// What happens without a value.
    effect: &'static str,
    origin: SettingOrigin,
}

#[derive(Debug, PartialEq, Eq)]
enum SettingOrigin {
    Default,
    File { line: Option<usize> },
    Environment(&'static str),
}

impl SettingOrigin {
    fn name(&self) -> String {
        match self {
            SettingOrigin::Default => "default".to_owned(),
            SettingOrigin::File { line: Some(line) } => format!("line {line}"),
            SettingOrigin::File { line: None } => "file".to_owned(),
            SettingOrigin::Environment(variable) => (*variable).to_owned(),
        }
    }
}

impl ShowConfigCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        tree: &clap::Command,
    ) -> Result<(), CommandError> {
        let file = ConfigFile::read(&context.daemon.paths().config_file())?;
        file.settings()?;
        let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
        let rows = list_settings(&file.text, &variable);
        let flags = list_flag_variables(tree, &variable);
        match self.format {
            OutputFormat::Json => {
                let document = to_json(context.daemon.paths(), &file, &rows, &flags);
                print_json_document(&context.output, &document)
            }
            OutputFormat::Text => print_table(context, &file, &rows, &flags),
            OutputFormat::Quiet => {
                let changed = rows.iter().filter(|it| it.origin != SettingOrigin::Default);
                changed.into_iter().try_for_each(|it| {
                    let value = it.value.as_deref().unwrap_or_default();
                    context.output.print_line(&format!("{} = {value}", it.key))
                })
            }
        }
    }
}

/// All settings: each key without a placeholder, and the keys of named tables that the file has.
fn list_settings(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<SettingRow> {
    let values = Document::parse(text).ok();
    let lines = ConfigDocument::parse(text).ok();
    let root = values.as_ref().map(|it| it.as_table() as &dyn TableLike);
    let mut rows = Vec::new();
    for key in CONFIG_KEYS {
        let segments: Vec<&str> = key.segments().collect();
        let mut found = Vec::new();
        if let Some(root) = root {
            find_values(root, &segments, &mut Vec::new(), &mut found);
        }
        if found.is_empty() && !segments.iter().any(|it| is_placeholder(it)) {
            rows.push(default_row(key));
        }
        for (path, item) in found {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let line = lines.as_ref().and_then(|it| it.find_line(&path));
            rows.push(SettingRow {
                key: path.join("."),
                value: Some(format_value(key, item)),
                effect: "",
                origin: SettingOrigin::File { line },
            });
        }
    }
    for (key, name) in OVERRIDES {
        let row = rows.iter_mut().find(|it| it.key == key);
        if let (Some(row), Some(value)) = (row, variable(name)) {
            row.value = Some(toml_edit::Value::from(value).to_string());
            row.origin = SettingOrigin::Environment(name);
        }
    }
    rows
}

fn default_row(key: &ConfigKey) -> SettingRow {
    let (value, effect) = match key.default {
        ConfigDefault::Value(value) => (Some(value.to_owned()), ""),
        ConfigDefault::Unset(effect) => (None, effect),
    };
    SettingRow { key: key.name.to_owned(), value, effect, origin: SettingOrigin::Default }
}

/// The values at a path; a placeholder in it matches every name.
fn find_values<'a>(
    table: &'a dyn TableLike,
    segments: &[&str],
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, &'a Item)>,
) {
    let Some((first, rest)) = segments.split_first() else { return };
    for (name, item) in table.iter().filter(|(name, _)| is_placeholder(first) || name == first) {
        path.push(name.to_owned());
        match item.as_table_like() {
            _ if rest.is_empty() => found.push((path.clone(), item)),
            Some(inner) => find_values(inner, rest, path, found),
            None => {}
        }
        path.pop();
    }
}

/// The value in one line. Tables of texts hold variables, whose values can be secrets.
fn format_value(key: &ConfigKey, item: &Item) -> String {
    if key.value_type == ConfigValueType::TextTable {
        let names = item.as_table_like().into_iter().flat_map(TableLike::iter);
        let names: Vec<String> = names.map(|(name, _)| format!("{name} = …")).collect();
        return format!("{{ {} }}", names.join(", "));
    }
    let text = item.to_string();
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The set variables that give a flag its value, with the flag.
fn list_flag_variables(
    tree: &clap::Command,
    variable: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    for command in std::iter::once(tree).chain(tree.get_subcommands()) {
        for argument in command.get_arguments() {
            let name = argument.get_env().and_then(|it| it.to_str());
            let (Some(name), Some(flag)) = (name, argument.get_long()) else { continue };
            if let Some(value) = variable(name) {
                found.insert(name.to_owned(), (format!("--{flag}"), value));
            }
        }
        if !std::ptr::eq(command, tree) {
            found.extend(list_flag_variables(command, variable));
        }
    }
    found
}

fn print_table(
    context: &CommandContext,
    file: &ConfigFile,
    rows: &[SettingRow],
    flags: &BTreeMap<String, (String, String)>,
) -> Result<(), CommandError> {
    let mut table = TextTable::new(&["KEY", "ORIGIN", "VALUE"]);
    for row in rows {
        let value = match &row.value {
            Some(value) => TableCell::new(value),
            None => TableCell::styled(format!("not set: {}", row.effect), DIM),
        };
        table.add_row(vec![
            TableCell::styled(&row.key, NAME),
            TableCell::new(row.origin.name()),
            value,
        ]);
    }
    for (name, (flag, value)) in flags {
        let cells = [TableCell::styled(flag, NAME), TableCell::new(name), TableCell::new(value)];
        table.add_row(cells.to_vec());
    }
    table.print(&context.output)?;
    let state = if file.exists { "" } else { ", which does not exist yet" };
    context.output.print_note(&format!("the file is {}{state}", file.path.display()));
    Ok(())
}

fn to_json(
    paths: &Paths,
    file: &ConfigFile,
    rows: &[SettingRow],
    flags: &BTreeMap<String, (String, String)>,
) -> Value {
    let setting = |it: &SettingRow| {
        let (line, kind) = match &it.origin {
            SettingOrigin::Default => (None, "default"),
            SettingOrigin::File { line } => (*line, "file"),
            SettingOrigin::Environment(_) => (None, "environment"),
        };
        let mut row = json!({ "key": it.key, "value": it.value, "origin": kind });
        if let Some(line) = line {
            row["line"] = json!(line);
        }
        if let SettingOrigin::Environment(variable) = it.origin {
            row["variable"] = json!(variable);
        }
        row
    };
    let flag = |(name, (flag, value)): (&String, &(String, String))| json!({ "variable": name, "flag": flag, "value": value });
    json!({
        "file": file.path,
        "exists": file.exists,
        "directories": { "config": paths.config, "state": paths.state, "runtime": paths.runtime },
        "settings": rows.iter().map(setting).collect::<Vec<_>>(),
        "flags": flags.iter().map(flag).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_of_each_setting_is_shown_and_values_of_variables_are_hidden() {
        let text = "idle_after = 5\n[agents.goose]\nenv = { KEY = \"secret\" }\ncommand = [\n  \"goose\",\n]\n";
        let variable = |name: &str| (name == env::AGENT).then(|| "codex".to_owned());
        let rows = list_settings(text, &variable);
        let find = |key: &str| {
            let row = rows.iter().find(|it| it.key == key).unwrap();
            (row.value.clone().unwrap_or_default(), row.origin.name())
        };
        assert_eq!(find("default_agent"), ("\"codex\"".into(), "JACKFIELD_AGENT".into()));
        assert_eq!(find("idle_after"), ("5".into(), "line 1".into()));
        assert_eq!(find("sessions.idle_after"), ("\"10m\"".into(), "default".into()));
        assert_eq!(find("notify.url"), (String::new(), "default".into()));
        assert_eq!(find("agents.goose.command"), ("[\"goose\",]".into(), "line 4".into()));
        assert_eq!(find("agents.goose.env"), ("{ KEY = … }".into(), "line 3".into()));
    }
}
