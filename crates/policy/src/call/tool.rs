//! The name of a tool, and the MCP server that has it.

use super::Told;
use crate::Shell;

/// Where agents put the name of a tool.
const NAMES: &[&str] = &[
    "/_meta/claudeCode/toolName",
    "/_meta/toolName",
    "/_meta/tool_name",
    "/_meta/goose/toolCall/toolName",
    "/rawInput/tool",
    "/rawInput/tool_name",
];

const SERVERS: &[&str] = &[
    "/_meta/goose/toolCall/extensionName",
    "/_meta/serverName",
    "/_meta/server_name",
    "/_meta/mcpServer",
    "/rawInput/server",
    "/rawInput/server_name",
];

pub(super) fn name(told: &Told<'_>, commands: &[Shell]) -> Option<String> {
    let said = told.text("name").or_else(|| told.first(NAMES));
    said.map(str::to_owned)
        .or_else(|| mcp_word(told).map(str::to_owned))
        .or_else(|| of_id(told))
        .or_else(|| of_title(told, commands))
}

/// `write_file__write_file_1794701743725_0`.
fn of_id(told: &Told<'_>) -> Option<String> {
    let (name, rest) = told.text("toolCallId")?.split_once("__")?;
    (is_word(name) && rest.starts_with(name)).then(|| name.to_owned())
}

/// A title that is a name, or that begins with one: `run_commands: ls`, `shell · ls`. A single word
/// beside a command is as likely a description, which the model wrote.
fn of_title(told: &Told<'_>, commands: &[Shell]) -> Option<String> {
    let titles = [&told.own["title"], &told.known["title"]];
    titles.into_iter().filter_map(|it| it.as_str()).find_map(|title| {
        if commands.is_empty() && is_word(title) {
            return Some(title.to_owned());
        }
        let (name, rest) = title.split_once(": ").or_else(|| title.split_once(" · "))?;
        let tells = commands.is_empty() || commands.iter().any(|it| it.text() == rest);
        (is_word(name) && tells).then(|| name.to_owned())
    })
}

/// Titles of one word.
pub(super) fn aliases(told: &Told<'_>) -> Vec<String> {
    let titles =
        [&told.own["title"], &told.known["title"]].into_iter().filter_map(|it| it.as_str());
    titles.filter(|it| is_word(it)).map(str::to_owned).collect()
}

pub(super) fn server(told: &Told<'_>, name: Option<&str>) -> Option<String> {
    let of_name = name.and_then(|it| it.strip_prefix("mcp__")?.split_once("__")).map(|it| it.0);
    let of_title = || {
        let title = told.text("title")?.strip_suffix(" MCP Server)")?;
        Some(title.rsplit_once('(')?.1)
    };
    of_name.or_else(|| told.first(SERVERS)).or_else(of_title).map(str::to_owned)
}

/// `mcp__server__tool` in the title or, where an agent says it nowhere else, in the options.
fn mcp_word<'a>(told: &Told<'a>) -> Option<&'a str> {
    let options = told.params["options"].as_array().into_iter().flatten();
    let names = options.filter_map(|it| it["name"].as_str());
    let mut words = told.text("title").into_iter().chain(names).flat_map(str::split_whitespace);
    words.find(|it| it.strip_prefix("mcp__").is_some_and(|it| it.contains("__") && is_word(it)))
}

fn is_word(text: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    !text.is_empty() && text.len() <= 128 && text.bytes().all(plain)
}
