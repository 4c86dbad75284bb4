//! `pi --mode rpc`: one process per session, with commands and answers to dialogs on its stdin. The
//! events are those of `--mode json`, which accepts no answers.

mod dialogs;
mod messages;

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::usage_total::{TurnUsageTotal, read_count};
use crate::{
    AdapterTurn, Dialect, PermissionAnswer, ProgramCapabilities, ProgramLifetime, ProgramSetting,
    PromptBlock, PromptInput, StartContext, StopReason, ToolStatus, ToolUpdate, TurnFailure,
    TurnUsage, known_tools, provider,
};
use dialogs::OpenDialogs;
use jackfield_agents::AgentExit;
use messages::PiMessages;
use serde_json::{Value, json};

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(PiDialect::default())
}

#[derive(Default)]
struct PiDialect {
    calls: ToolCallTracker,
    messages: PiMessages,
    dialogs: OpenDialogs,
    usage_total: TurnUsageTotal,
    /// The session id, until the model has answered: before that the session cannot be resumed.
    agent_session_id: Option<String>,
    /// Whether the agent is processing a prompt.
    is_working: bool,
    /// How the last answer of the model ended.
    stop_reason: Option<Result<StopReason, TurnFailure>>,
    prompt_count: u64,
}

impl Dialect for PiDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerSession
    }

    fn capabilities(&self) -> ProgramCapabilities {
        ProgramCapabilities { images: true, mcp: false }
    }

    fn on_start(&mut self, start: &StartContext<'_>, turn: &mut AdapterTurn) {
        *self = PiDialect { calls: ToolCallTracker::new(start.cwd), ..PiDialect::default() };
        turn.write_json(&json!({"id": "state", "type": "get_state"}));
    }

    fn on_prompt(&mut self, prompt: &PromptInput, turn: &mut AdapterTurn) {
        self.calls = ToolCallTracker::new(self.calls.cwd());
        self.messages = PiMessages::default();
        self.usage_total = TurnUsageTotal::default();
        self.stop_reason = None;
        self.prompt_count += 1;
        let id = format!("prompt-{}", self.prompt_count);
        let mut command = json!({"id": id, "type": "prompt", "message": prompt.to_text()});
        let images: Vec<Value> = prompt.blocks.iter().filter_map(image_of).collect();
        if !images.is_empty() {
            command["images"] = Value::Array(images);
        }
        turn.write_json(&command);
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        match event["type"].as_str() {
            Some("session") => self.agent_session_id = event["id"].as_str().map(str::to_owned),
            Some("response") => self.on_response(&event, turn),
            Some("agent_start") => self.is_working = true,
            Some("agent_end" | "agent_settled") => self.on_agent_end(&event, turn),
            Some("message_start" | "message_update" | "message_end") => {
                self.on_message(&event, turn);
            }
            Some("turn_end") => self.on_turn_end(&event["message"], turn),
            // A tool call between turns would never be closed.
            Some("tool_execution_start" | "tool_execution_update" | "tool_execution_end")
                if event["toolCallId"].is_string() && turn.is_running() =>
            {
                self.on_tool(&event, turn);
            }
            Some("extension_ui_request") => self.dialogs.on_request(&event, turn),
            Some(kind) => self.on_other(kind, &event, turn),
            None => turn.report_unmapped(&event),
        }
    }

    fn on_cancel(&mut self, turn: &mut AdapterTurn) -> bool {
        self.dialogs.dismiss_all(turn);
        turn.write_json(&json!({"id": "abort", "type": "abort"}));
        true
    }

    fn on_answer(&mut self, key: &str, answer: PermissionAnswer<'_>, turn: &mut AdapterTurn) {
        self.dialogs.on_answer(key, answer, turn);
    }

    fn on_setting(&mut self, setting: ProgramSetting<'_>, turn: &mut AdapterTurn) -> bool {
        let command = match setting {
            ProgramSetting::Reasoning(level) if level != "default" => {
                Some(json!({"id": "set", "type": "set_thinking_level", "level": level}))
            }
            ProgramSetting::Model(model) => model.split_once('/').map(|(provider, model)| {
                json!({"id": "set", "type": "set_model", "provider": provider, "modelId": model})
            }),
            _ => None,
        };
        if let Some(command) = &command {
            turn.write_json(command);
        }
        command.is_some()
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        self.is_working = false;
        let failure = provider::failure_from_exit(exit, turn);
        turn.fail(failure);
    }
}

fn image_of(block: &PromptBlock) -> Option<Value> {
    match block {
        PromptBlock::Image { mime, data } => {
            Some(json!({"type": "image", "data": data, "mimeType": mime}))
        }
        _ => None,
    }
}

impl PiDialect {
    fn on_response(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let message = event["error"].as_str().unwrap_or("no reason given");
        let id = event["id"].as_str().unwrap_or_default();
        match (event["success"] == true, event["command"].as_str()) {
            (true, Some("get_state")) => {
                let names = ["sessionId", "sessionFile"];
                self.agent_session_id =
                    known_tools::first_text(&event["data"], &names).map(str::to_owned);
            }
            // No work was aborted, so no end will be reported.
            (true, Some("abort")) if !self.is_working && turn.is_cancelled() => {
                turn.complete(StopReason::Cancelled);
            }
            (false, _) if id.starts_with("prompt-") => {
                turn.fail(provider::parse_failure(&format!("prompt rejected: {message}"), None));
            }
            (false, command) => {
                turn.send_notice(&format!(
                    "`{}` failed: {message}",
                    command.unwrap_or("a command")
                ));
            }
            // The command was accepted; its result follows.
            (true, _) => {}
        }
    }

