//! Tool calls: created when the model starts to write them, updated when their input is complete,
//! and closed by their result.

use super::task_list::TaskList;
use super::tool_action::{self, ToolAction};
use crate::known_tools::to_absolute;
use crate::{AdapterTurn, ToolStatus, ToolUpdate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
struct StreamedCall {
    name: String,
    input: Value,
    /// For a call of a sub-agent: the call that started the sub-agent.
    parent: Option<String>,
    /// While the input is streamed: the index of its block, and the JSON so far.
    partial_input: Option<(u64, String)>,
    /// Whether the model has finished writing it.
    is_complete: bool,
    /// Whether its result has arrived.
    is_closed: bool,
}

/// The tool calls of one turn.
#[derive(Debug, Default)]
pub(super) struct StreamedCalls {
    known: BTreeMap<String, StreamedCall>,
    /// The text of sub-agents, by the call that started them.
    reports: BTreeMap<String, String>,
    tasks: TaskList,
    pub(super) cwd: String,
}

impl StreamedCalls {
    /// Clears the calls of the last turn; the plan is kept.
    pub(super) fn begin_turn(&mut self) {
        self.known.clear();
        self.reports.clear();
    }

    /// The model starts to write a call.
    pub(super) fn start_call(&mut self, index: u64, block: &Value, turn: &mut AdapterTurn) {
        let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
            return turn.report_unmapped(block);
        };
        if self.known.contains_key(id) {
            return;
        }
        let call = StreamedCall {
            name: name.to_owned(),
            input: json!({}),
            parent: None,
            partial_input: Some((index, String::new())),
            is_complete: false,
            is_closed: false,
        };
        self.known.insert(id.to_owned(), call);
        if !ToolAction::from_name(name).is_plan() {
            let tool = tool_action::summary_update(name, &json!({}), &self.cwd)
                .with_status(ToolStatus::Pending);
            turn.update_tool(id, tool);
        }
    }

    pub(super) fn push_input_delta(&mut self, index: u64, delta: &str) {
        let partial_input = self.known.values_mut().filter_map(|call| call.partial_input.as_mut());
        for (_, json) in partial_input.filter(|(it, _)| *it == index) {
            json.push_str(delta);
        }
    }

    pub(super) fn end_input(&mut self, index: u64, turn: &mut AdapterTurn) {
        let is_open =
            |call: &StreamedCall| call.partial_input.as_ref().is_some_and(|(it, _)| *it == index);
        let found = self.known.iter_mut().find(|(_, call)| is_open(call));
        let Some((id, call)) = found else { return };
        let (id, name, partial_input) = (id.clone(), call.name.clone(), call.partial_input.take());
        // The complete message repeats an input that cannot be parsed.
        let input = partial_input.and_then(|(_, json)| serde_json::from_str::<Value>(&json).ok());
        if let Some(input) = input.filter(Value::is_object) {
            self.report_call(&id, &name, &input, None, turn);
        }
    }

    /// A complete call. The repetition of a streamed call may lack its input.
    pub(super) fn finish_call(
        &mut self,
        block: &Value,
        parent: Option<&str>,
        turn: &mut AdapterTurn,
    ) {
        match (block["id"].as_str(), block["name"].as_str()) {
            (Some(id), Some(name)) => self.report_call(id, name, &block["input"], parent, turn),
            _ => turn.report_unmapped(block),
        }
    }

    fn report_call(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        parent: Option<&str>,
        turn: &mut AdapterTurn,
    ) {
        let is_empty = input.as_object().is_none_or(serde_json::Map::is_empty);
        if let Some(call) = self.known.get_mut(id) {
            if call.is_complete && (is_empty || call.input == *input) {
                return;
            }
            call.is_complete = true;
            call.partial_input = None;
            call.input = input.clone();
        } else {
            let parent = parent.map(str::to_owned);
            let name = name.to_owned();
            let input = input.clone();
            let call = StreamedCall {
                name,
                input,
                parent,
                partial_input: None,
                is_complete: true,
                is_closed: false,
            };
            self.known.insert(id.to_owned(), call);
        }
        // A plan is sent when its call has succeeded.
        if !ToolAction::from_name(name).is_plan() {
            turn.update_tool(id, self.to_update(id).with_status(ToolStatus::InProgress));
        }
    }

    /// All information about a call, for updates and permission requests.
    pub(super) fn to_update(&self, id: &str) -> ToolUpdate {
        let Some(call) = self.known.get(id) else { return ToolUpdate::new() };
        let tool = tool_action::full_update(&call.name, &call.input, &self.cwd);
        match &call.parent {
            Some(parent) => tool.with_parent(parent),
            None => tool,
        }
    }

    /// Registers a call for which permission is requested before the program has reported it.
    pub(super) fn register_call(&mut self, id: &str, name: &str, input: &Value) {
        let (name, input) = (name.to_owned(), input.clone());
        let call = StreamedCall {
            name,
            input,
            parent: None,
            partial_input: None,
            is_complete: false,
            is_closed: false,
        };
        self.known.entry(id.to_owned()).or_insert(call);
    }

    /// Finds the open call with this name and input.
    pub(super) fn find_open_call(&self, name: &str, input: &Value) -> Option<&str> {
        let matches =
            |call: &StreamedCall| !call.is_closed && call.name == name && call.input == *input;
        self.known.iter().find(|(_, call)| matches(call)).map(|(id, _)| id.as_str())
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|call| !call.is_closed)
    }

    /// The result of a tool. `detail` is the program's own record of it.
    pub(super) fn on_result(&mut self, block: &Value, detail: &Value, turn: &mut AdapterTurn) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some(call) = self.known.get_mut(id) else {
            return turn.report_unmapped(block);
        };
        call.is_closed = true;
        let call = &self.known[id];
        let (action, content) = (ToolAction::from_name(&call.name), &block["content"]);
        let failed = block["is_error"] == true;
        let answer = if action == ToolAction::Delegate && !failed {
            sub_agent_report(detail).unwrap_or_else(|| result_text(content))
        } else {
            result_text(content)
        };
        if action.is_plan() && !failed && !turn.has_tool(id) {
            self.tasks.apply_call(action, &call.input, &answer, detail, turn);
            return;
        }
        if action.is_plan() {
            // A plan whose call failed is shown as a failed tool call.
            turn.update_tool(id, self.to_update(id));
        }
        let status = if failed { ToolStatus::Failed } else { ToolStatus::Completed };
        let tool = ToolUpdate::new().with_status(status).with_output(content.clone());
        let tool = match overwrite_diff(action, &call.input, detail).filter(|_| !failed) {
            Some((path, old, new)) => tool.with_diff(&to_absolute(&self.cwd, path), Some(old), new),
            None if !failed && (action.is_file_change() || action == ToolAction::LeavePlan) => tool,
            None if answer.is_empty() => tool,
            None => tool.with_text(&answer),
        };
        turn.update_tool(id, tool);
    }

    /// Adds text of a sub-agent to the call that started it.
    pub(super) fn add_report(&mut self, parent: &str, text: &str, turn: &mut AdapterTurn) {
        let report = self.reports.entry(parent.to_owned()).or_default();
        if !report.is_empty() {
            report.push_str("\n\n");
        }
        report.push_str(text);
        turn.update_tool(parent, ToolUpdate::new().with_text(report));
    }

    /// The stream was interrupted: incomplete calls will be written again under other ids.
    pub(super) fn abort_incomplete(&mut self, turn: &mut AdapterTurn) {
        for (id, call) in self.known.iter_mut().filter(|(_, call)| !call.is_complete) {
            call.partial_input = None;
            call.is_complete = true;
            if turn.has_tool(id) {
                turn.update_tool(id, ToolUpdate::new().with_status(ToolStatus::Failed));
            }
        }
    }
}

