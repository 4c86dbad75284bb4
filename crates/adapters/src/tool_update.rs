//! Incremental information about a tool call: any field may be missing and be reported later.

use serde_json::{Map, Value, json};

/// ACP's tool kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
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
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ToolStatus {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, ToolStatus::Completed | ToolStatus::Failed)
    }

    fn as_str(self) -> &'static str {
        match self {
            ToolStatus::Pending => "pending",
            ToolStatus::InProgress => "in_progress",
            ToolStatus::Completed => "completed",
            ToolStatus::Failed => "failed",
        }
    }
}

impl ToolKind {
    fn as_str(self) -> &'static str {
        match self {
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Move => "move",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Think => "think",
            ToolKind::Fetch => "fetch",
            ToolKind::SwitchMode => "switch_mode",
            ToolKind::Other => "other",
        }
    }
}

/// New information about a tool call. `AdapterTurn::update_tool` sends the first one as `tool_call` and
/// every later one as `tool_call_update`.
#[derive(Debug, Clone, Default)]
pub struct ToolUpdate {
    pub(crate) fields: Map<String, Value>,
    pub(crate) status: Option<ToolStatus>,
}

impl ToolUpdate {
    pub fn new() -> ToolUpdate {
        ToolUpdate::default()
    }

    /// Human-readable: `Run ls`, `Edit src/main.rs`.
    #[must_use]
    pub fn with_title(self, title: impl Into<String>) -> ToolUpdate {
        self.with_field("title", Value::String(title.into()))
    }

    #[must_use]
    pub fn with_kind(self, kind: ToolKind) -> ToolUpdate {
        self.with_field("kind", json!(kind.as_str()))
    }

    #[must_use]
    pub fn with_status(mut self, status: ToolStatus) -> ToolUpdate {
        self.status = Some(status);
        self.with_field("status", json!(status.as_str()))
    }

    /// The tool's input, as the program reports it.
    #[must_use]
    pub fn with_input(self, input: Value) -> ToolUpdate {
        self.with_field("rawInput", input)
    }

    /// The tool's output, as the program reports it.
    #[must_use]
    pub fn with_output(self, output: Value) -> ToolUpdate {
        self.with_field("rawOutput", output)
    }

    /// Text to show. The content of an update replaces earlier content, so pass all of it.
    #[must_use]
    pub fn with_text(self, text: &str) -> ToolUpdate {
        self.with_content(json!({"type": "content", "content": {"type": "text", "text": text}}))
    }

    /// A change of a file; a new file has no old text.
    #[must_use]
    pub fn with_diff(self, path: &str, old: Option<&str>, new: &str) -> ToolUpdate {
        let mut diff = json!({"type": "diff", "path": path, "newText": new});
        if let Some(old) = old {
            diff["oldText"] = json!(old);
        }
        self.with_content(diff)
    }

    /// A file that the tool reads or changes.
    #[must_use]
    pub fn with_location(mut self, path: &str) -> ToolUpdate {
        self.list_mut("locations").push(json!({"path": path}));
        self
    }

    /// For a tool call of a sub-agent: the id of the call that started the sub-agent.
    #[must_use]
    pub fn with_parent(self, id: &str) -> ToolUpdate {
        self.with_field("_meta", json!({"jackfield": {"parentToolCallId": id}}))
    }

    fn with_content(mut self, item: Value) -> ToolUpdate {
        self.list_mut("content").push(item);
        self
    }

    fn with_field(mut self, key: &str, value: Value) -> ToolUpdate {
        self.fields.insert(key.to_owned(), value);
        self
    }

    fn list_mut(&mut self, key: &str) -> &mut Vec<Value> {
        let list = self.fields.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut().expect("only lists are stored under these keys")
    }
}
