//! Tool calls: merging the updates of a call, and what it has put out. Agents send every member early, late or never.

use super::{
    MessagePart, ToolCallItem, ToolOutput, ToolStatus,
    content::{list, text},
};
use jackfield_events::Time;
use jackfield_protocol::quote_argv;
use serde_json::Value;

/// The id of a call. An id that is not text is compared by its JSON.
pub(super) fn tool_call_id(update: &Value) -> String {
    match &update["toolCallId"] {
        Value::String(id) => id.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn parse_status(status: &str) -> Option<ToolStatus> {
    match status {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" | "complete" | "succeeded" | "success" => Some(ToolStatus::Done),
        "failed" | "failure" | "error" | "rejected" => Some(ToolStatus::Failed),
        "cancelled" | "canceled" => Some(ToolStatus::Cancelled),
        _ => None,
    }
}

impl ToolCallItem {
    /// Merges a `tool_call` or a `tool_call_update`.
    pub(super) fn merge_update(&mut self, update: &Value, at: Time) {
        self.merge_description(update);
        if let Some(content) = update["content"].as_array() {
            self.output = content.iter().filter_map(parse_output).collect();
        }
        if !update["rawOutput"].is_null() {
            self.raw_output = update["rawOutput"].clone();
        }
        let meta = &update["_meta"];
        for name in ["terminal_output", "terminal_output_delta"] {
            self.terminal_output.push_str(text(&meta[name], "data"));
        }
        let parents = [
            text(&meta["jackfield"], "parentToolCallId"),
            text(&meta["claudeCode"], "parentToolUseId"),
        ];
        if self.parent_id.is_empty() {
            let parent = parents.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
            parent.clone_into(&mut self.parent_id);
        }
        if let Some(status) = parse_status(text(update, "status")) {
            self.status = status;
        }
        self.ended_at = self.status.has_ended().then(|| self.ended_at.unwrap_or(at));
    }

    /// Merges what the call is, without its progress: a permission request has a status of its own.
    pub(super) fn merge_description(&mut self, update: &Value) {
        let titles = [text(update, "title"), text(update, "name")];
        if let Some(title) = titles.into_iter().find(|it| !it.is_empty()) {
            title.clone_into(&mut self.title);
        }
        if !text(update, "kind").is_empty() {
            text(update, "kind").clone_into(&mut self.kind);
        }
        self.merge_input(&update["rawInput"]);
        let locations = list(update, "locations").iter();
        let locations: Vec<_> =
            locations.map(|it| (text(it, "path").to_owned(), it["line"].as_u64())).collect();
        if !locations.is_empty() {
            self.locations = locations;
        }
    }

    fn merge_input(&mut self, added: &Value) {
        match (&mut self.input, added) {
            (_, Value::Null) => {}
            (_, Value::String(added)) if added.is_empty() => {}
            (Value::Object(known), Value::Object(added)) => known.extend(added.clone()),
            (known, added) => *known = added.clone(),
        }
    }

    /// What the call has put out: the text of its content, else its raw output, else terminal output.
    pub(crate) fn output_text(&self) -> String {
        let texts = self.output.iter().filter_map(|it| match it {
            ToolOutput::Text(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        if !texts.is_empty() {
            return texts.join("\n");
        }
        let raw = raw_text(&self.raw_output);
        if !raw.is_empty() {
            return raw;
        }
        if !self.terminal_output.is_empty() {
            return self.terminal_output.clone();
        }
        let is_empty = match &self.raw_output {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            Value::Array(values) => values.is_empty(),
            _ => false,
        };
        if is_empty || !self.output.is_empty() {
            return String::new();
        }
        format!("{:#}", self.raw_output)
    }

    /// The command of the call, if its input has one.
    pub(crate) fn command(&self) -> Option<String> {
        let command = [&self.input["command"], &self.input["cmd"]];
        match command.into_iter().find(|it| !it.is_null())? {
            Value::String(command) => Some(command.clone()),
            Value::Array(arguments) => {
                let arguments = arguments.iter().map(Value::as_str);
                arguments.collect::<Option<Vec<_>>>().map(quote_argv)
            }
            _ => None,
        }
    }

    pub(crate) fn has_diffs(&self) -> bool {
        self.output.iter().any(|it| matches!(it, ToolOutput::Diff { .. }))
    }
}

fn parse_output(content: &Value) -> Option<ToolOutput> {
    let owned = |name: &str| text(content, name).to_owned();
    match text(content, "type") {
        "diff" => {
            let old = content["oldText"].as_str().map(str::to_owned);
            Some(ToolOutput::Diff { path: owned("path"), old, new: owned("newText") })
        }
        "content" if !matches!(content["content"]["type"].as_str(), Some("text") | None) => {
            Some(ToolOutput::Media(MessagePart::from_block(&content["content"])))
        }
        "terminal" => None,
        _ => Some(ToolOutput::Text(block_text(&content["content"]))),
    }
}

fn block_text(block: &Value) -> String {
    match block {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(block_text).collect(),
        other => text(other, "text").to_owned(),
    }
}

fn raw_text(raw: &Value) -> String {
    let direct = block_text(raw);
    if !direct.is_empty() {
        return direct;
    }
    let members = ["output", "stdout", "content", "result", "message"].map(|it| text(raw, it));
    members.into_iter().find(|it| !it.is_empty()).unwrap_or_default().to_owned()
}
