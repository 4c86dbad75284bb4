//! The tool calls that a program is telling about: begun once, shown while they run, ended once.

use crate::kinds::Call;
use crate::{Status, Tool, Turn};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What later lines about a call need to know of the earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    cwd: String,
    begun: BTreeSet<String>,
    /// They show a diff, which their output must not replace.
    diffs: BTreeSet<String>,
    /// They became a plan: to the client they are no calls.
    plans: BTreeSet<String>,
    /// The output that was shown last.
    shown: BTreeMap<String, String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) failed: bool,
    /// For people.
    pub(crate) text: &'a str,
    /// As the program spells it; null if it is only the text.
    pub(crate) output: &'a Value,
}

impl Calls {
    /// Calls of a program that works in this folder.
    pub(crate) fn at(cwd: &str) -> Calls {
        Calls { cwd: cwd.to_owned(), ..Calls::default() }
    }

    pub(crate) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The program named the tool and what it calls it with.
    pub(crate) fn begin(&mut self, id: &str, name: &str, input: &Value, turn: &mut Turn) {
        self.begin_in(None, id, name, input, turn);
    }

    /// The same, for a call of a sub-agent that the call `parent` started.
    pub(crate) fn begin_in(
        &mut self,
        parent: Option<&str>,
        id: &str,
        name: &str,
        input: &Value,
        turn: &mut Turn,
    ) {
        if self.plans.contains(id) || !self.begun.insert(id.to_owned()) {
            return;
        }
        let call = Call { name, input, cwd: &self.cwd };
        if let Some(entries) = call.plan() {
            self.plans.insert(id.to_owned());
            turn.plan(&entries);
            return;
        }
        let mut tool = call.tool().status(Status::InProgress);
        if tool.fields.contains_key("content") {
            self.diffs.insert(id.to_owned());
        }
        if let Some(parent) = parent {
            tool = tool.parent(parent);
        }
        turn.tool(id, tool);
    }

    /// What the tool has printed so far, all of it.
    pub(crate) fn show(&mut self, id: &str, text: &str, turn: &mut Turn) {
        let news = self.shown.get(id).is_none_or(|shown| shown != text);
        if !text.is_empty() && news && !self.plans.contains(id) && !self.diffs.contains(id) {
            self.shown.insert(id.to_owned(), text.to_owned());
            turn.tool(id, Tool::new().text(text));
        }
    }

    pub(crate) fn end(&mut self, id: &str, end: End<'_>, turn: &mut Turn) {
        self.end_with(id, end, Tool::new(), turn);
    }

    /// The same, with something that only the end tells, such as a diff.
    pub(crate) fn end_with(&mut self, id: &str, end: End<'_>, tool: Tool, turn: &mut Turn) {
        if self.plans.contains(id) {
            // The plan itself is all that there is to know.
            return;
        }
        let status = if end.failed { Status::Failed } else { Status::Completed };
        let shows = tool.fields.contains_key("content") || self.diffs.contains(id);
        let mut tool = tool.status(status);
        // What failed has changed nothing: its words are worth more than its diff.
        if !end.text.is_empty() && (end.failed || !shows) {
            tool = tool.text(end.text);
        }
        if !end.output.is_null() {
            tool = tool.output(end.output.clone());
        }
        turn.tool(id, tool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Effect;
    use serde_json::json;

    fn told(turn: &Turn) -> Vec<&Value> {
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            Effect::Update(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    #[test]
    fn a_diff_survives_the_words_of_a_success_and_not_those_of_a_failure() {
        for (failed, content) in [(false, Value::Null), (true, json!("no such text"))] {
            let (mut calls, mut turn) = (Calls::at("/w"), Turn::default());
            turn.begin();
            let input = json!({"path": "a", "old_str": "x", "new_str": "y"});
            calls.begin("1", "edit", &input, &mut turn);
            calls.begin("1", "edit", &input, &mut turn);
            let end = End { failed, text: "no such text", output: &Value::Null };
            calls.end("1", end, &mut turn);
            let told = told(&turn);
            assert_eq!(told.len(), 2);
            assert_eq!(told[0]["content"][0]["type"], "diff");
            assert_eq!(told[1]["content"][0]["content"]["text"], content);
        }
    }

    #[test]
    fn a_plan_is_no_call_and_output_is_shown_when_it_grows() {
        let (mut calls, mut turn) = (Calls::at("/w"), Turn::default());
        turn.begin();
        calls.begin("p", "todowrite", &json!({"todos": [{"content": "a"}]}), &mut turn);
        calls.show("p", "written", &mut turn);
        calls.end("p", End { failed: false, text: "ok", output: &Value::Null }, &mut turn);
        calls.begin("s", "bash", &json!({"command": "ls"}), &mut turn);
        for text in ["a", "a", "ab"] {
            calls.show("s", text, &mut turn);
        }
        let words: Vec<&str> =
            told(&turn).iter().map(|it| it["sessionUpdate"].as_str().unwrap()).collect();
        assert_eq!(words, ["plan", "tool_call", "tool_call_update", "tool_call_update"]);
    }
}
