//! The state of one tool call, merged from the `tool_call`, its updates and its permission request. Every
//! field may be missing at first and arrive later.

use super::{
    content::content_text,
    tool_name::{find_tool_name, is_path_argument},
};
use serde_json::{Map, Value, json};

/// A tool call as it is reported when it starts.
#[derive(Debug, Clone)]
pub(crate) struct ToolCallStart {
    /// The agent's id of the call.
    pub(crate) id: String,
    /// The tool name, the same for every agent.
    pub(crate) name: String,
    /// The agent's title; empty if it gave none.
    pub(crate) title: String,
    pub(crate) kind: Option<String>,
    /// The arguments. Never empty if anything is known.
    pub(crate) input: Map<String, Value>,
    /// The id of the call whose sub-agent makes this one.
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStage {
    /// Named in an update or a permission request, but not known to be made.
    Mentioned,
    /// Made, and not reported yet because its arguments may still arrive.
    Announced,
    Started,
    Ended,
}

#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) stage: CallStage,
    /// The position among the calls of the turn.
    pub(super) number: usize,
    fields: Map<String, Value>,
    /// The name it was reported with: a permission request may use another title.
    name: Option<String>,
    /// Arguments that arrive as text, longer with each update (Kimi).
    streamed_input: Option<String>,
    /// Terminal output that is sent outside of the content (Codex, Pi).
    terminal_output: String,
}

/// Longer results are truncated for display; the log has them in full.
const RESULT_CHARS_MAX: usize = 8000;
const TRUNCATION_MARK: &str = "…[truncated]";

impl ToolCall {
    pub(super) fn new(number: usize) -> ToolCall {
        ToolCall {
            stage: CallStage::Mentioned,
            number,
            fields: Map::new(),
            name: None,
            streamed_input: None,
            terminal_output: String::new(),
        }
    }

    /// Merges a `tool_call` or `tool_call_update`.
    pub(super) fn merge_update(&mut self, update: &Value) {
        for field in ["content", "status", "rawOutput", "_meta"] {
            self.set_field(field, &update[field]);
        }
        self.merge_description(update);
        let meta = &update["_meta"];
        for member in ["terminal_output", "terminal_output_delta"] {
            self.terminal_output.push_str(meta[member]["data"].as_str().unwrap_or_default());
        }
        let text = joined_texts(&update["content"]);
        if self.input().is_none() && text.starts_with('{') {
            self.streamed_input = Some(text);
        }
    }

    /// Merges what the call is, without its progress: a permission request has its own status and
    /// content.
    pub(super) fn merge_description(&mut self, call: &Value) {
        for field in ["name", "title", "kind", "locations"] {
            self.set_field(field, &call[field]);
        }
        match (self.fields.get_mut("rawInput"), call["rawInput"].as_object()) {
            (Some(Value::Object(known)), Some(new)) => known.extend(new.clone()),
            _ => self.set_field("rawInput", &call["rawInput"]),
        }
    }

    fn set_field(&mut self, field: &str, value: &Value) {
        let is_empty = value.is_null() || value.as_str() == Some("");
        if !is_empty {
            self.fields.insert(field.to_owned(), value.clone());
        }
    }

