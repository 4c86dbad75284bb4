//! One tool call, put together from what is said of it: the first message, updates, the ask for its
//! permission. Every field may be missing, and come later.

use super::{content::text_of, tool};
use serde_json::{Map, Value, json};

/// A call as it is told when it begins.
#[derive(Debug, Clone)]
pub(crate) struct Began {
    /// The agent's own id for it.
    pub(crate) id: String,
    /// One of few words for what it does, whoever the agent is.
    pub(crate) name: String,
    /// The agent's words for it; empty if it had none.
    pub(crate) title: String,
    pub(crate) kind: Option<String>,
    /// What it was called with. Never empty if anything is known.
    pub(crate) input: Map<String, Value>,
    /// The call whose sub-agent makes this one.
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Somebody named it; that is not yet to make it.
    Mentioned,
    /// Made, and not told: what it is called with may still come.
    Announced,
    Begun,
    Over,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) stage: Stage,
    /// In which order they came.
    pub(super) number: usize,
    told: Map<String, Value>,
    /// What it was called when it began: an ask may show it under another title.
    name: Option<String>,
    /// Arguments that come as text, a longer piece each time (Kimi).
    streamed: Option<String>,
    /// What a terminal printed, where it is told beside the content (Codex, Pi).
    printed: String,
}

/// Longer results are cut: they are for people, and the log has them whole.
const RESULT_CHARS_MAX: usize = 8000;
const CUT: &str = "…[truncated]";

impl Call {
    pub(super) fn new(number: usize) -> Call {
        Call {
            stage: Stage::Mentioned,
            number,
            told: Map::new(),
            name: None,
            streamed: None,
            printed: String::new(),
        }
    }

    /// Takes in what an update says.
    pub(super) fn merge(&mut self, update: &Value) {
        for field in ["content", "status", "rawOutput", "_meta"] {
            self.set(field, &update[field]);
        }
        self.describe(update);
        let meta = &update["_meta"];
        for place in ["terminal_output", "terminal_output_delta"] {
            self.printed.push_str(meta[place]["data"].as_str().unwrap_or_default());
        }
        let text = text_of_content(&update["content"]);
        if self.input().is_none() && text.starts_with('{') {
            self.streamed = Some(text);
        }
    }

    /// Takes in what the call is, and not how it goes: an ask shows a state and a text of its own.
    pub(super) fn describe(&mut self, call: &Value) {
        for field in ["name", "title", "kind", "locations"] {
            self.set(field, &call[field]);
        }
        match (self.told.get_mut("rawInput"), call["rawInput"].as_object()) {
            (Some(Value::Object(known)), Some(new)) => known.extend(new.clone()),
            _ => self.set("rawInput", &call["rawInput"]),
        }
    }

    fn set(&mut self, field: &str, value: &Value) {
        let empty = value.is_null() || value.as_str() == Some("");
        if !empty {
            self.told.insert(field.to_owned(), value.clone());
        }
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.told.get(field).and_then(Value::as_str)
    }

    pub(super) fn is_described(&self) -> bool {
        ["name", "title", "kind", "rawInput"].iter().any(|it| self.told.contains_key(*it))
    }

    /// What it is called with will not come any more, or is here.
    pub(super) fn is_ready(&self) -> bool {
        // Opencode knows the directory before the model has said what to run there.
        let told = self.input().is_some_and(|it| it.keys().any(|key| key != "cwd"));
        let preparing = self.text("status") == Some("pending") || self.streamed.is_some();
        told || !preparing || self.has_ended()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.text("status").is_some_and(|it| is_success(it) || is_failure(it))
    }

    fn input(&self) -> Option<Map<String, Value>> {
        match self.told.get("rawInput")? {
            Value::Object(input) => (!input.is_empty()).then(|| input.clone()),
            Value::Array(input) if input.is_empty() => None,
            other => Some([("input".to_owned(), other.clone())].into_iter().collect()),
        }
    }

    pub(super) fn parent(&self) -> Option<String> {
        let meta = self.told.get("_meta")?;
        let ours = meta["jackfield"]["parentToolCallId"].as_str();
        ours.or(meta["claudeCode"]["parentToolUseId"].as_str()).map(str::to_owned)
    }

    pub(super) fn begin(&mut self, id: &str) -> Began {
        let began = self.shown(id);
        (self.stage, self.name) = (Stage::Begun, Some(began.name.clone()));
        began
    }

    /// What is known of it now.
    pub(super) fn shown(&self, id: &str) -> Began {
        let (kind, title) = (self.text("kind"), self.text("title").unwrap_or_default());
        let streamed = || serde_json::from_str(self.streamed.as_deref()?).ok();
        let mut input = self.input().or_else(streamed).unwrap_or_default();
        if matches!(kind, Some("read" | "edit"))
            && let Some(path) = self.path()
            && !input.keys().any(|it| tool::is_path(it))
        {
            input.insert("file_path".to_owned(), json!(path));
        }
        if input.is_empty() && !title.is_empty() {
            input.insert("title".to_owned(), json!(title));
        }
        let name = || tool::name(kind, self.text("name"), title, &input);
        let name = self.name.clone().unwrap_or_else(name);
        let (id, title, kind) = (id.to_owned(), title.to_owned(), kind.map(str::to_owned));
        Began { id, name, title, kind, input, parent: self.parent() }
    }

    fn path(&self) -> Option<&str> {
        let located = self.told.get("locations").and_then(|it| it[0]["path"].as_str());
        let parts = self.told.get("content").and_then(Value::as_array).into_iter().flatten();
        located.or_else(|| parts.into_iter().find_map(|it| it["path"].as_str()))
    }

