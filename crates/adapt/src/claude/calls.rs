//! Tool calls: announced when the model begins to write them, told when their input is complete,
//! closed by their result.

use super::plan::Plan;
use super::show::{self, Deed};
use crate::kinds::absolute;
use crate::{Status, Tool, Turn};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Call {
    name: String,
    input: Value,
    /// The call that started the sub-agent whose call this is.
    parent: Option<String>,
    /// Its number in the message while its input is streamed, and the JSON so far.
    open: Option<(u64, String)>,
    /// Whether the model finished writing it.
    complete: bool,
    /// Whether its result came.
    closed: bool,
}

/// The tool calls of one turn.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: BTreeMap<String, Call>,
    /// What sub-agents said, by the call that started them.
    reports: BTreeMap<String, String>,
    plan: Plan,
    pub(super) cwd: String,
}

impl Calls {
    /// A turn begins; the plan goes on.
    pub(super) fn begin(&mut self) {
        self.known.clear();
        self.reports.clear();
    }

    /// The model begins to write a call.
    pub(super) fn start(&mut self, index: u64, block: &Value, turn: &mut Turn) {
        let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
            return turn.unmapped(block);
        };
        if self.known.contains_key(id) {
            return;
        }
        let call = Call {
            name: name.to_owned(),
            input: json!({}),
            parent: None,
            open: Some((index, String::new())),
            complete: false,
            closed: false,
        };
        self.known.insert(id.to_owned(), call);
        if !Deed::of(name).is_plan() {
            let tool = show::outline(name, &json!({}), &self.cwd).status(Status::Pending);
            turn.tool(id, tool);
        }
    }

    pub(super) fn piece(&mut self, index: u64, piece: &str) {
        let open = self.known.values_mut().filter_map(|call| call.open.as_mut());
        for (_, json) in open.filter(|(it, _)| *it == index) {
            json.push_str(piece);
        }
    }

    pub(super) fn stop(&mut self, index: u64, turn: &mut Turn) {
        let is_open = |call: &Call| call.open.as_ref().is_some_and(|(it, _)| *it == index);
        let found = self.known.iter_mut().find(|(_, call)| is_open(call));
        let Some((id, call)) = found else { return };
        let (id, name, open) = (id.clone(), call.name.clone(), call.open.take());
        // What does not parse comes again in the finished message.
        let input = open.and_then(|(_, json)| serde_json::from_str::<Value>(&json).ok());
        if let Some(input) = input.filter(Value::is_object) {
            self.tell(&id, &name, &input, None, turn);
        }
    }

    /// A finished call. The repetition of one that was streamed may have lost its input.
    pub(super) fn whole(&mut self, block: &Value, parent: Option<&str>, turn: &mut Turn) {
        match (block["id"].as_str(), block["name"].as_str()) {
            (Some(id), Some(name)) => self.tell(id, name, &block["input"], parent, turn),
            _ => turn.unmapped(block),
        }
    }

    fn tell(&mut self, id: &str, name: &str, input: &Value, parent: Option<&str>, turn: &mut Turn) {
        let empty = input.as_object().is_none_or(serde_json::Map::is_empty);
        if let Some(call) = self.known.get_mut(id) {
            if call.complete && (empty || call.input == *input) {
                return;
            }
            call.complete = true;
            call.open = None;
            call.input = input.clone();
        } else {
            let parent = parent.map(str::to_owned);
            let name = name.to_owned();
            let input = input.clone();
            let call = Call { name, input, parent, open: None, complete: true, closed: false };
            self.known.insert(id.to_owned(), call);
        }
        // A plan is shown when it is kept.
        if !Deed::of(name).is_plan() {
            turn.tool(id, self.show(id).status(Status::InProgress));
        }
    }

    /// All that is known of a call, for updates and asks.
    pub(super) fn show(&self, id: &str) -> Tool {
        let Some(call) = self.known.get(id) else { return Tool::new() };
        let tool = show::full(&call.name, &call.input, &self.cwd);
        match &call.parent {
            Some(parent) => tool.parent(parent),
            None => tool,
        }
    }

    /// The program asks about a call that it has not told of yet.
    pub(super) fn expect(&mut self, id: &str, name: &str, input: &Value) {
        let (name, input) = (name.to_owned(), input.clone());
        let call = Call { name, input, parent: None, open: None, complete: false, closed: false };
        self.known.entry(id.to_owned()).or_insert(call);
    }

    /// The open call that looks like this.
    pub(super) fn like(&self, name: &str, input: &Value) -> Option<&str> {
        let fits = |call: &Call| !call.closed && call.name == name && call.input == *input;
        self.known.iter().find(|(_, call)| fits(call)).map(|(id, _)| id.as_str())
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|call| !call.closed)
    }

    /// What a tool answered. `detail` is the program's own record of it.
    pub(super) fn result(&mut self, block: &Value, detail: &Value, turn: &mut Turn) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some(call) = self.known.get_mut(id) else {
            return turn.unmapped(block);
        };
        call.closed = true;
        let call = &self.known[id];
        let (deed, content) = (Deed::of(&call.name), &block["content"]);
        let failed = block["is_error"] == true;
        let answer = if deed == Deed::Delegate && !failed {
            report_of(detail).unwrap_or_else(|| answer_of(content))
        } else {
            answer_of(content)
        };
        if deed.is_plan() && !failed && !turn.knows_tool(id) {
            self.plan.change(deed, &call.input, &answer, detail, turn);
            return;
        }
        if deed.is_plan() {
            // A plan that could not be kept is a tool call that failed.
            turn.tool(id, self.show(id));
        }
        let status = if failed { Status::Failed } else { Status::Completed };
        let tool = Tool::new().status(status).output(content.clone());
        let tool = match overwritten(deed, &call.input, detail).filter(|_| !failed) {
            Some((path, old, new)) => tool.diff(&absolute(&self.cwd, path), Some(old), new),
            None if !failed && (deed.changes_files() || deed == Deed::LeavePlan) => tool,
            None if answer.is_empty() => tool,
            None => tool.text(&answer),
        };
        turn.tool(id, tool);
    }

    /// Words of a sub-agent: they belong to the call that started it.
    pub(super) fn report(&mut self, parent: &str, text: &str, turn: &mut Turn) {
        let report = self.reports.entry(parent.to_owned()).or_default();
        if !report.is_empty() {
            report.push_str("\n\n");
        }
        report.push_str(text);
        turn.tool(parent, Tool::new().text(report));
    }

    /// The stream was cut: calls that were being written will be written again, under other ids.
    pub(super) fn cut(&mut self, turn: &mut Turn) {
        for (id, call) in self.known.iter_mut().filter(|(_, call)| !call.complete) {
            call.open = None;
            call.complete = true;
            if turn.knows_tool(id) {
                turn.tool(id, Tool::new().status(Status::Failed));
            }
        }
    }
}