    fn text_field(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    pub(super) fn is_described(&self) -> bool {
        ["name", "title", "kind", "rawInput"].iter().any(|it| self.fields.contains_key(*it))
    }

    /// Whether the arguments are complete, or will not arrive any more.
    pub(super) fn is_ready(&self) -> bool {
        // Opencode sends the directory before the model has produced the command.
        let has_input = self.input().is_some_and(|it| it.keys().any(|key| key != "cwd"));
        let is_preparing =
            self.text_field("status") == Some("pending") || self.streamed_input.is_some();
        has_input || !is_preparing || self.has_ended()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.text_field("status").is_some_and(|it| is_success(it) || is_failure(it))
    }

    fn input(&self) -> Option<Map<String, Value>> {
        match self.fields.get("rawInput")? {
            Value::Object(input) => (!input.is_empty()).then(|| input.clone()),
            Value::Array(input) if input.is_empty() => None,
            other => Some([("input".to_owned(), other.clone())].into_iter().collect()),
        }
    }

    pub(super) fn parent_id(&self) -> Option<String> {
        let meta = self.fields.get("_meta")?;
        let parent = meta["jackfield"]["parentToolCallId"].as_str();
        parent.or(meta["claudeCode"]["parentToolUseId"].as_str()).map(str::to_owned)
    }

    pub(super) fn start(&mut self, id: &str) -> ToolCallStart {
        let start = self.describe(id);
        (self.stage, self.name) = (CallStage::Started, Some(start.name.clone()));
        start
    }

    /// The call as it is known now.
    pub(super) fn describe(&self, id: &str) -> ToolCallStart {
        let (kind, title) = (self.text_field("kind"), self.text_field("title").unwrap_or_default());
        let streamed = || serde_json::from_str(self.streamed_input.as_deref()?).ok();
        let mut input = self.input().or_else(streamed).unwrap_or_default();
        if matches!(kind, Some("read" | "edit"))
            && let Some(path) = self.path()
            && !input.keys().any(|it| is_path_argument(it))
        {
            input.insert("file_path".to_owned(), json!(path));
        }
        if input.is_empty() && !title.is_empty() {
            input.insert("title".to_owned(), json!(title));
        }
        let name = || find_tool_name(kind, self.text_field("name"), title, &input);
        let name = self.name.clone().unwrap_or_else(name);
        let (id, title, kind) = (id.to_owned(), title.to_owned(), kind.map(str::to_owned));
        ToolCallStart { id, name, title, kind, input, parent: self.parent_id() }
    }

    fn path(&self) -> Option<&str> {
        let located = self.fields.get("locations").and_then(|it| it[0]["path"].as_str());
        let parts = self.fields.get("content").and_then(Value::as_array).into_iter().flatten();
        located.or_else(|| parts.into_iter().find_map(|it| it["path"].as_str()))
    }

    /// The result, and whether it is a failure.
    pub(super) fn result(&self) -> (String, bool) {
        let is_error = self.text_field("status").is_some_and(is_failure);
        (truncate(self.output()), is_error)
    }

    /// The result of a call that the agent never ended.
    pub(super) fn unfinished_result(&self) -> String {
        let output = self.output();
        let gap = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        truncate(format!("{output}{gap}[no result: the turn ended first]"))
    }

    /// The agent's raw text, else the text of its content, else anything else it has sent.
    fn output(&self) -> String {
        let raw = self.fields.get("rawOutput").unwrap_or(&Value::Null);
        let content = self.fields.get("content").unwrap_or(&Value::Null);
        let texts = || ["output", "stdout", "content", "result", "message"].map(|it| &raw[it]);
        let raw_json = || match raw {
            Value::Null => String::new(),
            Value::Object(it) if it.is_empty() => String::new(),
            other => other.to_string(),
        };
        let sources: [&dyn Fn() -> String; 6] = [
            &|| content_text(raw).unwrap_or_default(),
            &|| joined_texts(content),
            &|| texts().iter().find_map(|it| it.as_str()).unwrap_or_default().to_owned(),
            &|| self.terminal_output.clone(),
            &|| joined_diffs(content),
            &raw_json,
        ];
        sources.iter().map(|it| it()).find(|it| !it.is_empty()).unwrap_or_default()
    }

    /// Marks the call as ended and frees what is no longer needed.
    pub(super) fn end(&mut self) {
        let meta = self.fields.remove("_meta");
        self.fields = meta.into_iter().map(|it| ("_meta".to_owned(), it)).collect();
        (self.streamed_input, self.terminal_output) = (None, String::new());
        self.stage = CallStage::Ended;
    }
}

fn is_success(status: &str) -> bool {
    matches!(status, "completed" | "complete" | "succeeded" | "success")
}

fn is_failure(status: &str) -> bool {
    matches!(status, "failed" | "failure" | "error" | "cancelled" | "canceled" | "rejected")
}

fn joined_texts(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let texts: Vec<String> = parts.filter_map(|it| content_text(&it["content"])).collect();
    texts.join("\n")
}

fn joined_diffs(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let diff = |it: &Value| Some(format!("{}:\n{}", it["path"].as_str()?, it["newText"].as_str()?));
    parts.filter_map(diff).collect::<Vec<_>>().join("\n")
}

fn truncate(text: String) -> String {
    match text.char_indices().nth(RESULT_CHARS_MAX) {
        Some((end, _)) => format!("{}{TRUNCATION_MARK}", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(updates: &[Value]) -> ToolCall {
        let mut call = ToolCall::new(0);
        for update in updates {
            call.merge_update(update);
        }
        call
    }

    fn text(text: &str) -> Value {
        json!([{ "type": "content", "content": { "type": "text", "text": text } }])
    }

    #[test]
    fn result_prefers_text_over_structured_output() {
        let both = call(&[json!({ "rawOutput": { "exitCode": 0 }, "content": text("hello") })]);
        assert_eq!(both.result().0, "hello");
        let raw = call(&[json!({ "rawOutput": "raw", "content": text("content") })]);
        assert_eq!(raw.result().0, "raw");
        let only = call(&[json!({ "rawOutput": { "ok": true } })]);
        assert_eq!(only.result().0, r#"{"ok":true}"#);
        let diff = json!([{ "type": "diff", "path": "/a", "newText": "b\n" }]);
        assert_eq!(call(&[json!({ "content": diff })]).result().0, "/a:\nb\n");
        let printed = |it: &str| json!({ "_meta": { "terminal_output": { "data": it } } });
        assert_eq!(call(&[printed("a"), printed("b")]).result().0, "ab");
    }

    #[test]
    fn long_result_is_truncated_between_characters_with_a_mark() {
        let long = call(&[json!({ "rawOutput": "ä".repeat(RESULT_CHARS_MAX + 1) })]).result().0;
        assert_eq!(long, format!("{}{TRUNCATION_MARK}", "ä".repeat(RESULT_CHARS_MAX)));
        let whole = "ä".repeat(RESULT_CHARS_MAX);
        assert_eq!(call(&[json!({ "rawOutput": whole })]).result().0, whole);
    }

    #[test]
    fn call_waits_for_arguments_that_arrive_as_text() {
        let mut kimi = call(&[json!({ "title": "Bash", "kind": "execute", "status": "pending" })]);
        assert!(!kimi.is_ready());
        kimi.merge_update(
            &json!({ "status": "in_progress", "content": text("{\"command\": \"l") }),
        );
        assert!(!kimi.is_ready());
        kimi.merge_update(&json!({ "content": text("{\"command\": \"ls\"}") }));
        assert_eq!(Value::Object(kimi.describe("1").input), json!({ "command": "ls" }));
        kimi.merge_update(&json!({ "rawInput": { "command": "ls -l" } }));
        assert!(kimi.is_ready());
        assert_eq!(Value::Object(kimi.describe("1").input), json!({ "command": "ls -l" }));
    }

    #[test]
    fn missing_arguments_are_replaced_by_the_title_or_the_path() {
        let untitled = call(&[json!({ "title": "Allow?", "kind": "other" })]).describe("1");
        assert_eq!(Value::Object(untitled.input), json!({ "title": "Allow?" }));
        let located = json!({ "kind": "edit", "locations": [{ "path": "/a" }] });
        let edit = call(std::slice::from_ref(&located)).describe("1");
        assert_eq!(Value::Object(edit.input), json!({ "file_path": "/a" }));
        let known = json!({ "rawInput": { "path": "a" } });
        let edit = call(&[located, known]).describe("1");
        assert_eq!(Value::Object(edit.input), json!({ "path": "a" }));
        let list = call(&[json!({ "rawInput": [1] })]).describe("1");
        assert_eq!(Value::Object(list.input), json!({ "input": [1] }));
    }
}
