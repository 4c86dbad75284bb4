//! `codex exec --json`: one process per turn, complete items, no approvals.

use super::failure;
use super::item::{self, ItemContent, ItemPhase};
use super::token_counts::ThreadTokenCounts;
use crate::{
    AdapterTurn, Dialect, ProgramLifetime, PromptInput, StartContext, StopReason, StreamedText,
    ToolUpdate, TurnFailure,
};
use jackfield_agents::AgentExit;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct ExecDialect {
    /// The number of the turn. Items are numbered from zero in each turn, so the number of the turn
    /// makes their ids unique within the session.
    turn_number: u32,
    cwd: String,
    thread: Option<String>,
    /// The tokens of the thread at the start of the turn; unknown for a thread of an earlier
    /// adapter.
    base: Option<ThreadTokenCounts>,
    messages: BTreeMap<String, StreamedText>,
    tools: BTreeMap<String, ToolUpdate>,
    /// An error that may end the turn: either `turn.failed` follows, or nothing.
    error: Option<String>,
}

impl Dialect for ExecDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        if start.agent_session_id.is_none() {
            self.base = Some(ThreadTokenCounts::default());
        } else if start.agent_session_id != self.thread.as_deref() {
            self.base = None;
        }
        self.thread = start.agent_session_id.map(str::to_owned);
        start.cwd.clone_into(&mut self.cwd);
    }

    fn on_prompt(&mut self, _prompt: &PromptInput, _turn: &mut AdapterTurn) {
        self.turn_number += 1;
        self.messages.clear();
        self.tools.clear();
        self.error = None;
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        let message = |holder: &Value| holder["message"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "thread.started" => self.on_thread(&event, turn),
            // The event contains no information.
            "turn.started" => {}
            "item.started" | "item.updated" => self.on_item(&event, ItemPhase::Started, turn),
            "item.completed" => self.on_item(&event, ItemPhase::Completed, turn),
            "turn.completed" => self.on_completed(&event, turn),
            "turn.failed" => {
                let reported = message(&event["error"]);
                let error = self.error.take().filter(|_| reported.is_empty()).unwrap_or(reported);
                turn.fail(failure::from_message(&error));
            }
            "error" if failure::is_retry(&message(&event)) => turn.send_notice(&message(&event)),
            "error" => self.error = Some(message(&event)),
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if let Some(error) = self.error.take() {
            turn.fail(failure::from_message(&error));
        } else if turn.is_running() {
            let exit = failure::strip_startup_remarks(exit);
            turn.fail(TurnFailure::from_exit(&exit, &turn.noise, turn.has_output()));
        }
    }
}

impl ExecDialect {
    fn on_thread(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let Some(id) = event["thread_id"].as_str() else { return turn.report_unmapped(event) };
        if self.thread.as_deref().is_some_and(|thread| thread != id) {
            // A different thread than the requested one counts from zero.
            self.base = Some(ThreadTokenCounts::default());
        }
        self.thread = Some(id.to_owned());
        turn.set_agent_session_id(id);
    }

    fn on_item(&mut self, event: &Value, phase: ItemPhase, turn: &mut AdapterTurn) {
        let item = &event["item"];
        let id = format!("{}.{}", self.turn_number, item["id"].as_str().unwrap_or_default());
        match item::parse_item(item, phase, &self.cwd) {
            ItemContent::Text(text) => {
                turn.send_text(&id, self.messages.entry(id.clone()).or_default().push_full(&text));
            }
            ItemContent::Thought(text) => {
                turn.send_thought(
                    &id,
                    self.messages.entry(id.clone()).or_default().push_full(&text),
                );
            }
            ItemContent::ToolCall(tool) => {
                let known = self.tools.insert(id.clone(), tool.clone()).unwrap_or_default();
                turn.update_tool(&id, item::changed_fields(&known, tool));
            }
            ItemContent::Plan(entries) => turn.send_plan(&entries),
            ItemContent::Notice(text) => turn.send_notice(&text),
            ItemContent::UserMessage | ItemContent::Unknown => turn.report_unmapped(event),
        }
    }

