//! The items of a turn as they begin, stream and end; also those of sub-agents.

use super::voices::{BREAK, Voice, Voices};
use crate::codex::item::{self, Meaning};
use crate::codex::patch;
use crate::{Status, Tool, Turn};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Items {
    cwd: String,
    voices: Voices,
    /// Tool calls of this turn, as they were told last.
    tools: BTreeMap<String, Tool>,
    outputs: BTreeMap<String, Output>,
    /// Calls that outlived their turn. They were closed with it: nothing more is told of them.
    late: BTreeSet<String>,
    /// Threads of sub-agents, and the call that started each.
    crew: BTreeMap<String, String>,
}

/// What a running command has printed, and how much of it was told.
#[derive(Debug, Default)]
struct Output {
    text: String,
    told: usize,
}

/// Output up to this size is told whenever it grows.
const EAGER_BYTES_MAX: usize = 1024;

impl Items {
    pub(super) fn new(cwd: &str) -> Items {
        Items { cwd: cwd.to_owned(), ..Items::default() }
    }

    pub(super) fn begin(&mut self) {
        let open = self.tools.iter().filter(|(_, tool)| !tool.status.is_some_and(Status::is_final));
        self.late.extend(open.map(|(id, _)| id.clone()));
        self.tools.clear();
        self.outputs.clear();
        self.voices.clear();
    }

    /// A call as it was told last, but for its status.
    pub(super) fn told(&self, id: &str) -> Option<Tool> {
        let mut tool = self.tools.get(id)?.clone();
        tool.fields.remove("status");
        tool.status = None;
        Some(tool)
    }

    pub(super) fn tear(&mut self) {
        self.voices.tear();
    }

    /// `item/started` and `item/completed`.
    pub(super) fn on_item(&mut self, message: &Value, done: bool, turn: &mut Turn) {
        let item = &message["params"]["item"];
        let id = item["id"].as_str().unwrap_or_default();
        match item::read(item, done, &self.cwd) {
            Meaning::Text(text) if done => self.voices.whole(id, Voice::Text, &text, turn),
            Meaning::Thought(_) if done => self.on_thought(id, item, turn),
            Meaning::Tool(tool) => {
                self.enlist(id, item);
                self.on_tool(id, tool, message, turn);
            }
            Meaning::Plan(entries) => turn.plan(&entries),
            Meaning::Notice(text) => turn.notice(&text),
            Meaning::Unknown if done => turn.unmapped(message),
            // What they say is told by their deltas, what they are at their end.
            Meaning::Text(_) | Meaning::Thought(_) | Meaning::Unknown | Meaning::Echo => {}
        }
    }

    /// An item of a sub-agent's thread: its tools are told as such, its words are not the agent's.
    pub(super) fn on_foreign(
        &mut self,
        thread: &str,
        message: &Value,
        done: bool,
        turn: &mut Turn,
    ) {
        let item = &message["params"]["item"];
        let id = item["id"].as_str().unwrap_or_default();
        let parent = self.crew.get(thread).cloned();
        match item::read(item, done, &self.cwd) {
            Meaning::Tool(tool) if parent.is_some() || turn.knows_tool(id) => {
                self.enlist(id, item);
                let tool = match &parent {
                    Some(parent) => tool.parent(parent),
                    None => tool,
                };
                self.on_tool(id, tool, message, turn);
            }
            _ if done => turn.unmapped(message),
            _ => {}
        }
    }

    fn on_tool(&mut self, id: &str, mut tool: Tool, message: &Value, turn: &mut Turn) {
        if self.late.contains(id) || !turn.is_running() {
            return turn.unmapped(message);
        }
        if let Some(output) = self.outputs.get(id)
            && !tool.fields.contains_key("content")
        {
            // Not every version repeats at the end what it streamed.
            tool = tool.text(&output.text);
        }
        let told = self.tools.insert(id.to_owned(), tool.clone());
        turn.tool(id, item::news(&told.unwrap_or_default(), tool));
    }

