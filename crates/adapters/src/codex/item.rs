//! Parses one item of a Codex turn, in the spelling of `exec` or of `app-server`.

use super::{command, file_change};
use crate::{PlanEntry, ToolKind, ToolStatus, ToolUpdate};
use serde_json::{Value, json};

/// Whether Codex has reported the end of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemPhase {
    Started,
    Completed,
}

/// The content of an item for the client.
#[derive(Debug)]
pub(super) enum ItemContent {
    Text(String),
    /// `exec` reports thoughts as one text, `app-server` in parts, which are read from its deltas.
    Thought(String),
    ToolCall(ToolUpdate),
    Plan(Vec<PlanEntry>),
    Notice(String),
    /// The client's own prompt, repeated.
    UserMessage,
    Unknown,
}

/// Parses an item of a session in `cwd`.
pub(super) fn parse_item(item: &Value, phase: ItemPhase, cwd: &str) -> ItemContent {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let tool = match item["type"].as_str().unwrap_or_default() {
        "agent_message" | "agentMessage" | "plan" => return ItemContent::Text(text("text")),
        "exitedReviewMode" => return ItemContent::Text(text("review")),
        "reasoning" => return ItemContent::Thought(text("text")),
        "todo_list" => return ItemContent::Plan(parse_todos(item)),
        "error" => return ItemContent::Notice(text("message")),
        "contextCompaction" if phase == ItemPhase::Completed => {
            return ItemContent::Notice("the conversation was compacted".to_owned());
        }
        "userMessage" => return ItemContent::UserMessage,
        "command_execution" | "commandExecution" => command_execution(item),
        "file_change" | "fileChange" => file_change::to_tool_update(&item["changes"], cwd),
        "mcp_tool_call" | "mcpToolCall" => mcp_tool_call(item),
        "dynamicToolCall" => dynamic_tool_call(item),
        "collab_tool_call" | "collabAgentToolCall" => collab_tool_call(item),
        "web_search" | "webSearch" => web_search(item),
        "imageView" => {
            let path = text("path");
            ToolUpdate::new()
                .with_title(format!("Look at {path}"))
                .with_kind(ToolKind::Read)
                .with_location(&path)
        }
        "imageGeneration" => image_generation(item),
        "sleep" => {
            let seconds = item["durationMs"].as_u64().unwrap_or_default().div_ceil(1000);
            ToolUpdate::new().with_title(format!("Wait {seconds} s")).with_kind(ToolKind::Other)
        }
        _ => return ItemContent::Unknown,
    };
    ItemContent::ToolCall(tool.with_status(status(item, phase)))
}

/// The fields of a tool call that differ from the known ones.
pub(super) fn changed_fields(known: &ToolUpdate, mut tool: ToolUpdate) -> ToolUpdate {
    tool.fields.retain(|key, value| known.fields.get(key) != Some(value));
    tool
}

/// A field in the spelling of `exec` or of `app-server`.
fn either_field<'a>(item: &'a Value, snake: &str, camel: &str) -> &'a Value {
    item.get(snake).unwrap_or(&item[camel])
}

fn status(item: &Value, phase: ItemPhase) -> ToolStatus {
    match item["status"].as_str() {
        Some("completed") => ToolStatus::Completed,
        Some("failed" | "declined" | "interrupted") => ToolStatus::Failed,
        _ if item["success"] == false => ToolStatus::Failed,
        _ if phase == ItemPhase::Completed => ToolStatus::Completed,
        _ => ToolStatus::InProgress,
    }
}

fn parse_todos(item: &Value) -> Vec<PlanEntry> {
    let items = item["items"].as_array().into_iter().flatten();
    items
        .map(|it| PlanEntry {
            content: it["text"].as_str().unwrap_or_default().to_owned(),
            status: if it["completed"] == true { "completed" } else { "pending" },
            priority: "medium",
        })
        .collect()
}

