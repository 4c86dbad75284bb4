//! A tool call as far as it is known: every field may be missing and come later.

use serde_json::{Map, Value, json};

/// ACP's kinds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl Status {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed)
    }

    fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Failed => "failed",
        }
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Edit => "edit",
            Kind::Delete => "delete",
            Kind::Move => "move",
            Kind::Search => "search",
            Kind::Execute => "execute",
            Kind::Think => "think",
            Kind::Fetch => "fetch",
            Kind::SwitchMode => "switch_mode",
            Kind::Other => "other",
        }
    }
}

/// What is new about a tool call. `Turn::tool` makes a `tool_call` of the first and a
/// `tool_call_update` of every later one.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    pub(crate) fields: Map<String, Value>,
    pub(crate) status: Option<Status>,
}

impl Tool {
    pub fn new() -> Tool {
        Tool::default()
    }

    /// For people: `Run ls`, `Edit src/main.rs`.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Tool {
        self.with("title", Value::String(title.into()))
    }

    #[must_use]
    pub fn kind(self, kind: Kind) -> Tool {
        self.with("kind", json!(kind.word()))
    }

    #[must_use]
    pub fn status(mut self, status: Status) -> Tool {
        self.status = Some(status);
        self.with("status", json!(status.word()))
    }

    /// What the tool was called with, as the program spells it.
    #[must_use]
    pub fn input(self, input: Value) -> Tool {
        self.with("rawInput", input)
    }

    /// What the tool answered, as the program spells it.
    #[must_use]
    pub fn output(self, output: Value) -> Tool {
        self.with("rawOutput", output)
    }

    /// Text to show. Content of an update replaces what was there: give all of it.
    #[must_use]
    pub fn text(self, text: &str) -> Tool {
        self.content(json!({"type": "content", "content": {"type": "text", "text": text}}))
    }

    /// A file that changes; no old text for a new file.
    #[must_use]
    pub fn diff(self, path: &str, old: Option<&str>, new: &str) -> Tool {
        let mut diff = json!({"type": "diff", "path": path, "newText": new});
        if let Some(old) = old {
            diff["oldText"] = json!(old);
        }
        self.content(diff)
    }

    /// A file that the tool touches.
    #[must_use]
    pub fn location(mut self, path: &str) -> Tool {
        self.list("locations").push(json!({"path": path}));
        self
    }

    /// The call of a sub-agent's tool: the call that started the sub-agent.
    #[must_use]
    pub fn parent(self, id: &str) -> Tool {
        self.with("_meta", json!({"jackfield": {"parentToolCallId": id}}))
    }

    fn content(mut self, item: Value) -> Tool {
        self.list("content").push(item);
        self
    }

    fn with(mut self, key: &str, value: Value) -> Tool {
        self.fields.insert(key.to_owned(), value);
        self
    }

    fn list(&mut self, key: &str) -> &mut Vec<Value> {
        let list = self.fields.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut().expect("only lists are kept under these keys")
    }
}
