//! The names of a tool, and the MCP servers that provide it.

use super::ToolCallSources;
use crate::ShellCommand;
use serde_json::Value;

/// JSON pointers to the members in which agents put the name of a tool.
const NAME_POINTERS: &[&str] = &[
    "/_meta/claudeCode/toolName",
    "/_meta/toolName",
    "/_meta/tool_name",
    "/_meta/goose/toolCall/toolName",
    "/rawInput/tool",
    "/rawInput/tool_name",
];

/// Names of members that contain the name of a server, in lowercase without `_`.
const SERVER_KEYS: &[&str] =
    &["server", "servername", "mcpserver", "extensionname", "mcpservername"];

const META_DEPTH_MAX: usize = 6;

/// The distinct names that the agent gives the tool. They are several if it contradicts itself.
pub(super) fn tool_names(sources: &ToolCallSources<'_>, commands: &[ShellCommand]) -> Vec<String> {
    let own = ["name"].iter().filter_map(|it| sources.text(it));
    let mut names: Vec<String> = Vec::new();
    for name in own.chain(sources.texts_at(NAME_POINTERS)) {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        let guessed = find_mcp_tool_name(sources).map(str::to_owned);
        let guessed = guessed
            .or_else(|| name_from_id(sources))
            .or_else(|| name_from_title(sources, commands));
        names.extend(guessed);
    }
    names
}

/// The name in an id such as `write_file__write_file_1794701743725_0`.
fn name_from_id(sources: &ToolCallSources<'_>) -> Option<String> {
    let (name, rest) = sources.text("toolCallId")?.split_once("__")?;
    (is_identifier(name) && rest.starts_with(name)).then(|| name.to_owned())
}

/// The name in a title that is a name or begins with one: `run_commands: ls`, `shell · ls`. A title
/// of one word beside a command may be a description by the model, so it does not count.
fn name_from_title(sources: &ToolCallSources<'_>, commands: &[ShellCommand]) -> Option<String> {
    let titles = [&sources.own["title"], &sources.known["title"]];
    titles.into_iter().filter_map(|it| it.as_str()).find_map(|title| {
        if commands.is_empty() && is_identifier(title) {
            return Some(title.to_owned());
        }
        let (name, rest) = title.split_once(": ").or_else(|| title.split_once(" · "))?;
        let is_command = commands.is_empty() || commands.iter().any(|it| it.text() == rest);
        (is_identifier(name) && is_command).then(|| name.to_owned())
    })
}

/// The titles that consist of one word and may be a name.
pub(super) fn one_word_titles(sources: &ToolCallSources<'_>) -> Vec<String> {
    let titles =
        [&sources.own["title"], &sources.known["title"]].into_iter().filter_map(|it| it.as_str());
    titles.filter(|it| is_identifier(it)).map(str::to_owned).collect()
}

/// Every server that the name of the tool, `_meta`, the input or the title names.
pub(super) fn mcp_servers(sources: &ToolCallSources<'_>, names: &[String]) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    for name in names.iter().map(String::as_str).chain(find_mcp_tool_name(sources)) {
        found.extend(name.strip_prefix("mcp__").and_then(|it| it.split_once("__")).map(|it| it.0));
    }
    for part in [sources.own, sources.known, sources.params] {
        collect_servers_in_meta(&part["_meta"], 0, &mut found);
        let members = part["rawInput"].as_object().into_iter().flatten();
        found.extend(members.filter(|it| is_server_key(it.0)).filter_map(|it| it.1.as_str()));
    }
    if found.is_empty() {
        let title = sources.text("title").and_then(|it| it.strip_suffix(" MCP Server)"));
        found.extend(title.and_then(|it| it.rsplit_once('(')).map(|it| it.1));
    }
    let mut servers: Vec<String> = Vec::new();
    for server in found.into_iter().filter(|it| !it.is_empty()) {
        if !servers.iter().any(|it| it == server) {
            servers.push(server.to_owned());
        }
    }
    servers
}

fn collect_servers_in_meta<'a>(value: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    let members = value.as_object().filter(|_| depth < META_DEPTH_MAX);
    for (key, value) in members.into_iter().flatten() {
        found.extend(value.as_str().filter(|_| is_server_key(key)));
        collect_servers_in_meta(value, depth + 1, found);
    }
}

fn is_server_key(key: &str) -> bool {
    let key = key.replace(['_', '-'], "").to_lowercase();
    SERVER_KEYS.contains(&key.as_str())
}

/// Finds `mcp__server__tool` in the title or in the names of the options, where one agent puts it.
fn find_mcp_tool_name<'a>(sources: &ToolCallSources<'a>) -> Option<&'a str> {
    let options = sources.params["options"].as_array().into_iter().flatten();
    let names = options.filter_map(|it| it["name"].as_str());
    let mut words = sources.text("title").into_iter().chain(names).flat_map(str::split_whitespace);
    words.find(|it| {
        it.strip_prefix("mcp__").is_some_and(|it| it.contains("__") && is_identifier(it))
    })
}

fn is_identifier(text: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    !text.is_empty() && text.len() <= 128 && text.bytes().all(plain)
}