    /// A sub-agent's thread belongs to the call that named it first.
    fn enlist(&mut self, id: &str, item: &Value) {
        for thread in item["receiverThreadIds"].as_array().into_iter().flatten() {
            if let Some(thread) = thread.as_str() {
                self.crew.entry(thread.to_owned()).or_insert_with(|| id.to_owned());
            }
        }
    }

    fn on_thought(&mut self, id: &str, item: &Value, turn: &mut Turn) {
        let all = |key: &str| {
            let parts = item[key].as_array().into_iter().flatten();
            parts.filter_map(Value::as_str).collect::<Vec<_>>().join(BREAK)
        };
        let (summary, thought) = (all("summary"), all("content"));
        // Where there is a summary, the thoughts behind it are told only if they were streamed.
        if summary.is_empty() || self.voices.has(id, Voice::Thought) {
            self.voices.whole(id, Voice::Thought, &thought, turn);
        }
        self.voices.whole(id, Voice::Summary, &summary, turn);
    }

    pub(super) fn on_delta(&mut self, voice: Voice, params: &Value, turn: &mut Turn) {
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        let index = match voice {
            Voice::Text => &Value::Null,
            Voice::Summary => &params["summaryIndex"],
            Voice::Thought => &params["contentIndex"],
        };
        let part = index.as_u64().unwrap_or_default();
        self.voices.piece(text("itemId"), voice, part, text("delta"), turn);
    }

    /// A command prints. Content is told as a whole each time, so it is told when it has grown by a
    /// quarter: that costs a few times its size, not its square. All of it comes at the end.
    pub(super) fn on_output(&mut self, message: &Value, turn: &mut Turn) {
        let params = &message["params"];
        let id = params["itemId"].as_str().unwrap_or_default();
        let Some(tool) = self.open_tool(id) else { return turn.unmapped(message) };
        let mut tool = tool.clone();
        let output = self.outputs.entry(id.to_owned()).or_default();
        output.text.push_str(params["delta"].as_str().unwrap_or_default());
        let size = output.text.len();
        let enough = size <= EAGER_BYTES_MAX || output.told + output.told / 4 <= size;
        if enough && output.told < size {
            output.told = size;
            let update = Tool::new().text(&output.text);
            tool.fields.extend(update.fields.clone());
            self.tools.insert(id.to_owned(), tool);
            turn.tool(id, update);
        }
    }

    pub(super) fn on_patch(&mut self, message: &Value, turn: &mut Turn) {
        let tool = patch::tool(&message["params"]["changes"], &self.cwd);
        self.on_news(message, tool, turn);
    }

    pub(super) fn on_progress(&mut self, message: &Value, turn: &mut Turn) {
        let text = message["params"]["message"].as_str().unwrap_or_default();
        self.on_news(message, Tool::new().text(text), turn);
    }

    /// Something new about a call that runs.
    fn on_news(&mut self, message: &Value, news: Tool, turn: &mut Turn) {
        let id = message["params"]["itemId"].as_str().unwrap_or_default();
        let Some(tool) = self.open_tool(id) else { return turn.unmapped(message) };
        let news = item::news(tool, news);
        let mut tool = tool.clone();
        tool.fields.extend(news.fields.clone());
        self.tools.insert(id.to_owned(), tool);
        if !news.fields.is_empty() {
            turn.tool(id, news);
        }
    }

    fn open_tool(&self, id: &str) -> Option<&Tool> {
        self.tools.get(id).filter(|tool| !tool.status.is_some_and(Status::is_final))
    }

    /// The last words of a turn, in case they were told nowhere else.
    pub(super) fn on_summary(&mut self, items: &Value, turn: &mut Turn) {
        for item in items.as_array().into_iter().flatten() {
            if item["type"] == "agentMessage" {
                let message = json!({"params": {"item": item}});
                self.on_item(&message, true, turn);
            }
        }
    }
}