    fn on_message(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let message = &event["message"];
        match message["role"].as_str() {
            // The prompt and results that were reported before.
            Some("user" | "system" | "toolResult") => return,
            Some("assistant") if event["type"] == "message_end" => {
                if let Some(session) = self.agent_session_id.take() {
                    turn.set_agent_session_id(&session);
                }
            }
            _ => {}
        }
        let inner = &event["assistantMessageEvent"];
        match inner["type"].as_str() {
            Some("toolcall_start") if inner["id"].is_string() && turn.is_running() => {
                let title = known_tools::first_text(inner, &["toolName"]).unwrap_or("tool");
                let tool = ToolUpdate::new().with_title(title).with_status(ToolStatus::Pending);
                turn.update_tool(inner["id"].as_str().unwrap_or_default(), tool);
            }
            Some("toolcall_end") if inner["toolCall"]["id"].is_string() && turn.is_running() => {
                let call = &inner["toolCall"];
                let id = call["id"].as_str().unwrap_or_default();
                self.calls.begin_call(
                    id,
                    call["name"].as_str().unwrap_or(id),
                    &call["arguments"],
                    turn,
                );
            }
            _ => self.messages.on_message(event, turn),
        }
    }

    fn on_turn_end(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let usage = &message["usage"];
        if let Some(fresh) = read_count(usage, &["input"]) {
            let (read, write) =
                (read_count(usage, &["cacheRead"]), read_count(usage, &["cacheWrite"]));
            // It counts cached tokens separately from the input.
            let input = fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0));
            let output = read_count(usage, &["output"]).unwrap_or(0);
            let thought = read_count(usage, &["reasoning"]);
            let turn_usage =
                TurnUsage { input, output, thought, cached_read: read, cached_write: write };
            self.usage_total.add_request(turn_usage, usage["cost"]["total"].as_f64(), turn);
        }
        self.stop_reason = Some(match message["stopReason"].as_str() {
            Some("length") => Ok(StopReason::MaxTokens),
            Some("aborted") => Ok(StopReason::Cancelled),
            Some("error") => {
                let message = message["errorMessage"].as_str().unwrap_or("unknown error");
                Err(provider::parse_failure(message, None))
            }
            _ => Ok(StopReason::EndTurn),
        });
    }

    /// Newer versions report whether they will retry, and when they are finally done; older
    /// versions report one end.
    fn on_agent_end(&mut self, event: &Value, turn: &mut AdapterTurn) {
        if event["type"] == "agent_end" && event["willRetry"].is_boolean() {
            return;
        }
        self.is_working = false;
        match self.stop_reason.take() {
            Some(Ok(stop)) => turn.complete(stop),
            Some(Err(failure)) => turn.fail(failure),
            None => turn.complete(StopReason::EndTurn),
        }
    }

    fn on_tool(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let id = event["toolCallId"].as_str().unwrap_or_default();
        let name = event["toolName"].as_str().unwrap_or(id);
        match event["type"].as_str() {
            Some("tool_execution_start") => self.calls.begin_call(id, name, &event["args"], turn),
            Some("tool_execution_update") => {
                self.calls.show_output(id, &text_of_result(&event["partialResult"]), turn);
            }
            _ => {
                let (result, failed) = (&event["result"], event["isError"] == true);
                let text = text_of_result(result);
                self.calls.end_call(
                    id,
                    CallResult { failed, text: &text, output: &result["details"] },
                    turn,
                );
            }
        }
    }

    fn on_other(&mut self, kind: &str, event: &Value, turn: &mut AdapterTurn) {
        match kind {
            "auto_retry_start" | "summarization_retry_scheduled" => {
                if kind == "auto_retry_start" {
                    self.messages.restart();
                }
                let (attempt, max) = (&event["attempt"], &event["maxAttempts"]);
                let message = event["errorMessage"].as_str().unwrap_or("no reason given");
                let message = provider::parse_failure(message, None).message;
                turn.send_notice(&format!("retrying, attempt {attempt} of {max}: {message}"));
            }
            "auto_retry_end" if event["success"] == false => {
                if let Some(message) = event["finalError"].as_str() {
                    self.stop_reason = Some(Err(provider::parse_failure(message, None)));
                }
            }
            "compaction_start" | "auto_compaction_start" => {
                turn.send_notice("compacting the conversation");
            }
            "compaction_end" | "auto_compaction_end" if event["errorMessage"].is_string() => {
                turn.send_notice(event["errorMessage"].as_str().unwrap_or_default());
            }
            "extension_error" => {
                let message = event["error"].as_str().unwrap_or("no reason given");
                turn.send_notice(&format!("an extension failed: {message}"));
            }
            // Progress events without information.
            "ready" | "turn_start" | "auto_retry_end" => {}
            _ => turn.report_unmapped(event),
        }
    }
}

/// The texts of a tool's result.
fn text_of_result(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[cfg(test)]
mod tests;