fn command_execution(item: &Value) -> ToolUpdate {
    let command = command::strip_shell(item["command"].as_str().unwrap_or_default());
    let mut input = json!({"command": command});
    if let Some(cwd) = item["cwd"].as_str() {
        input["cwd"] = json!(cwd);
    }
    let mut tool =
        ToolUpdate::new().with_title(command).with_kind(command_kind(item)).with_input(input);
    for action in item["commandActions"].as_array().into_iter().flatten() {
        if let Some(path) = action["path"].as_str() {
            tool = tool.with_location(path);
        }
    }
    let output = either_field(item, "aggregated_output", "aggregatedOutput").as_str();
    if let Some(output) = output.filter(|output| !output.is_empty()) {
        tool = tool.with_text(output);
    }
    let exit_code = either_field(item, "exit_code", "exitCode");
    if item["status"] == "declined" {
        tool.with_output(json!({"declined": true}))
    } else if exit_code.is_number() {
        tool.with_output(json!({"exitCode": exit_code}))
    } else {
        tool
    }
}

/// The kind of a command, from the actions that `app-server` detects in it.
fn command_kind(item: &Value) -> ToolKind {
    let actions = item["commandActions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = |types: &[&str]| {
        let is = |action: &Value| action["type"].as_str().is_some_and(|it| types.contains(&it));
        !actions.is_empty() && actions.iter().all(is)
    };
    if all(&["read"]) {
        ToolKind::Read
    } else if all(&["read", "search", "listFiles"]) {
        ToolKind::Search
    } else {
        ToolKind::Execute
    }
}

fn mcp_tool_call(item: &Value) -> ToolUpdate {
    let name = |key: &str| item[key].as_str().unwrap_or_default();
    let tool = ToolUpdate::new()
        .with_title(format!("{}: {}", name("server"), name("tool")))
        .with_kind(ToolKind::Other)
        .with_input(item["arguments"].clone());
    if let Some(message) = item["error"]["message"].as_str() {
        return tool.with_text(message);
    }
    let result = &item["result"];
    if result.is_null() {
        tool
    } else {
        with_texts(tool, &result["content"]).with_output(result.clone())
    }
}

fn dynamic_tool_call(item: &Value) -> ToolUpdate {
    let name = item["tool"].as_str().unwrap_or_default();
    let tool = ToolUpdate::new()
        .with_title(name)
        .with_kind(ToolKind::Other)
        .with_input(item["arguments"].clone());
    with_texts(tool, &item["contentItems"])
}

/// Adds the texts of a tool's result. Other content is only in its raw output.
fn with_texts(tool: ToolUpdate, content: &Value) -> ToolUpdate {
    let content = content.as_array().into_iter().flatten();
    content.filter_map(|part| part["text"].as_str()).fold(tool, ToolUpdate::with_text)
}

fn collab_tool_call(item: &Value) -> ToolUpdate {
    let name = item["tool"].as_str().unwrap_or("sub-agent");
    let prompt = item["prompt"].as_str().unwrap_or_default();
    let title = match name {
        "spawn_agent" | "spawnAgent" => "Start a sub-agent",
        "send_input" | "sendInput" | "sendMessage" | "followupTask" => "Write to a sub-agent",
        "wait" => "Wait for sub-agents",
        "close_agent" | "closeAgent" => "Close a sub-agent",
        other => other,
    };
    let task = prompt.lines().next().unwrap_or_default();
    let title = if task.is_empty() { title.to_owned() } else { format!("{title}: {task}") };
    let receivers = either_field(item, "receiver_thread_ids", "receiverThreadIds");
    let input = json!({"tool": name, "prompt": prompt, "receivers": receivers});
    let tool = ToolUpdate::new().with_title(title).with_kind(ToolKind::Other).with_input(input);
    let states = either_field(item, "agents_states", "agentsStates").as_object();
    let messages = states.into_iter().flatten().filter_map(|(_, state)| state["message"].as_str());
    messages.filter(|message| !message.is_empty()).fold(tool, ToolUpdate::with_text)
}

