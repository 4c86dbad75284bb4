//! The tool calls of a turn: each begins once and ends once, whatever the agent says of it and in
//! which order. Agents update calls before they make them, make them twice, ask about calls that
//! nobody has heard of, and never end some (`docs/recorded-agents.md`).
//!
//! A call is told when it is known what it is called with. Most agents make it with its arguments;
//! those that make it first and let the arguments follow are waited for, until the agent asks for
//! the permission, goes on speaking, or the turn is over.

use super::{
    Asked, Step,
    call::{Call, Stage},
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: BTreeMap<String, Call>,
    /// All of the turn was heard, so a call that is not here was not told.
    whole: bool,
}

impl Calls {
    /// A turn begins, and with it other calls.
    pub(super) fn begin(&mut self) {
        self.calls.clear();
        self.whole = true;
    }

    /// `tool_call` makes one, `tool_call_update` says more of it.
    pub(super) fn update(&mut self, update: &Value, made: bool) -> Vec<Step> {
        let id = id_of(update);
        let whole = self.whole;
        let call = self.entry(&id);
        if call.stage == Stage::Over {
            return Vec::new();
        }
        call.merge(update);
        if call.stage == Stage::Mentioned {
            call.stage = match (made, whole) {
                (true, _) => Stage::Announced,
                // It was made before this reader came.
                (false, false) => Stage::Begun,
                (false, true) if call.is_described() => Stage::Announced,
                // An end of something unknown is still an end.
                (false, true) if call.has_ended() => Stage::Begun,
                (false, true) => Stage::Mentioned,
            };
        }
        let mut steps = Vec::new();
        if call.stage == Stage::Announced && call.is_ready() {
            steps.push(begin(&id, call));
        }
        if call.stage == Stage::Begun && call.has_ended() {
            let (content, is_error) = call.result();
            steps.push(end(id, call, content, is_error));
        }
        steps
    }

    /// The agent asks whether it may: what it told of the call so far is all that it will.
    pub(super) fn ask(&mut self, told: &Value) -> Vec<Step> {
        let id = id_of(told);
        let call = self.entry(&id);
        if call.stage == Stage::Over {
            return Vec::new();
        }
        call.describe(told);
        (call.stage == Stage::Announced).then(|| begin(&id, call)).into_iter().collect()
    }

    /// The ask itself, with what is known of its call.
    pub(super) fn asked(&self, told: &Value, params: &Value, ask: u64) -> Asked {
        let id = id_of(told);
        let mut shown = Call::new(0);
        shown.describe(told);
        let known = self.calls.get(&id).filter(|it| it.stage != Stage::Over);
        let call = known.unwrap_or(&shown).shown(&id);
        let options = params["options"].as_array().cloned().unwrap_or_default();
        Asked { ask, call, options }
    }

    /// The agent goes on speaking: the calls that it has made are made.
    pub(super) fn speak(&mut self) -> Vec<Step> {
        let announced = self.in_order(|it| it == Stage::Announced);
        announced.into_iter().map(|(id, call)| begin(id, call)).collect()
    }

    /// The turn is over, or the agent gone: what has not ended will not.
    pub(super) fn close(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (id, call) in self.in_order(|it| matches!(it, Stage::Announced | Stage::Begun)) {
            if call.stage == Stage::Announced {
                steps.push(begin(id, call));
            }
            let content = call.unfinished();
            steps.push(end(id.clone(), call, content, true));
        }
        steps
    }

    fn in_order(&mut self, which: impl Fn(Stage) -> bool) -> Vec<(&String, &mut Call)> {
        let calls = self.calls.iter_mut().filter(|(_, it)| which(it.stage));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|(_, it)| it.number);
        calls
    }

    fn entry(&mut self, id: &str) -> &mut Call {
        let number = self.calls.len();
        self.calls.entry(id.to_owned()).or_insert_with(|| Call::new(number))
    }
}

fn begin(id: &str, call: &mut Call) -> Step {
    Step::CallBegan(Box::new(call.begin(id)))
}

fn end(id: String, call: &mut Call, content: String, is_error: bool) -> Step {
    let parent = call.parent();
    call.forget();
    Step::CallEnded { id, parent, content, is_error }
}

