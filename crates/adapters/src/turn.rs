//! The interface from a dialect to the adapter: updates, permission requests, lines for the
//! program, and the outcome of the turn.

use crate::outcome::AdapterTurnOutcome;
use crate::turn_effect::{PermissionOption, PlanEntry, TurnEffect};
use crate::unparsed_lines::UnparsedLines;
use crate::{FailureCause, StopReason, ToolStatus, ToolUpdate, TurnFailure, TurnUsage};
use jackfield_agents::AgentExit;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The current turn of one session. It enforces the rules for every dialect: one outcome, tool
/// calls created before they are updated and closed at the end, no empty chunks.
#[derive(Debug, Default)]
pub struct AdapterTurn {
    pub(crate) effects: Vec<TurnEffect>,
    pub(crate) outcome: Option<AdapterTurnOutcome>,
    pub(crate) usage: Option<TurnUsage>,
    pub(crate) cost: Option<f64>,
    /// The last lines that the dialect could not parse, in case nothing else explains a failure.
    pub(crate) noise: Vec<String>,
    unparsed: UnparsedLines,
    tools: BTreeMap<String, Option<ToolStatus>>,
    is_running: bool,
    is_cancelled: bool,
    has_output: bool,
}

/// The number of unparsable lines that are kept.
const NOISE_LINES_MAX: usize = 40;

impl AdapterTurn {
    pub(crate) fn begin(&mut self) {
        // A program may create a tool call between turns; it belongs to no turn and is closed.
        self.close();
        let effects = std::mem::take(&mut self.effects);
        *self = AdapterTurn { effects, is_running: true, ..AdapterTurn::default() };
    }

    pub(crate) fn mark_cancelled(&mut self) {
        self.is_cancelled = true;
    }

    /// Ends the turn and closes its open tool calls, which will receive no more updates.
    pub(crate) fn close(&mut self) {
        self.is_running = false;
        let open =
            self.tools.iter().filter(|(_, status)| !status.is_some_and(ToolStatus::is_final));
        let open: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        for id in open {
            self.update_tool(&id, ToolUpdate::new().with_status(ToolStatus::Failed));
        }
    }

    /// Whether a prompt is being processed. Some programs also produce output between turns.
    pub fn is_running(&self) -> bool {
        self.is_running && self.outcome.is_none()
    }

    /// Whether the client cancelled this turn.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// Whether the program has sent text, a thought or a tool call in this turn.
    pub fn has_output(&self) -> bool {
        self.has_output
    }

    /// Sends text of the agent. `message_id` is the program's, empty if it has none.
    pub fn send_text(&mut self, message_id: &str, text: &str) {
        self.send_chunk("agent_message_chunk", message_id, text);
    }

    pub fn send_thought(&mut self, message_id: &str, text: &str) {
        self.send_chunk("agent_thought_chunk", message_id, text);
    }

    fn send_chunk(&mut self, update: &str, message_id: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.has_output = true;
        let mut chunk = json!({"sessionUpdate": update, "content": {"type": "text", "text": text}});
        if !message_id.is_empty() {
            chunk["messageId"] = json!(message_id);
        }
        self.send_update(chunk);
    }

