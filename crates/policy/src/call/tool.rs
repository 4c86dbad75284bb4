//! The names of a tool, and the MCP servers that have it.

use super::Told;
use crate::Shell;
use serde_json::Value;

/// Where agents put the name of a tool.
const NAMES: &[&str] = &[
    "/_meta/claudeCode/toolName",
    "/_meta/toolName",
    "/_meta/tool_name",
    "/_meta/goose/toolCall/toolName",
    "/rawInput/tool",
    "/rawInput/tool_name",
];

/// Names of members that tell a server, without case and `_`.
const SERVER_KEYS: &[&str] =
    &["server", "servername", "mcpserver", "extensionname", "mcpservername"];

const META_DEPTH_MAX: usize = 6;

/// What agents call the tool, without repetition: more than one if they contradict each other.
pub(super) fn names(told: &Told<'_>, commands: &[Shell]) -> Vec<String> {
    let own = ["name"].iter().filter_map(|it| told.text(it));
    let mut names: Vec<String> = Vec::new();
    for name in own.chain(told.all(NAMES)) {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        let guessed = mcp_word(told).map(str::to_owned);
        let guessed = guessed.or_else(|| of_id(told)).or_else(|| of_title(told, commands));
        names.extend(guessed);
    }
    names
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
pub(super) fn titles(told: &Told<'_>) -> Vec<String> {
    let titles =
        [&told.own["title"], &told.known["title"]].into_iter().filter_map(|it| it.as_str());
    titles.filter(|it| is_word(it)).map(str::to_owned).collect()
}

/// Every server that is named: in the name of the tool, in `_meta`, in the input, in the title.
pub(super) fn servers(told: &Told<'_>, names: &[String]) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    for name in names.iter().map(String::as_str).chain(mcp_word(told)) {
        found.extend(name.strip_prefix("mcp__").and_then(|it| it.split_once("__")).map(|it| it.0));
    }
    for part in [told.own, told.known, told.params] {
        in_meta(&part["_meta"], 0, &mut found);
        let members = part["rawInput"].as_object().into_iter().flatten();
        found.extend(members.filter(|it| is_server_key(it.0)).filter_map(|it| it.1.as_str()));
    }
    if found.is_empty() {
        let title = told.text("title").and_then(|it| it.strip_suffix(" MCP Server)"));
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

fn in_meta<'a>(value: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    let members = value.as_object().filter(|_| depth < META_DEPTH_MAX);
    for (key, value) in members.into_iter().flatten() {
        found.extend(value.as_str().filter(|_| is_server_key(key)));
        in_meta(value, depth + 1, found);
    }
}

fn is_server_key(key: &str) -> bool {
    let key = key.replace(['_', '-'], "").to_lowercase();
    SERVER_KEYS.contains(&key.as_str())
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