/// The path, the old and the new text of an overwritten file. The old text is reported only after
/// the call.
fn overwrite_diff<'a>(
    action: ToolAction,
    input: &'a Value,
    detail: &'a Value,
) -> Option<(&'a str, &'a str, &'a str)> {
    let old = detail["originalFile"].as_str().filter(|_| action == ToolAction::Write)?;
    Some((tool_action::input_path(input)?, old, input["content"].as_str()?))
}

/// The final report of a sub-agent, without the program's notes for the model; empty if it runs in
/// the background.
fn sub_agent_report(detail: &Value) -> Option<String> {
    if detail["isAsync"] == true {
        return Some(String::new());
    }
    let last = detail["content"].as_array()?.last()?;
    Some(last["text"].as_str()?.to_owned())
}

/// The text of a tool's result.
fn result_text(content: &Value) -> String {
    let parts: Vec<String> = match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks.iter().map(block_text).collect(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    };
    let text = parts.join("\n");
    let inner = text.strip_prefix("<tool_use_error>");
    inner.map(|it| it.strip_suffix("</tool_use_error>").unwrap_or(it).to_owned()).unwrap_or(text)
}

fn block_text(block: &Value) -> String {
    match (block["type"].as_str(), block["text"].as_str()) {
        (_, Some(text)) => text.to_owned(),
        // The bytes are in the raw output; as text they would hide the rest.
        (Some("image"), None) => "[image]".to_owned(),
        _ => block.to_string(),
    }
}
