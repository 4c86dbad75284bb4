//! The tool calls of a turn. Each call starts once and ends once, whatever the agent sends and in which
//! order: agents update calls before they make them, make them twice, request permission for calls that
//! they never made, and leave some calls without an end (`docs/recorded-agents.md`).
//!
//! A call is reported when its arguments are known. Most agents send the arguments with the call. For
//! those that send them later, the call waits until the arguments arrive, the agent requests permission or
//! sends text, or the turn ends.

use super::{
    PermissionRequest, TimelineStep,
    tool_call::{CallStage, ToolCall},
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct TimelineToolCalls {
    calls: BTreeMap<String, ToolCall>,
    /// The turn was read from its start, so a call that is not in `calls` was not reported.
    is_complete: bool,
}

impl TimelineToolCalls {
    /// Forgets the calls of the previous turn.
    pub(super) fn start_turn(&mut self) {
        self.calls.clear();
        self.is_complete = true;
    }

    /// Applies a `tool_call`, which makes a call (`is_made`), or a `tool_call_update`.
    pub(super) fn apply_update(&mut self, update: &Value, is_made: bool) -> Vec<TimelineStep> {
        let id = call_id(update);
        let is_complete = self.is_complete;
        let call = self.call_mut(&id);
        if call.stage == CallStage::Ended {
            return Vec::new();
        }
        call.merge_update(update);
        if call.stage == CallStage::Mentioned {
            call.stage = match (is_made, is_complete) {
                (true, _) => CallStage::Announced,
                // The call was made before this reader started.
                (false, false) => CallStage::Started,
                (false, true) if call.is_described() => CallStage::Announced,
                // The end of an unknown call is still reported as an end.
                (false, true) if call.has_ended() => CallStage::Started,
                (false, true) => CallStage::Mentioned,
            };
        }
        let mut steps = Vec::new();
        if call.stage == CallStage::Announced && call.is_ready() {
            steps.push(start_call(&id, call));
        }
        if call.stage == CallStage::Started && call.has_ended() {
            let (content, is_error) = call.result();
            steps.push(end_call(id, call, content, is_error));
        }
        steps
    }

    /// The agent requests permission for a call. It sends no further arguments after that, so an
    /// announced call starts.
    pub(super) fn on_permission_request(&mut self, requested: &Value) -> Vec<TimelineStep> {
        let id = call_id(requested);
        let call = self.call_mut(&id);
        if call.stage == CallStage::Ended {
            return Vec::new();
        }
        call.merge_description(requested);
        (call.stage == CallStage::Announced).then(|| start_call(&id, call)).into_iter().collect()
    }

    /// Builds the permission request with everything that is known about its call.
    pub(super) fn permission_request(
        &self,
        requested: &Value,
        params: &Value,
        ask: u64,
    ) -> PermissionRequest {
        let id = call_id(requested);
        let mut described = ToolCall::new(0);
        described.merge_description(requested);
        let known = self.calls.get(&id).filter(|it| it.stage != CallStage::Ended);
        let call = known.unwrap_or(&described).describe(&id);
        let options = params["options"].as_array().cloned().unwrap_or_default();
        PermissionRequest { ask, call, options }
    }

    /// The agent sends text again, so no arguments of its announced calls follow: they start.
    pub(super) fn start_announced(&mut self) -> Vec<TimelineStep> {
        let announced = self.calls_in_order(|it| it == CallStage::Announced);
        announced.into_iter().map(|(id, call)| start_call(id, call)).collect()
    }

    /// The turn ended or the agent exited: ends all calls that are still open.
    pub(super) fn close_all(&mut self) -> Vec<TimelineStep> {
        let is_open = |it| matches!(it, CallStage::Announced | CallStage::Started);
        let mut steps = Vec::new();
        for (id, call) in self.calls_in_order(is_open) {
            if call.stage == CallStage::Announced {
                steps.push(start_call(id, call));
            }
            let content = call.unfinished_result();
            steps.push(end_call(id.clone(), call, content, true));
        }
        steps
    }

    fn calls_in_order(
        &mut self,
        has_stage: impl Fn(CallStage) -> bool,
    ) -> Vec<(&String, &mut ToolCall)> {
        let calls = self.calls.iter_mut().filter(|(_, it)| has_stage(it.stage));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|(_, it)| it.number);
        calls
    }

    fn call_mut(&mut self, id: &str) -> &mut ToolCall {
        let number = self.calls.len();
        self.calls.entry(id.to_owned()).or_insert_with(|| ToolCall::new(number))
    }
}

fn start_call(id: &str, call: &mut ToolCall) -> TimelineStep {
    TimelineStep::CallStarted(Box::new(call.start(id)))
}

fn end_call(id: String, call: &mut ToolCall, content: String, is_error: bool) -> TimelineStep {
    let parent = call.parent_id();
    call.end();
    TimelineStep::CallEnded { id, parent, content, is_error }
}