/// The old text of a file that was overwritten is known only afterwards.
fn overwritten<'a>(
    deed: Deed,
    input: &'a Value,
    detail: &'a Value,
) -> Option<(&'a str, &'a str, &'a str)> {
    let old = detail["originalFile"].as_str().filter(|_| deed == Deed::Write)?;
    Some((show::path_of(input)?, old, input["content"].as_str()?))
}

/// What a sub-agent says at its end, without what the program tells the model about it; nothing yet
/// if it was sent into the background.
fn report_of(detail: &Value) -> Option<String> {
    if detail["isAsync"] == true {
        return Some(String::new());
    }
    let last = detail["content"].as_array()?.last()?;
    Some(last["text"].as_str()?.to_owned())
}

/// The text of a tool's answer.
fn answer_of(content: &Value) -> String {
    let parts: Vec<String> = match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks.iter().map(part_of).collect(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    };
    let text = parts.join("\n");
    let inner = text.strip_prefix("<tool_use_error>");
    inner.map(|it| it.strip_suffix("</tool_use_error>").unwrap_or(it).to_owned()).unwrap_or(text)
}

fn part_of(block: &Value) -> String {
    match (block["type"].as_str(), block["text"].as_str()) {
        (_, Some(text)) => text.to_owned(),
        // The bytes are in the raw output; as text they would bury the rest.
        (Some("image"), None) => "[image]".to_owned(),
        _ => block.to_string(),
    }
}