    /// Reports new information about a tool call; the first report creates it. After the call has
    /// ended, only output and content are sent, never a second final status.
    pub fn update_tool(&mut self, id: &str, mut tool: ToolUpdate) {
        self.has_output = true;
        let known = self.tools.get(id).copied();
        if known.flatten().is_some_and(ToolStatus::is_final) {
            tool.status = None;
            tool.fields.remove("status");
            if tool.fields.is_empty() {
                return;
            }
        }
        let is_new = known.is_none();
        let status = tool.status.or(known.flatten());
        self.tools.insert(id.to_owned(), status);
        let kind = if is_new { "tool_call" } else { "tool_call_update" };
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), json!(kind));
        update.insert("toolCallId".to_owned(), json!(id));
        if is_new && !tool.fields.contains_key("title") {
            update.insert("title".to_owned(), json!(id));
        }
        update.extend(tool.fields);
        self.send_update(Value::Object(update));
    }

    /// Whether a tool call with this id was created in this turn.
    pub fn has_tool(&self, id: &str) -> bool {
        self.tools.contains_key(id)
    }

    /// Sends the complete plan, which replaces the previous one.
    pub fn send_plan(&mut self, entries: &[PlanEntry]) {
        let entries: Vec<Value> = entries
            .iter()
            .map(|it| json!({"content": it.content, "priority": it.priority, "status": it.status}))
            .collect();
        self.send_update(json!({"sessionUpdate": "plan", "entries": entries}));
    }

    /// Reports that the program changed its mode by itself.
    pub fn send_mode(&mut self, id: &str) {
        self.send_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": id}));
    }

    /// Sends the slash commands, each with its name and description.
    pub fn send_commands(&mut self, commands: &[(String, String)]) {
        let commands: Vec<Value> = commands
            .iter()
            .map(|(name, description)| json!({"name": name, "description": description}))
            .collect();
        let update = "available_commands_update";
        self.send_update(json!({"sessionUpdate": update, "availableCommands": commands}));
    }

    pub fn send_title(&mut self, title: &str) {
        self.send_update(json!({"sessionUpdate": "session_info_update", "title": title}));
    }

    /// Records the tokens used so far in this turn; the last call counts.
    pub fn record_usage(&mut self, usage: TurnUsage) {
        self.usage = Some(usage);
    }

    /// Records the US dollars spent so far in this turn; the last call counts.
    pub fn record_cost(&mut self, dollars: f64) {
        self.cost = Some(dollars);
    }

    /// Sends how many tokens of the context window are used.
    pub fn send_context_size(&mut self, used_tokens: u64, size: u64) {
        self.send_update(
            json!({"sessionUpdate": "usage_update", "used": used_tokens, "size": size}),
        );
    }

    /// Sends information for the user that is neither text nor an error: a retry, a warning.
    pub fn send_notice(&mut self, text: &str) {
        self.send_meta("notice", &json!(text));
    }

    /// Sends lines that the program printed on stderr.
    pub fn send_stderr(&mut self, text: &str) {
        self.send_meta("stderr", &json!(text));
    }

    /// Forwards a valid line that the dialect cannot map, for clients that understand it.
    pub fn report_unmapped(&mut self, line: &Value) {
        self.send_meta("unmapped", line);
    }

    /// Parses a line as a JSON object. Anything else is recorded as noise and shown as a notice, or
    /// as the answer if the program prints nothing else.
    pub fn parse_object(&mut self, line: &str) -> Option<Value> {
        let object = serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
        let notices = if object.is_some() {
            self.unparsed.on_object()
        } else {
            self.record_noise(line);
            self.unparsed.on_other_line(line)
        };
        for notice in notices {
            self.send_notice(&notice);
        }
        object
    }

    /// The program exited. If it printed text instead of JSON and succeeded, the text is its answer;
    /// otherwise its last lines are notices.
    pub(crate) fn end_unparsed_lines(&mut self, exit: &AgentExit) {
        let lines = self.unparsed.take_held();
        if lines.is_empty() {
            return;
        }
        let failure = TurnFailure::from_exit(exit, &self.noise, self.has_output);
        let is_answer = failure.cause == FailureCause::Empty && self.is_running();
        if is_answer {
            self.send_text("", &lines.join("\n"));
            self.complete(StopReason::EndTurn);
        } else {
            for line in &lines {
                self.send_notice(line);
            }
        }
    }

    /// Records a line that the dialect cannot parse.
    pub fn record_noise(&mut self, line: &str) {
        if !line.trim().is_empty() {
            if NOISE_LINES_MAX <= self.noise.len() {
                self.noise.remove(0);
            }
            self.noise.push(line.to_owned());
        }
    }

    /// Requests permission from the client. [`crate::Dialect::on_answer`] receives the answer under
    /// `key`.
    pub fn request_permission(
        &mut self,
        key: &str,
        tool_id: &str,
        tool: ToolUpdate,
        options: Vec<PermissionOption>,
    ) {
        let mut tool_call = Map::new();
        tool_call.insert("toolCallId".to_owned(), json!(tool_id));
        tool_call.extend(tool.fields.clone());
        if !self.has_tool(tool_id) {
            // A client must know the tool call that a permission request is about.
            self.update_tool(tool_id, tool);
        }
        let tool_call = Value::Object(tool_call);
        self.effects.push(TurnEffect::RequestPermission {
            key: key.to_owned(),
            tool_call,
            options,
        });
    }

    /// Withdraws a permission request that the program no longer waits for.
    pub fn withdraw_request(&mut self, key: &str) {
        self.effects.push(TurnEffect::WithdrawRequest { key: key.to_owned() });
    }

    /// Writes a line to the program's stdin.
    pub fn write_json(&mut self, line: &Value) {
        self.effects.push(TurnEffect::WriteLine(line.to_string()));
    }

    pub fn write_line(&mut self, line: &str) {
        self.effects.push(TurnEffect::WriteLine(line.to_owned()));
    }

    pub fn close_stdin(&mut self) {
        self.effects.push(TurnEffect::CloseStdin);
    }

    /// Sets the id under which the program can resume this session.
    pub fn set_agent_session_id(&mut self, id: &str) {
        self.effects.push(TurnEffect::SetAgentSessionId(id.to_owned()));
    }

    /// Completes the turn. The first outcome counts.
    pub fn complete(&mut self, reason: StopReason) {
        let reason = if self.is_cancelled { StopReason::Cancelled } else { reason };
        if self.is_running() {
            self.outcome = Some(AdapterTurnOutcome::Completed(reason));
        }
    }

    /// Fails the turn. The first outcome counts; a cancelled turn does not fail.
    pub fn fail(&mut self, failure: TurnFailure) {
        if self.is_cancelled {
            self.complete(StopReason::Cancelled);
        } else if self.is_running() {
            self.outcome = Some(AdapterTurnOutcome::Failed(failure));
        }
    }

    fn send_meta(&mut self, key: &str, value: &Value) {
        let meta = json!({"jackfield": {key: value}});
        self.send_update(json!({"sessionUpdate": "session_info_update", "_meta": meta}));
    }

    fn send_update(&mut self, update: Value) {
        self.effects.push(TurnEffect::SendUpdate(update));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running_turn() -> AdapterTurn {
        let mut turn = AdapterTurn::default();
        turn.begin();
        turn
    }

    fn updates(turn: &AdapterTurn) -> Vec<&Value> {
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SendUpdate(update) => Some(update),
            _ => None,
        });
        updates.collect()
    }

    #[test]
    fn tool_call_is_created_once_and_closed_with_the_turn() {
        let mut turn = running_turn();
        turn.update_tool("a", ToolUpdate::new().with_status(ToolStatus::InProgress));
        turn.update_tool("a", ToolUpdate::new().with_status(ToolStatus::Completed));
        turn.update_tool("a", ToolUpdate::new().with_status(ToolStatus::Failed));
        turn.update_tool("b", ToolUpdate::new().with_title("B"));
        turn.close();
        let sent: Vec<(&str, &str, &str)> = updates(&turn)
            .into_iter()
            .map(|it| {
                let text = |key: &str| it[key].as_str().unwrap_or("-");
                (text("sessionUpdate"), text("toolCallId"), text("status"))
            })
            .collect();
        assert_eq!(
            sent,
            [
                ("tool_call", "a", "in_progress"),
                ("tool_call_update", "a", "completed"),
                ("tool_call", "b", "-"),
                ("tool_call_update", "b", "failed"),
            ]
        );
    }

    #[test]
    fn tool_call_created_between_turns_is_closed_by_the_next_turn() {
        let mut turn = running_turn();
        turn.complete(StopReason::EndTurn);
        turn.close();
        turn.update_tool("late", ToolUpdate::new().with_status(ToolStatus::InProgress));
        turn.begin();
        let last = updates(&turn).pop().unwrap();
        assert_eq!((&last["toolCallId"], &last["status"]), (&json!("late"), &json!("failed")));
    }

    #[test]
    fn first_outcome_counts_and_a_cancelled_turn_does_not_fail() {
        let mut turn = running_turn();
        turn.complete(StopReason::Refusal);
        turn.fail(TurnFailure::new(FailureCause::Crashed, "late"));
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::Refusal)));
        let mut turn = running_turn();
        turn.mark_cancelled();
        turn.fail(TurnFailure::new(FailureCause::Crashed, "killed"));
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::Cancelled)));
    }

    #[test]
    fn permission_request_creates_an_unknown_tool_call() {
        let mut turn = running_turn();
        turn.request_permission("k", "t", ToolUpdate::new().with_title("Write x"), Vec::new());
        assert_eq!(updates(&turn)[0]["sessionUpdate"], "tool_call");
        assert!(
            matches!(&turn.effects[1], TurnEffect::RequestPermission { tool_call, .. } if tool_call["title"] == "Write x")
        );
    }
}