/// The id of a call. An id that is not text is compared by its JSON.
fn call_id(call: &Value) -> String {
    match &call["toolCallId"] {
        Value::String(id) => id.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The steps in short form: `+id name`, `-id`, `!id` for a failure.
    fn summarize(steps: Vec<TimelineStep>) -> String {
        let short = |step: TimelineStep| match step {
            TimelineStep::CallStarted(call) => format!("+{} {}", call.id, call.name),
            TimelineStep::CallEnded { id, is_error: false, .. } => format!("-{id}"),
            TimelineStep::CallEnded { id, .. } => format!("!{id}"),
            other => format!("{other:?}"),
        };
        steps.into_iter().map(short).collect::<Vec<_>>().join(", ")
    }

    fn calls() -> TimelineToolCalls {
        let mut calls = TimelineToolCalls::default();
        calls.start_turn();
        calls
    }

    fn call(id: &str, status: &str) -> Value {
        json!({ "toolCallId": id, "title": "ls", "kind": "execute", "status": status })
    }

    fn bare(id: &str, status: &str) -> Value {
        json!({ "toolCallId": id, "status": status })
    }

    #[test]
    fn call_starts_when_it_is_made_and_ends_once() {
        let mut calls = calls();
        assert_eq!(summarize(calls.apply_update(&call("1", "in_progress"), true)), "+1 Bash");
        assert_eq!(summarize(calls.apply_update(&bare("1", "in_progress"), false)), "");
        assert_eq!(summarize(calls.apply_update(&bare("1", "completed"), false)), "-1");
        assert_eq!(summarize(calls.apply_update(&bare("1", "failed"), false)), "");
        assert_eq!(summarize(calls.apply_update(&call("1", "in_progress"), true)), "");
        assert_eq!(summarize(calls.close_all()), "");
    }

    #[test]
    fn call_that_is_made_completed_starts_and_ends_at_once() {
        assert_eq!(summarize(calls().apply_update(&call("1", "completed"), true)), "+1 Bash, -1");
        assert_eq!(summarize(calls().apply_update(&call("1", "cancelled"), true)), "+1 Bash, !1");
    }

    #[test]
    fn call_that_is_made_before_its_arguments_waits_for_them() {
        let mut calls = calls();
        assert_eq!(summarize(calls.apply_update(&call("1", "pending"), true)), "");
        let arguments = json!({ "toolCallId": "1", "rawInput": { "command": "ls" } });
        assert_eq!(summarize(calls.apply_update(&arguments, false)), "+1 Bash");
        calls.apply_update(&call("2", "pending"), true);
        assert_eq!(summarize(calls.on_permission_request(&call("2", "pending"))), "+2 Bash");
        calls.apply_update(&call("3", "pending"), true);
        calls.apply_update(&call("4", "pending"), true);
        assert_eq!(summarize(calls.start_announced()), "+3 Bash, +4 Bash");
        calls.apply_update(&call("5", "pending"), true);
        assert_eq!(summarize(calls.close_all()), "!1, !2, !3, !4, +5 Bash, !5");
    }

    #[test]
    fn requested_call_starts_only_with_its_first_update() {
        let mut calls = calls();
        assert_eq!(summarize(calls.on_permission_request(&call("1", "pending"))), "");
        assert_eq!(summarize(calls.on_permission_request(&call("2", "pending"))), "");
        assert_eq!(summarize(calls.apply_update(&bare("2", "completed"), false)), "+2 Bash, -2");
        assert_eq!(summarize(calls.close_all()), "");
    }

    #[test]
    fn request_with_another_title_keeps_the_tool_name() {
        let mut calls = calls();
        let made = json!({ "toolCallId": "1", "title": "write", "kind": "edit",
                           "rawInput": { "filePath": "/a" } });
        assert_eq!(summarize(calls.apply_update(&made, true)), "+1 Write");
        let requested = json!({ "toolCallId": "1", "title": "/a", "kind": "edit" });
        calls.on_permission_request(&requested);
        let request = calls.permission_request(&requested, &json!({}), 1);
        assert_eq!((request.call.name.as_str(), request.call.title.as_str()), ("Write", "/a"));
    }

    #[test]
    fn early_update_and_repeated_call_start_it_once() {
        let mut calls = calls();
        let update = json!({ "toolCallId": "1", "title": "run: ls", "kind": "execute",
                             "status": "pending", "rawInput": { "commands": ["ls"] } });
        assert_eq!(summarize(calls.apply_update(&update, false)), "+1 Bash");
        assert_eq!(summarize(calls.apply_update(&update, true)), "");
        assert_eq!(summarize(calls.apply_update(&update, true)), "");
    }

    #[test]
    fn late_reader_treats_an_unknown_call_as_reported() {
        let mut calls = TimelineToolCalls::default();
        assert_eq!(summarize(calls.apply_update(&call("1", "in_progress"), false)), "");
        assert_eq!(summarize(calls.apply_update(&bare("1", "completed"), false)), "-1");
        assert_eq!(summarize(calls.apply_update(&call("2", "in_progress"), true)), "+2 Bash");
        calls.apply_update(&call("3", "in_progress"), false);
        assert_eq!(summarize(calls.close_all()), "!2, !3");
    }
}