fn web_search(item: &Value) -> ToolUpdate {
    let action = &item["action"];
    let url = action["url"].as_str().unwrap_or_default();
    let query = item["query"].as_str().filter(|query| !query.is_empty());
    let query = query.or_else(|| action["query"].as_str()).unwrap_or_default();
    let (title, kind) = match action["type"].as_str() {
        Some("open_page" | "openPage") if !url.is_empty() => {
            (format!("Open {url}"), ToolKind::Fetch)
        }
        Some("find_in_page" | "findInPage") if !url.is_empty() => {
            let pattern = action["pattern"].as_str().unwrap_or_default();
            (format!("Find `{pattern}` in {url}"), ToolKind::Fetch)
        }
        // The query is often reported only at the end.
        _ if query.is_empty() => ("Search the web".to_owned(), ToolKind::Search),
        _ => (format!("Search the web for `{query}`"), ToolKind::Search),
    };
    ToolUpdate::new()
        .with_title(title)
        .with_kind(kind)
        .with_input(json!({"query": query, "action": action}))
}

/// The image itself is left out, because it can be several megabytes and is stored in a file too.
fn image_generation(item: &Value) -> ToolUpdate {
    let tool = ToolUpdate::new().with_title("Generate an image").with_kind(ToolKind::Other);
    let tool = match item["revisedPrompt"].as_str() {
        Some(prompt) => tool.with_input(json!({"prompt": prompt})),
        None => tool,
    };
    match item["savedPath"].as_str() {
        Some(path) => tool.with_location(path).with_text(path),
        None => tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(item: &Value) -> Value {
        match parse_item(item, ItemPhase::Completed, "/w") {
            ItemContent::ToolCall(tool) => Value::Object(tool.fields),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mcp_call_shows_its_result_or_its_error() {
        let item = json!({"type": "mcp_tool_call", "server": "docs", "tool": "find", "arguments": {"q": 1},
            "result": {"content": [{"type": "text", "text": "found"}]}, "error": null, "status": "completed"});
        let update = tool(&item);
        assert_eq!(
            (&update["title"], &update["status"]),
            (&json!("docs: find"), &json!("completed"))
        );
        assert_eq!(update["content"][0]["content"]["text"], "found");
        let item = json!({"type": "mcpToolCall", "server": "docs", "tool": "find", "arguments": null,
            "result": null, "error": {"message": "no server"}, "status": "failed"});
        let update = tool(&item);
        assert_eq!(
            (&update["status"], &update["content"][0]["content"]["text"]),
            (&json!("failed"), &json!("no server"))
        );
    }

    #[test]
    fn declined_command_fails_with_the_reason() {
        let item = json!({"type": "commandExecution", "command": "bash -lc 'rm x'", "status": "declined",
            "commandActions": [], "exitCode": null, "aggregatedOutput": null});
        let update = tool(&item);
        assert_eq!(
            (&update["status"], &update["rawOutput"]["declined"]),
            (&json!("failed"), &json!(true))
        );
    }

    #[test]
    fn command_that_only_reads_has_the_kind_read() {
        let item = json!({"type": "commandExecution", "command": "cat a.rs", "status": "completed",
            "commandActions": [{"type": "read", "command": "cat a.rs", "name": "a.rs", "path": "/w/a.rs"}]});
        let update = tool(&item);
        assert_eq!(
            (&update["kind"], &update["locations"][0]["path"]),
            (&json!("read"), &json!("/w/a.rs"))
        );
    }

    #[test]
    fn searches_and_sub_agents_have_readable_titles() {
        let titles = [
            (
                json!({"type": "web_search", "query": "rust", "action": {"type": "search"}}),
                "Search the web for `rust`",
            ),
            (
                json!({"type": "webSearch", "query": "", "action": {"type": "openPage", "url": "https://a"}}),
                "Open https://a",
            ),
            (json!({"type": "webSearch", "query": ""}), "Search the web"),
            (
                json!({"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "look\nhard"}),
                "Start a sub-agent: look",
            ),
            (json!({"type": "collabAgentToolCall", "tool": "wait"}), "Wait for sub-agents"),
        ];
        for (item, title) in titles {
            assert_eq!(tool(&item)["title"], title);
        }
    }

    #[test]
    fn todo_list_becomes_a_plan() {
        let item = json!({"type": "todo_list", "items": [
            {"text": "one", "completed": true}, {"text": "two", "completed": false}]});
        let ItemContent::Plan(entries) = parse_item(&item, ItemPhase::Started, "/w") else {
            panic!("no plan")
        };
        let update: Vec<_> = entries.iter().map(|it| (it.content.as_str(), it.status)).collect();
        assert_eq!(update, [("one", "completed"), ("two", "pending")]);
    }
}