    fn on_completed(&mut self, event: &Value, turn: &mut AdapterTurn) {
        if let Some(error) = self.error.take() {
            // The turn survived the error.
            turn.send_notice(&error);
        }
        if event["usage"].is_object() {
            let total = ThreadTokenCounts::parse(&event["usage"]);
            // Codex never reports the usage of a failed turn. It is included in the next completed
            // turn, so that the sum is right.
            if let Some(base) = self.base {
                turn.record_usage(total.since(base).to_usage());
            }
            self.base = Some(total);
        }
        turn.complete(StopReason::EndTurn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;
    use crate::{FailureCause, TurnUsage};
    use serde_json::json;

    fn start(agent_session_id: Option<&str>) -> StartContext<'_> {
        StartContext {
            cwd: "/w",
            agent_session_id,
            model: None,
            reasoning: None,
            mode: None,
            is_sandboxed: false,
            mcp_servers: &[],
        }
    }

    /// Runs one turn with these events and a successful exit.
    fn run_turn(
        exec: &mut ExecDialect,
        agent_session_id: Option<&str>,
        events: &[Value],
    ) -> AdapterTurn {
        let mut turn = AdapterTurn::default();
        turn.begin();
        exec.on_start(&start(agent_session_id), &mut turn);
        exec.on_prompt(&PromptInput::default(), &mut turn);
        for event in events {
            exec.on_line(&event.to_string(), &mut turn);
        }
        exec.on_exit(&AgentExit { code: Some(0), ..AgentExit::default() }, &mut turn);
        turn
    }

    fn completed(input: u64, output: u64) -> Value {
        json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": output}})
    }

    fn thread(id: &str) -> Value {
        json!({"type": "thread.started", "thread_id": id})
    }

    fn counts(turn: &AdapterTurn) -> Option<(u64, u64)> {
        turn.usage.map(|TurnUsage { input, output, .. }| (input, output))
    }

    #[test]
    fn turn_usage_is_the_difference_of_thread_totals() {
        let mut exec = ExecDialect::default();
        let first = run_turn(&mut exec, None, &[thread("t"), completed(120, 5)]);
        let second = run_turn(&mut exec, Some("t"), &[thread("t"), completed(360, 15)]);
        let other = run_turn(&mut exec, Some("t"), &[thread("u"), completed(100, 1)]);
        assert_eq!(
            [counts(&first), counts(&second), counts(&other)],
            [Some((120, 5)), Some((240, 10)), Some((100, 1))]
        );
    }

    #[test]
    fn first_turn_of_a_resumed_thread_has_no_usage() {
        let mut exec = ExecDialect::default();
        let first = run_turn(&mut exec, Some("t"), &[thread("t"), completed(900, 50)]);
        let second = run_turn(&mut exec, Some("t"), &[thread("t"), completed(1000, 60)]);
        assert_eq!([counts(&first), counts(&second)], [None, Some((100, 10))]);
    }

    #[test]
    fn items_of_different_turns_have_different_ids() {
        let mut exec = ExecDialect::default();
        let item = json!({"type": "item.completed", "item":
            {"id": "item_0", "type": "command_execution", "command": "ls", "status": "completed"}});
        let ids: Vec<Value> = (0..2)
            .map(|_| {
                let turn = run_turn(&mut exec, None, &[item.clone(), completed(1, 1)]);
                let TurnEffect::SendUpdate(update) = &turn.effects[0] else { panic!("no update") };
                update["toolCallId"].clone()
            })
            .collect();
        assert_eq!(ids, ["1.item_0", "2.item_0"]);
    }

    #[test]
    fn exit_after_an_error_fails_with_that_error() {
        let error = json!({"type": "error", "message": "unexpected status 429 Too Many Requests"});
        let turn = run_turn(&mut ExecDialect::default(), None, &[error]);
        let Some(AdapterTurnOutcome::Failed(failure)) = &turn.outcome else {
            panic!("{:?}", turn.outcome)
        };
        assert_eq!((failure.cause, failure.status), (FailureCause::RateLimited, Some(429)));
    }

    #[test]
    fn error_that_the_turn_survives_is_a_notice() {
        let error = json!({"type": "error", "message": "a hook failed"});
        let turn = run_turn(&mut ExecDialect::default(), None, &[error, completed(1, 1)]);
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
        assert!(matches!(&turn.effects[0], TurnEffect::SendUpdate(it)
            if it["_meta"]["jackfield"]["notice"] == "a hook failed"));
    }
}