/// Ids are text; what is none is at least told apart.
fn id_of(call: &Value) -> String {
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

    /// What happened, in short: `+id name`, `-id`, `!id` for a failure.
    fn told(steps: Vec<Step>) -> String {
        let short = |step: Step| match step {
            Step::CallBegan(call) => format!("+{} {}", call.id, call.name),
            Step::CallEnded { id, is_error: false, .. } => format!("-{id}"),
            Step::CallEnded { id, .. } => format!("!{id}"),
            other => format!("{other:?}"),
        };
        steps.into_iter().map(short).collect::<Vec<_>>().join(", ")
    }

    fn calls() -> Calls {
        let mut calls = Calls::default();
        calls.begin();
        calls
    }

    fn call(id: &str, status: &str) -> Value {
        json!({ "toolCallId": id, "title": "ls", "kind": "execute", "status": status })
    }

    fn bare(id: &str, status: &str) -> Value {
        json!({ "toolCallId": id, "status": status })
    }

    #[test]
    fn a_call_begins_when_it_is_made_and_ends_once() {
        let mut calls = calls();
        assert_eq!(told(calls.update(&call("1", "in_progress"), true)), "+1 Bash");
        assert_eq!(told(calls.update(&bare("1", "in_progress"), false)), "");
        assert_eq!(told(calls.update(&bare("1", "completed"), false)), "-1");
        assert_eq!(told(calls.update(&bare("1", "failed"), false)), "");
        assert_eq!(told(calls.update(&call("1", "in_progress"), true)), "");
        assert_eq!(told(calls.close()), "");
    }

    #[test]
    fn one_that_is_made_already_done_begins_and_ends_at_once() {
        assert_eq!(told(calls().update(&call("1", "completed"), true)), "+1 Bash, -1");
        assert_eq!(told(calls().update(&call("1", "cancelled"), true)), "+1 Bash, !1");
    }

    #[test]
    fn one_that_is_made_before_its_arguments_waits_for_them() {
        let mut calls = calls();
        assert_eq!(told(calls.update(&call("1", "pending"), true)), "");
        let arguments = json!({ "toolCallId": "1", "rawInput": { "command": "ls" } });
        assert_eq!(told(calls.update(&arguments, false)), "+1 Bash");
        calls.update(&call("2", "pending"), true);
        assert_eq!(told(calls.ask(&call("2", "pending"))), "+2 Bash");
        calls.update(&call("3", "pending"), true);
        calls.update(&call("4", "pending"), true);
        assert_eq!(told(calls.speak()), "+3 Bash, +4 Bash");
        calls.update(&call("5", "pending"), true);
        assert_eq!(told(calls.close()), "!1, !2, !3, !4, +5 Bash, !5");
    }

    #[test]
    fn one_that_was_only_asked_about_is_no_call_until_more_is_heard_of_it() {
        let mut calls = calls();
        assert_eq!(told(calls.ask(&call("1", "pending"))), "");
        assert_eq!(told(calls.ask(&call("2", "pending"))), "");
        assert_eq!(told(calls.update(&bare("2", "completed"), false)), "+2 Bash, -2");
        assert_eq!(told(calls.close()), "");
    }

    #[test]
    fn an_ask_under_another_title_is_about_the_same_tool() {
        let mut calls = calls();
        let made = json!({ "toolCallId": "1", "title": "write", "kind": "edit",
                           "rawInput": { "filePath": "/a" } });
        assert_eq!(told(calls.update(&made, true)), "+1 Write");
        let shown = json!({ "toolCallId": "1", "title": "/a", "kind": "edit" });
        calls.ask(&shown);
        let asked = calls.asked(&shown, &json!({}), 1);
        assert_eq!((asked.call.name.as_str(), asked.call.title.as_str()), ("Write", "/a"));
    }

    #[test]
    fn updates_may_come_before_the_call_and_the_call_twice() {
        let mut calls = calls();
        let update = json!({ "toolCallId": "1", "title": "run: ls", "kind": "execute",
                             "status": "pending", "rawInput": { "commands": ["ls"] } });
        assert_eq!(told(calls.update(&update, false)), "+1 Bash");
        assert_eq!(told(calls.update(&update, true)), "");
        assert_eq!(told(calls.update(&update, true)), "");
    }

    #[test]
    fn who_came_in_the_middle_takes_an_unknown_call_as_told() {
        let mut calls = Calls::default();
        assert_eq!(told(calls.update(&call("1", "in_progress"), false)), "");
        assert_eq!(told(calls.update(&bare("1", "completed"), false)), "-1");
        assert_eq!(told(calls.update(&call("2", "in_progress"), true)), "+2 Bash");
        calls.update(&call("3", "in_progress"), false);
        assert_eq!(told(calls.close()), "!2, !3");
    }
}
