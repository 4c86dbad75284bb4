//! Tracks the items of a turn as they start, stream and end, including those of sub-agents.

use super::streamed_messages::{DeltaKind, PART_SEPARATOR, StreamedMessages};
use crate::codex::file_change;
use crate::codex::item::{self, ItemContent, ItemPhase};
use crate::{AdapterTurn, ToolStatus, ToolUpdate};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct ItemTracker {
    cwd: String,
    messages: StreamedMessages,
    /// Tool calls of this turn, as they were sent last.
    tools: BTreeMap<String, ToolUpdate>,
    outputs: BTreeMap<String, StreamedOutput>,
    /// Calls that outlived their turn. They were closed with it, so they are not updated any more.
    closed_calls: BTreeSet<String>,
    /// Threads of sub-agents, and the call that started each.
    sub_agents: BTreeMap<String, String>,
}

/// The output of a running command, and how much of it was sent.
#[derive(Debug, Default)]
struct StreamedOutput {
    text: String,
    sent_len: usize,
}

/// Output up to this size is sent whenever it grows.
const EAGER_BYTES_MAX: usize = 1024;

impl ItemTracker {
    pub(super) fn new(cwd: &str) -> ItemTracker {
        ItemTracker { cwd: cwd.to_owned(), ..ItemTracker::default() }
    }

    pub(super) fn begin_turn(&mut self) {
        let open =
            self.tools.iter().filter(|(_, tool)| !tool.status.is_some_and(ToolStatus::is_final));
        self.closed_calls.extend(open.map(|(id, _)| id.clone()));
        self.tools.clear();
        self.outputs.clear();
        self.messages.clear();
    }

    /// A call as it was sent last, without its status.
    pub(super) fn known_call(&self, id: &str) -> Option<ToolUpdate> {
        let mut tool = self.tools.get(id)?.clone();
        tool.fields.remove("status");
        tool.status = None;
        Some(tool)
    }

    pub(super) fn restart_incomplete(&mut self) {
        self.messages.restart_incomplete();
    }

    /// `item/started` and `item/completed`.
    pub(super) fn on_item(&mut self, message: &Value, phase: ItemPhase, turn: &mut AdapterTurn) {
        let item = &message["params"]["item"];
        let id = item["id"].as_str().unwrap_or_default();
        match item::parse_item(item, phase, &self.cwd) {
            ItemContent::Text(text) if phase == ItemPhase::Completed => {
                self.messages.push_full(id, DeltaKind::Text, &text, turn);
            }
            ItemContent::Thought(_) if phase == ItemPhase::Completed => {
                self.on_thought(id, item, turn);
            }
            ItemContent::ToolCall(tool) => {
                self.register_sub_agents(id, item);
                self.on_tool(id, tool, message, turn);
            }
            ItemContent::Plan(entries) => turn.send_plan(&entries),
            ItemContent::Notice(text) => turn.send_notice(&text),
            ItemContent::Unknown if phase == ItemPhase::Completed => turn.report_unmapped(message),
            // Their text is sent by deltas, and their content at the end.
            ItemContent::Text(_)
            | ItemContent::Thought(_)
            | ItemContent::Unknown
            | ItemContent::UserMessage => {}
        }
    }

    /// An item of a sub-agent's thread. Its tool calls are nested; its text is not sent as text of
    /// the agent.
    pub(super) fn on_sub_agent_item(
        &mut self,
        thread: &str,
        message: &Value,
        phase: ItemPhase,
        turn: &mut AdapterTurn,
    ) {
        let item = &message["params"]["item"];
        let id = item["id"].as_str().unwrap_or_default();
        let parent = self.sub_agents.get(thread).cloned();
        match item::parse_item(item, phase, &self.cwd) {
            ItemContent::ToolCall(tool) if parent.is_some() || turn.has_tool(id) => {
                self.register_sub_agents(id, item);
                let tool = match &parent {
                    Some(parent) => tool.with_parent(parent),
                    None => tool,
                };
                self.on_tool(id, tool, message, turn);
            }
            _ if phase == ItemPhase::Completed => turn.report_unmapped(message),
            _ => {}
        }
    }

    fn on_tool(&mut self, id: &str, mut tool: ToolUpdate, message: &Value, turn: &mut AdapterTurn) {
        if self.closed_calls.contains(id) || !turn.is_running() {
            return turn.report_unmapped(message);
        }
        if let Some(output) = self.outputs.get(id)
            && !tool.fields.contains_key("content")
        {
            // Not every version repeats the streamed output at the end.
            tool = tool.with_text(&output.text);
        }
        let known = self.tools.insert(id.to_owned(), tool.clone()).unwrap_or_default();
        turn.update_tool(id, item::changed_fields(&known, tool));
    }

