//! Everything that is known about a permission request, as lines: first what will be done, then why the user is asked.

use super::call_details::{CallContent, CallDetails};
use crate::{
    hub::OpenRequest,
    text::{ViewTheme, escape_hidden, render_diff, sanitize_line, sanitize_text, wrap_line},
};
use ratatui::{
    style::Style,
    text::{Line, Span},
};
use serde_json::Value;

/// Longer texts of a tool call are cut; the session has all of it.
const TEXT_LINES_MAX: usize = 200;

/// What the agent wants, in a few words of ours.
pub(crate) fn describe_kind(request: &OpenRequest) -> &'static str {
    if request.url.is_some() {
        return "Open a page";
    }
    if request.is_form() {
        return "Question";
    }
    let call = request.call.as_ref().and_then(|it| it["kind"].as_str());
    match call.or(request.kind.as_deref()).unwrap_or_default() {
        "read" => "Read",
        "edit" => "Change a file",
        "delete" => "Delete",
        "move" => "Move a file",
        "search" => "Search",
        "execute" => "Run a command",
        "think" => "Think",
        "fetch" => "Fetch from the network",
        "switch_mode" => "Switch the mode",
        "other" => "Use a tool",
        _ => "Permission",
    }
}

/// The request in one line: the first command or path, else the words of the agent.
pub(crate) fn describe_request(request: &OpenRequest) -> String {
    let first = |name: &str| {
        let list = request.call.as_ref()?[name].as_array()?;
        list.first()?.as_str().map(str::to_owned)
    };
    let subject = first("commands").or_else(|| first("paths")).or_else(|| first("mcp"));
    let subject = subject.or_else(|| request.what.clone()).unwrap_or_default();
    let subject = escape_hidden(&subject);
    let subject = sanitize_line(&subject);
    format!("{}: {}: {subject}", sanitize_line(&request.agent), describe_kind(request))
        .trim_end_matches([':', ' '])
        .to_owned()
}

/// The lines of a permission request for a width.
pub(crate) fn request_lines(
    request: &OpenRequest,
    details: Option<&CallDetails>,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let mut text = RequestText { lines: Vec::new(), width, theme };
    let call = request.call.clone().unwrap_or_default();
    for command in texts(&call["commands"]) {
        text.push_command(command);
    }
    text.push_list("Path", &call["paths"]);
    text.push_list("MCP tool", &call["mcp"]);
    text.push_list("Other text", &call["unknown"]);
    text.push_fact("Tool", call["tool"].as_str());
    text.push_fact("Directory", call["cwd"].as_str());
    text.push_list("Further directory", &call["folders"]);
    if call["isCut"] == true {
        let warning = "The request is so large that the daemon checked only a part of it.";
        text.push_wrapped(warning, theme.warning, 0);
    }
    if let Some(details) = details {
        text.push_content(details);
    }
    text.push_fact("The agent says", request.what.as_deref());
    text.push_fact("Why you are asked", call["why"].as_str());
    if request.options.iter().any(|it| it.kind.ends_with("_always")) {
        text.push_fact("“Always” means", call["always"].as_str());
    }
    text.lines
}

/// The question of a form.
pub(crate) fn form_lines(
    request: &OpenRequest,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let mut text = RequestText { lines: Vec::new(), width, theme };
    let message = request.what.as_deref().unwrap_or("The agent asks for values.");
    for line in sanitize_text(message).lines() {
        text.push_wrapped(line, theme.strong, 0);
    }
    if let Some(url) = &request.url {
        text.push_fact("Host", host_of(url).as_deref().or(Some("(not a web address)")));
        text.push_fact("Address", Some(url));
    }
    text.lines
}

/// The host of an `http` or `https` address, with a warning if it is not encrypted.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Some(host.to_owned()),
        "http" => Some(format!("{host} (not encrypted)")),
        _ => None,
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

struct RequestText<'a> {
    lines: Vec<Line<'static>>,
    width: u16,
    theme: &'a ViewTheme,
}

impl RequestText<'_> {
    fn push_wrapped(&mut self, text: &str, style: Style, indent: u16) {
        let line = Line::styled(text.to_owned(), style);
        self.lines.extend(wrap_line(line, self.width, indent));
    }

    /// Every character of a command is visible.
    fn push_command(&mut self, command: &str) {
        let shown = escape_hidden(command);
        for (index, line) in shown.lines().enumerate() {
            let start = Span::styled(if index == 0 { "$ " } else { "  " }, self.theme.dim);
            let line = Line::from(vec![start, Span::styled(line.to_owned(), self.theme.strong)]);
            self.lines.extend(wrap_line(line, self.width, 2));
        }
    }

    fn push_list(&mut self, name: &str, list: &Value) {
        for value in texts(list) {
            self.push_fact(name, Some(value));
        }
    }

    fn push_fact(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value.filter(|it| !it.trim().is_empty()) else { return };
        let value = escape_hidden(value).replace('\n', " ");
        let line = Line::from(vec![
            Span::styled(format!("{name}: "), self.theme.dim),
            Span::styled(value, self.theme.text),
        ]);
        self.lines.extend(wrap_line(line, self.width, 2));
    }

    fn push_content(&mut self, details: &CallDetails) {
        for content in details.content() {
            match content {
                CallContent::Text(text) => self.push_text(text),
                CallContent::Diff { path, old, new } => {
                    let diff = render_diff(path, old.as_deref(), new, self.width, self.theme);
                    self.lines.extend(diff);
                }
            }
        }
    }

    fn push_text(&mut self, text: &str) {
        let shown = escape_hidden(text);
        let count = shown.lines().count();
        for line in shown.lines().take(TEXT_LINES_MAX) {
            self.push_wrapped(line, self.theme.code, 0);
        }
        if TEXT_LINES_MAX < count {
            let more = format!("… {} more lines", count - TEXT_LINES_MAX);
            self.push_wrapped(&more, self.theme.dim, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_an_address_is_what_a_browser_opens() {
        for (url, host) in [
            ("https://example.org/a", Some("example.org")),
            ("https://example.org@evil.test/x", Some("evil.test")),
            ("http://127.0.0.1:80/", Some("127.0.0.1:80 (not encrypted)")),
            ("https://a.test\\@b.test/", Some("a.test")),
            ("file:///etc/passwd", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
