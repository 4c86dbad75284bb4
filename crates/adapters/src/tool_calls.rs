//! Tracks the tool calls of a program: each is begun once, shown while it runs, and ended once.

use crate::known_tools::ProgramToolCall;
use crate::{AdapterTurn, ToolStatus, ToolUpdate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The state of tool calls that later lines depend on.
#[derive(Debug, Default)]
pub(crate) struct ToolCallTracker {
    cwd: String,
    begun: BTreeSet<String>,
    /// Calls that show a diff, which their output must not replace.
    with_diff: BTreeSet<String>,
    /// Calls that were sent as a plan. The client does not see them as tool calls.
    plans: BTreeSet<String>,
    /// The output of each call that was sent last.
    sent_output: BTreeMap<String, String>,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallResult<'a> {
    pub(crate) failed: bool,
    /// The human-readable output.
    pub(crate) text: &'a str,
    /// The raw output of the program; null if it consists only of the text.
    pub(crate) output: &'a Value,
}

impl ToolCallTracker {
    /// Tracks the calls of a program that works in this directory.
    pub(crate) fn new(cwd: &str) -> ToolCallTracker {
        ToolCallTracker { cwd: cwd.to_owned(), ..ToolCallTracker::default() }
    }

    pub(crate) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Begins a call of the tool `name` with this input.
    pub(crate) fn begin_call(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        turn: &mut AdapterTurn,
    ) {
        self.begin_nested_call(None, id, name, input, turn);
    }

    /// Begins a call of a sub-agent that the call `parent` started.
    pub(crate) fn begin_nested_call(
        &mut self,
        parent: Option<&str>,
        id: &str,
        name: &str,
        input: &Value,
        turn: &mut AdapterTurn,
    ) {
        if self.plans.contains(id) || !self.begun.insert(id.to_owned()) {
            return;
        }
        let call = ProgramToolCall { name, input, cwd: &self.cwd };
        if let Some(entries) = call.to_plan() {
            self.plans.insert(id.to_owned());
            turn.send_plan(&entries);
            return;
        }
        let mut tool = call.to_update().with_status(ToolStatus::InProgress);
        if tool.fields.contains_key("content") {
            self.with_diff.insert(id.to_owned());
        }
        if let Some(parent) = parent {
            tool = tool.with_parent(parent);
        }
        turn.update_tool(id, tool);
    }

    /// Sends the complete output of the tool so far.
    pub(crate) fn show_output(&mut self, id: &str, text: &str, turn: &mut AdapterTurn) {
        let is_new = self.sent_output.get(id).is_none_or(|sent| sent != text);
        let shows_output = !self.plans.contains(id) && !self.with_diff.contains(id);
        if !text.is_empty() && is_new && shows_output {
            self.sent_output.insert(id.to_owned(), text.to_owned());
            turn.update_tool(id, ToolUpdate::new().with_text(text));
        }
    }

    pub(crate) fn end_call(&mut self, id: &str, result: CallResult<'_>, turn: &mut AdapterTurn) {
        self.end_call_with(id, result, ToolUpdate::new(), turn);
    }

    /// Ends a call with information that the program reports only at the end, such as a diff.
    pub(crate) fn end_call_with(
        &mut self,
        id: &str,
        result: CallResult<'_>,
        tool: ToolUpdate,
        turn: &mut AdapterTurn,
    ) {
        if self.plans.contains(id) {
            // The client received the plan instead of this call.
            return;
        }
        let status = if result.failed { ToolStatus::Failed } else { ToolStatus::Completed };
        let has_diff = tool.fields.contains_key("content") || self.with_diff.contains(id);
        let mut tool = tool.with_status(status);
        // A failed call has changed nothing, so its output replaces its diff.
        if !result.text.is_empty() && (result.failed || !has_diff) {
            tool = tool.with_text(result.text);
        }
        if !result.output.is_null() {
            tool = tool.with_output(result.output.clone());
        }
        turn.update_tool(id, tool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_effect::TurnEffect;
    use serde_json::json;

    fn updates(turn: &AdapterTurn) -> Vec<&Value> {
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SendUpdate(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    #[test]
    fn diff_is_kept_on_success_and_replaced_by_the_output_on_failure() {
        for (failed, content) in [(false, Value::Null), (true, json!("no such text"))] {
            let (mut calls, mut turn) = (ToolCallTracker::new("/w"), AdapterTurn::default());
            turn.begin();
            let input = json!({"path": "a", "old_str": "x", "new_str": "y"});
            calls.begin_call("1", "edit", &input, &mut turn);
            calls.begin_call("1", "edit", &input, &mut turn);
            let result = CallResult { failed, text: "no such text", output: &Value::Null };
            calls.end_call("1", result, &mut turn);
            let updates = updates(&turn);
            assert_eq!(updates.len(), 2);
            assert_eq!(updates[0]["content"][0]["type"], "diff");
            assert_eq!(updates[1]["content"][0]["content"]["text"], content);
        }
    }

    #[test]
    fn plan_is_not_a_tool_call_and_output_is_sent_when_it_grows() {
        let (mut calls, mut turn) = (ToolCallTracker::new("/w"), AdapterTurn::default());
        turn.begin();
        calls.begin_call("p", "todowrite", &json!({"todos": [{"content": "a"}]}), &mut turn);
        calls.show_output("p", "written", &mut turn);
        calls.end_call(
            "p",
            CallResult { failed: false, text: "ok", output: &Value::Null },
            &mut turn,
        );
        calls.begin_call("s", "bash", &json!({"command": "ls"}), &mut turn);
        for text in ["a", "a", "ab"] {
            calls.show_output("s", text, &mut turn);
        }
        let kinds: Vec<&str> =
            updates(&turn).iter().map(|it| it["sessionUpdate"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["plan", "tool_call", "tool_call_update", "tool_call_update"]);
    }
}