    /// Registers sub-agents. A thread belongs to the first call that names it.
    fn register_sub_agents(&mut self, id: &str, item: &Value) {
        for thread in item["receiverThreadIds"].as_array().into_iter().flatten() {
            if let Some(thread) = thread.as_str() {
                self.sub_agents.entry(thread.to_owned()).or_insert_with(|| id.to_owned());
            }
        }
    }

    fn on_thought(&mut self, id: &str, item: &Value, turn: &mut AdapterTurn) {
        let all = |key: &str| {
            let parts = item[key].as_array().into_iter().flatten();
            parts.filter_map(Value::as_str).collect::<Vec<_>>().join(PART_SEPARATOR)
        };
        let (summary, thought) = (all("summary"), all("content"));
        // If there is a summary, the raw thought is sent only if it was streamed.
        if summary.is_empty() || self.messages.has_message(id, DeltaKind::RawThought) {
            self.messages.push_full(id, DeltaKind::RawThought, &thought, turn);
        }
        self.messages.push_full(id, DeltaKind::Summary, &summary, turn);
    }

    pub(super) fn on_delta(&mut self, kind: DeltaKind, params: &Value, turn: &mut AdapterTurn) {
        let text = |key: &str| params[key].as_str().unwrap_or_default();
        let index = match kind {
            DeltaKind::Text => &Value::Null,
            DeltaKind::Summary => &params["summaryIndex"],
            DeltaKind::RawThought => &params["contentIndex"],
        };
        let part = index.as_u64().unwrap_or_default();
        self.messages.push_delta(text("itemId"), kind, part, text("delta"), turn);
    }

    /// A command printed output. An update repeats all content, so it is sent when the output has
    /// grown by a quarter: the total is then linear in its size, not quadratic. The end of the item
    /// contains all of it.
    pub(super) fn on_output(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let params = &message["params"];
        let id = params["itemId"].as_str().unwrap_or_default();
        let Some(tool) = self.open_tool(id) else { return turn.report_unmapped(message) };
        let mut tool = tool.clone();
        let output = self.outputs.entry(id.to_owned()).or_default();
        output.text.push_str(params["delta"].as_str().unwrap_or_default());
        let size = output.text.len();
        let has_grown = output.sent_len + output.sent_len / 4 <= size;
        if (size <= EAGER_BYTES_MAX || has_grown) && output.sent_len < size {
            output.sent_len = size;
            let update = ToolUpdate::new().with_text(&output.text);
            tool.fields.extend(update.fields.clone());
            self.tools.insert(id.to_owned(), tool);
            turn.update_tool(id, update);
        }
    }

    pub(super) fn on_patch(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let tool = file_change::to_tool_update(&message["params"]["changes"], &self.cwd);
        self.on_tool_progress(message, tool, turn);
    }

    pub(super) fn on_progress(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let text = message["params"]["message"].as_str().unwrap_or_default();
        self.on_tool_progress(message, ToolUpdate::new().with_text(text), turn);
    }

    /// New information about a running call.
    fn on_tool_progress(&mut self, message: &Value, update: ToolUpdate, turn: &mut AdapterTurn) {
        let id = message["params"]["itemId"].as_str().unwrap_or_default();
        let Some(tool) = self.open_tool(id) else { return turn.report_unmapped(message) };
        let changed = item::changed_fields(tool, update);
        let mut tool = tool.clone();
        tool.fields.extend(changed.fields.clone());
        self.tools.insert(id.to_owned(), tool);
        if !changed.fields.is_empty() {
            turn.update_tool(id, changed);
        }
    }

    fn open_tool(&self, id: &str) -> Option<&ToolUpdate> {
        self.tools.get(id).filter(|tool| !tool.status.is_some_and(ToolStatus::is_final))
    }

    /// The items that the end of a turn repeats, in case a message was not sent before.
    pub(super) fn on_final_items(&mut self, items: &Value, turn: &mut AdapterTurn) {
        for item in items.as_array().into_iter().flatten() {
            if item["type"] == "agentMessage" {
                let message = json!({"params": {"item": item}});
                self.on_item(&message, ItemPhase::Completed, turn);
            }
        }
    }
}