    /// What came of it, and whether that is a failure.
    pub(super) fn result(&self) -> (String, bool) {
        let is_error = self.text("status").is_some_and(is_failure);
        (cut(self.output()), is_error)
    }

    /// What is known of a result that the agent never told.
    pub(super) fn unfinished(&self) -> String {
        let output = self.output();
        let gap = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        cut(format!("{output}{gap}[no result: the turn was over first]"))
    }

    /// The agent's own text, then the parts it shows, then whatever else it has said.
    fn output(&self) -> String {
        let raw = self.told.get("rawOutput").unwrap_or(&Value::Null);
        let content = self.told.get("content").unwrap_or(&Value::Null);
        let words = || ["output", "stdout", "content", "result", "message"].map(|it| &raw[it]);
        let structure = || match raw {
            Value::Null => String::new(),
            Value::Object(it) if it.is_empty() => String::new(),
            other => other.to_string(),
        };
        let ways: [&dyn Fn() -> String; 6] = [
            &|| text_of(raw).unwrap_or_default(),
            &|| text_of_content(content),
            &|| words().iter().find_map(|it| it.as_str()).unwrap_or_default().to_owned(),
            &|| self.printed.clone(),
            &|| diffs_of(content),
            &structure,
        ];
        ways.iter().map(|it| it()).find(|it| !it.is_empty()).unwrap_or_default()
    }

    /// It is over: nothing of it is needed but that it was.
    pub(super) fn forget(&mut self) {
        let parent = self.told.remove("_meta");
        self.told = parent.into_iter().map(|it| ("_meta".to_owned(), it)).collect();
        (self.streamed, self.printed) = (None, String::new());
        self.stage = Stage::Over;
    }
}

fn is_success(status: &str) -> bool {
    matches!(status, "completed" | "complete" | "succeeded" | "success")
}

fn is_failure(status: &str) -> bool {
    matches!(status, "failed" | "failure" | "error" | "cancelled" | "canceled" | "rejected")
}

fn text_of_content(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let texts: Vec<String> = parts.filter_map(|it| text_of(&it["content"])).collect();
    texts.join("\n")
}

fn diffs_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    let diff = |it: &Value| Some(format!("{}:\n{}", it["path"].as_str()?, it["newText"].as_str()?));
    parts.filter_map(diff).collect::<Vec<_>>().join("\n")
}

fn cut(text: String) -> String {
    match text.char_indices().nth(RESULT_CHARS_MAX) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(updates: &[Value]) -> Call {
        let mut call = Call::new(0);
        for update in updates {
            call.merge(update);
        }
        call
    }

    fn text(text: &str) -> Value {
        json!([{ "type": "content", "content": { "type": "text", "text": text } }])
    }

    #[test]
    fn the_result_is_the_agents_text_before_its_structure() {
        let shown = call(&[json!({ "rawOutput": { "exitCode": 0 }, "content": text("hello") })]);
        assert_eq!(shown.result().0, "hello");
        let said = call(&[json!({ "rawOutput": "said", "content": text("shown") })]);
        assert_eq!(said.result().0, "said");
        let only = call(&[json!({ "rawOutput": { "ok": true } })]);
        assert_eq!(only.result().0, r#"{"ok":true}"#);
        let diff = json!([{ "type": "diff", "path": "/a", "newText": "b\n" }]);
        assert_eq!(call(&[json!({ "content": diff })]).result().0, "/a:\nb\n");
        let printed = |it: &str| json!({ "_meta": { "terminal_output": { "data": it } } });
        assert_eq!(call(&[printed("a"), printed("b")]).result().0, "ab");
    }

    #[test]
    fn a_long_result_is_cut_between_characters_and_says_so() {
        let long = call(&[json!({ "rawOutput": "ä".repeat(RESULT_CHARS_MAX + 1) })]).result().0;
        assert_eq!(long, format!("{}{CUT}", "ä".repeat(RESULT_CHARS_MAX)));
        let whole = "ä".repeat(RESULT_CHARS_MAX);
        assert_eq!(call(&[json!({ "rawOutput": whole })]).result().0, whole);
    }

    #[test]
    fn arguments_that_come_as_text_are_waited_for() {
        let mut kimi = call(&[json!({ "title": "Bash", "kind": "execute", "status": "pending" })]);
        assert!(!kimi.is_ready());
        kimi.merge(&json!({ "status": "in_progress", "content": text("{\"command\": \"l") }));
        assert!(!kimi.is_ready());
        kimi.merge(&json!({ "content": text("{\"command\": \"ls\"}") }));
        assert_eq!(Value::Object(kimi.shown("1").input), json!({ "command": "ls" }));
        kimi.merge(&json!({ "rawInput": { "command": "ls -l" } }));
        assert!(kimi.is_ready());
        assert_eq!(Value::Object(kimi.shown("1").input), json!({ "command": "ls -l" }));
    }

    #[test]
    fn a_call_without_arguments_has_its_title_and_an_edit_its_path() {
        let told = call(&[json!({ "title": "Allow?", "kind": "other" })]).shown("1");
        assert_eq!(Value::Object(told.input), json!({ "title": "Allow?" }));
        let located = json!({ "kind": "edit", "locations": [{ "path": "/a" }] });
        let edit = call(std::slice::from_ref(&located)).shown("1");
        assert_eq!(Value::Object(edit.input), json!({ "file_path": "/a" }));
        let known = json!({ "rawInput": { "path": "a" } });
        let edit = call(&[located, known]).shown("1");
        assert_eq!(Value::Object(edit.input), json!({ "path": "a" }));
        let list = call(&[json!({ "rawInput": [1] })]).shown("1");
        assert_eq!(Value::Object(list.input), json!({ "input": [1] }));
    }
}
