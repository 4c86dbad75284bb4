//! One item of a Codex turn, in the spelling of `exec` or of `app-server`: what it is to a client.

use super::{command, patch};
use crate::{Entry, Kind, Status, Tool};
use serde_json::{Value, json};

/// What an item means.
#[derive(Debug)]
pub(super) enum Meaning {
    Text(String),
    /// `exec` tells thoughts as a text, `app-server` in parts that are read where they stream.
    Thought(String),
    Tool(Tool),
    Plan(Vec<Entry>),
    Notice(String),
    /// The client's own words, told back.
    Echo,
    Unknown,
}

/// Reads an item of a session in `cwd`; `done` once Codex says that it is completed.
pub(super) fn read(item: &Value, done: bool, cwd: &str) -> Meaning {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let tool = match item["type"].as_str().unwrap_or_default() {
        "agent_message" | "agentMessage" | "plan" => return Meaning::Text(text("text")),
        "exitedReviewMode" => return Meaning::Text(text("review")),
        "reasoning" => return Meaning::Thought(text("text")),
        "todo_list" => return Meaning::Plan(todos(item)),
        "error" => return Meaning::Notice(text("message")),
        "contextCompaction" if done => {
            return Meaning::Notice("the conversation was compacted".to_owned());
        }
        "userMessage" => return Meaning::Echo,
        "command_execution" | "commandExecution" => command_execution(item),
        "file_change" | "fileChange" => patch::tool(&item["changes"], cwd),
        "mcp_tool_call" | "mcpToolCall" => mcp_tool_call(item),
        "dynamicToolCall" => dynamic_tool_call(item),
        "collab_tool_call" | "collabAgentToolCall" => collab_tool_call(item),
        "web_search" | "webSearch" => web_search(item),
        "imageView" => {
            let path = text("path");
            Tool::new().title(format!("Look at {path}")).kind(Kind::Read).location(&path)
        }
        "imageGeneration" => image_generation(item),
        "sleep" => {
            let seconds = item["durationMs"].as_u64().unwrap_or_default().div_ceil(1000);
            Tool::new().title(format!("Wait {seconds} s")).kind(Kind::Other)
        }
        _ => return Meaning::Unknown,
    };
    Meaning::Tool(tool.status(status(item, done)))
}

/// Only what is new about a tool call of which `told` is known.
pub(super) fn news(told: &Tool, mut tool: Tool) -> Tool {
    tool.fields.retain(|key, value| told.fields.get(key) != Some(value));
    tool
}

/// The same field in `exec`'s and `app-server`'s spelling.
fn either<'a>(item: &'a Value, snake: &str, camel: &str) -> &'a Value {
    item.get(snake).unwrap_or(&item[camel])
}

fn status(item: &Value, done: bool) -> Status {
    match item["status"].as_str() {
        Some("completed") => Status::Completed,
        Some("failed" | "declined" | "interrupted") => Status::Failed,
        _ if item["success"] == false => Status::Failed,
        _ if done => Status::Completed,
        _ => Status::InProgress,
    }
}

fn todos(item: &Value) -> Vec<Entry> {
    let items = item["items"].as_array().into_iter().flatten();
    items
        .map(|it| Entry {
            content: it["text"].as_str().unwrap_or_default().to_owned(),
            status: if it["completed"] == true { "completed" } else { "pending" },
            priority: "medium",
        })
        .collect()
}

fn command_execution(item: &Value) -> Tool {
    let command = command::bare(item["command"].as_str().unwrap_or_default());
    let mut input = json!({"command": command});
    if let Some(cwd) = item["cwd"].as_str() {
        input["cwd"] = json!(cwd);
    }
    let mut tool = Tool::new().title(command).kind(command_kind(item)).input(input);
    for action in item["commandActions"].as_array().into_iter().flatten() {
        if let Some(path) = action["path"].as_str() {
            tool = tool.location(path);
        }
    }
    let output = either(item, "aggregated_output", "aggregatedOutput").as_str();
    if let Some(output) = output.filter(|output| !output.is_empty()) {
        tool = tool.text(output);
    }
    let exit_code = either(item, "exit_code", "exitCode");
    if item["status"] == "declined" {
        tool.output(json!({"declined": true}))
    } else if exit_code.is_number() {
        tool.output(json!({"exitCode": exit_code}))
    } else {
        tool
    }
}

/// `app-server` says what a command is for, where it can tell.
fn command_kind(item: &Value) -> Kind {
    let actions = item["commandActions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = |types: &[&str]| {
        let is = |action: &Value| action["type"].as_str().is_some_and(|it| types.contains(&it));
        !actions.is_empty() && actions.iter().all(is)
    };
    if all(&["read"]) {
        Kind::Read
    } else if all(&["read", "search", "listFiles"]) {
        Kind::Search
    } else {
        Kind::Execute
    }
}

fn mcp_tool_call(item: &Value) -> Tool {
    let name = |key: &str| item[key].as_str().unwrap_or_default();
    let tool = Tool::new()
        .title(format!("{}: {}", name("server"), name("tool")))
        .kind(Kind::Other)
        .input(item["arguments"].clone());
    if let Some(message) = item["error"]["message"].as_str() {
        return tool.text(message);
    }
    let result = &item["result"];
    if result.is_null() { tool } else { texts(tool, &result["content"]).output(result.clone()) }
}

fn dynamic_tool_call(item: &Value) -> Tool {
    let name = item["tool"].as_str().unwrap_or_default();
    let tool = Tool::new().title(name).kind(Kind::Other).input(item["arguments"].clone());
    texts(tool, &item["contentItems"])
}

/// The texts of a tool's answer; what is no text is kept in its raw output.
fn texts(tool: Tool, content: &Value) -> Tool {
    let content = content.as_array().into_iter().flatten();
    content.filter_map(|part| part["text"].as_str()).fold(tool, Tool::text)
}

fn collab_tool_call(item: &Value) -> Tool {
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
    let receivers = either(item, "receiver_thread_ids", "receiverThreadIds");
    let input = json!({"tool": name, "prompt": prompt, "receivers": receivers});
    let tool = Tool::new().title(title).kind(Kind::Other).input(input);
    let states = either(item, "agents_states", "agentsStates").as_object();
    let messages = states.into_iter().flatten().filter_map(|(_, state)| state["message"].as_str());
    messages.filter(|message| !message.is_empty()).fold(tool, Tool::text)
}

fn web_search(item: &Value) -> Tool {
    let action = &item["action"];
    let url = action["url"].as_str().unwrap_or_default();
    let query = item["query"].as_str().filter(|query| !query.is_empty());
    let query = query.or_else(|| action["query"].as_str()).unwrap_or_default();
    let (title, kind) = match action["type"].as_str() {
        Some("open_page" | "openPage") if !url.is_empty() => (format!("Open {url}"), Kind::Fetch),
        Some("find_in_page" | "findInPage") if !url.is_empty() => {
            let pattern = action["pattern"].as_str().unwrap_or_default();
            (format!("Find `{pattern}` in {url}"), Kind::Fetch)
        }
        // The query is often known only at the end.
        _ if query.is_empty() => ("Search the web".to_owned(), Kind::Search),
        _ => (format!("Search the web for `{query}`"), Kind::Search),
    };
    Tool::new().title(title).kind(kind).input(json!({"query": query, "action": action}))
}

/// The picture itself is left out: it can be megabytes, and lies in a file as well.
fn image_generation(item: &Value) -> Tool {
    let tool = Tool::new().title("Generate an image").kind(Kind::Other);
    let tool = match item["revisedPrompt"].as_str() {
        Some(prompt) => tool.input(json!({"prompt": prompt})),
        None => tool,
    };
    match item["savedPath"].as_str() {
        Some(path) => tool.location(path).text(path),
        None => tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(item: &Value) -> Value {
        match read(item, true, "/w") {
            Meaning::Tool(tool) => Value::Object(tool.fields),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_mcp_call_shows_its_answer_or_its_error() {
        let item = json!({"type": "mcp_tool_call", "server": "docs", "tool": "find", "arguments": {"q": 1},
            "result": {"content": [{"type": "text", "text": "found"}]}, "error": null, "status": "completed"});
        let told = tool(&item);
        assert_eq!((&told["title"], &told["status"]), (&json!("docs: find"), &json!("completed")));
        assert_eq!(told["content"][0]["content"]["text"], "found");
        let item = json!({"type": "mcpToolCall", "server": "docs", "tool": "find", "arguments": null,
            "result": null, "error": {"message": "no server"}, "status": "failed"});
        let told = tool(&item);
        assert_eq!(
            (&told["status"], &told["content"][0]["content"]["text"]),
            (&json!("failed"), &json!("no server"))
        );
    }

    #[test]
    fn a_declined_command_failed_and_says_why() {
        let item = json!({"type": "commandExecution", "command": "bash -lc 'rm x'", "status": "declined",
            "commandActions": [], "exitCode": null, "aggregatedOutput": null});
        let told = tool(&item);
        assert_eq!(
            (&told["status"], &told["rawOutput"]["declined"]),
            (&json!("failed"), &json!(true))
        );
    }

    #[test]
    fn a_command_that_only_reads_is_of_that_kind() {
        let item = json!({"type": "commandExecution", "command": "cat a.rs", "status": "completed",
            "commandActions": [{"type": "read", "command": "cat a.rs", "name": "a.rs", "path": "/w/a.rs"}]});
        let told = tool(&item);
        assert_eq!(
            (&told["kind"], &told["locations"][0]["path"]),
            (&json!("read"), &json!("/w/a.rs"))
        );
    }

    #[test]
    fn searches_and_sub_agents_have_titles_for_people() {
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
    fn a_list_of_things_to_do_is_a_plan() {
        let item = json!({"type": "todo_list", "items": [
            {"text": "one", "completed": true}, {"text": "two", "completed": false}]});
        let Meaning::Plan(entries) = read(&item, false, "/w") else { panic!("no plan") };
        let told: Vec<_> = entries.iter().map(|it| (it.content.as_str(), it.status)).collect();
        assert_eq!(told, [("one", "completed"), ("two", "pending")]);
    }
}
