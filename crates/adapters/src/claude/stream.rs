//! Interprets the lines of a stream in Claude Code's format.

use super::calls::StreamedCalls;
use super::message_stream::{BlockKind, MessageStream};
use super::request_errors::RequestErrors;
use super::result::{self, CachedTokens, CostMeter};
use crate::{AdapterTurn, StartContext, TurnUsage};
use serde_json::Value;
use std::collections::BTreeMap;

/// System lines that only repeat the content of calls, results and notifications.
const REDUNDANT_SYSTEM_LINES: [&str; 6] = [
    "permission_denied",
    "thinking_tokens",
    "task_started",
    "task_progress",
    "task_updated",
    "background_tasks_changed",
];

/// The program that writes the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFlavor {
    Claude,
    Amp,
    Qwen,
}

pub(super) struct ClaudeStream {
    flavor: StreamFlavor,
    messages: MessageStream,
    pub(super) calls: StreamedCalls,
    cost_meter: CostMeter,
    /// The permission mode that the client was sent last; `None` for programs without modes.
    pub(super) mode: Option<String>,
    /// Descriptions of slash commands.
    pub(super) command_descriptions: BTreeMap<String, String>,
    sent_commands: Vec<(String, String)>,
    /// Tokens of this turn's messages, for programs whose result does not report those of the turn.
    usage_by_message: BTreeMap<String, TurnUsage>,
    /// Tokens of the last model request of the main agent.
    last_usage: TurnUsage,
    model: String,
    stop_reason: Option<String>,
    pub(super) errors: RequestErrors,
}

impl ClaudeStream {
    pub(super) fn new(flavor: StreamFlavor) -> ClaudeStream {
        ClaudeStream {
            flavor,
            messages: MessageStream::default(),
            calls: StreamedCalls::default(),
            cost_meter: CostMeter::default(),
            mode: None,
            command_descriptions: BTreeMap::new(),
            sent_commands: Vec::new(),
            usage_by_message: BTreeMap::new(),
            last_usage: TurnUsage::default(),
            model: String::new(),
            stop_reason: None,
            errors: RequestErrors::default(),
        }
    }

    /// A process was started.
    pub(super) fn on_start(&mut self, start: &StartContext<'_>) {
        start.cwd.clone_into(&mut self.calls.cwd);
        self.mode = start.mode.filter(|_| self.flavor == StreamFlavor::Claude).map(str::to_owned);
        if start.agent_session_id.is_none() {
            self.cost_meter.reset();
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.messages = MessageStream::default();
        self.calls.begin_turn();
        self.usage_by_message.clear();
        self.last_usage = TurnUsage::default();
        self.stop_reason = None;
        self.errors = RequestErrors::default();
    }

    pub(super) fn on_line(&mut self, line: &Value, turn: &mut AdapterTurn) {
        match line["type"].as_str() {
            Some("system") => self.on_system(line, turn),
            Some("stream_event") => self.on_event(line, turn),
            Some("assistant") => self.on_assistant(line, turn),
            Some("user") => self.on_user(line, turn),
            Some("result") => self.on_result(line, turn),
            Some("rate_limit_event") if line["rate_limit_info"]["status"] == "rejected" => {
                turn.send_notice("the limit of the plan is reached");
            }
            // Progress lines without information.
            Some("keep_alive" | "tool_progress") => {}
            _ => turn.report_unmapped(line),
        }
    }

    fn on_system(&mut self, line: &Value, turn: &mut AdapterTurn) {
        match line["subtype"].as_str() {
            Some("init") => self.on_init(line, turn),
            Some("status") => {
                self.on_mode(&line["permissionMode"], turn);
                if line["status"] == "compacting" {
                    turn.send_notice("compacting the conversation");
                }
            }
            Some("compact_boundary") => turn.send_notice("the conversation was compacted"),
            Some("api_retry") => {
                self.messages.interrupt();
                self.calls.abort_incomplete(turn);
                turn.send_notice(&self.errors.record_retry(line));
            }
            Some("retry") => {
                self.messages.restart();
                self.calls.abort_incomplete(turn);
                turn.send_notice(&self.errors.record_retry(&line["data"]));
            }
            Some("task_notification") => self.on_task_end(line, turn),
            Some(kind) if REDUNDANT_SYSTEM_LINES.contains(&kind) => {}
            _ => turn.report_unmapped(line),
        }
    }

    /// Reports the end of a background task. The end of a task whose call is open is in its result.
    fn on_task_end(&self, line: &Value, turn: &mut AdapterTurn) {
        let task = if line["data"].is_object() { &line["data"] } else { line };
        if task["tool_use_id"].as_str().is_some_and(|id| self.calls.is_open(id)) {
            return;
        }
        let status = task["status"].as_str().unwrap_or("ended");
        let summary = task["summary"].as_str().map(|it| format!(": {it}")).unwrap_or_default();
        turn.send_notice(&format!("background task {status}{summary}"));
    }

    /// Called in every turn.
    fn on_init(&mut self, line: &Value, turn: &mut AdapterTurn) {
        if let Some(id) = line["session_id"].as_str() {
            turn.set_agent_session_id(id);
        }
        self.on_mode(&line["permissionMode"], turn);
        if let Some(model) = line["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        let names = |key: &str| line[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let terminal = names("terminal_slash_commands");
        let commands: Vec<(String, String)> = names("slash_commands")
            .iter()
            .filter(|name| !terminal.contains(name))
            .filter_map(Value::as_str)
            .filter(|name| !name.starts_with("__"))
            .map(|name| {
                (name.to_owned(), self.command_descriptions.get(name).cloned().unwrap_or_default())
            })
            .collect();
        if commands != self.sent_commands {
            turn.send_commands(&commands);
            self.sent_commands = commands;
        }
    }

    fn on_mode(&mut self, mode: &Value, turn: &mut AdapterTurn) {
        if let (Some(mode), Some(known)) = (mode.as_str(), &mut self.mode)
            && mode != known
        {
            turn.send_mode(mode);
            mode.clone_into(known);
        }
    }

    fn on_event(&mut self, line: &Value, turn: &mut AdapterTurn) {
        if line["parent_tool_use_id"].is_string() {
            // A sub-agent's messages are repeated when they are complete.
            return;
        }
        let event = &line["event"];
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str() {
            Some("message_start") => {
                let message = &event["message"];
                self.errors.clear_retry();
                self.messages.start_message(message["id"].as_str().unwrap_or_default());
                self.on_usage(&message["usage"]);
            }
            Some("content_block_start") => self.on_block(index, &event["content_block"], turn),
            Some("content_block_delta") => self.on_delta(index, line, turn),
            Some("content_block_stop") => {
                self.messages.end_block(index);
                self.calls.end_input(index, turn);
            }
            Some("message_delta") => {
                self.on_stop_reason(&event["delta"]);
                if let Some(output) = event["usage"]["output_tokens"].as_u64() {
                    self.last_usage.output = output;
                }
            }
            Some("message_stop") if line["abandoned_blocks"].is_object() => {
                self.messages.interrupt();
                self.calls.abort_incomplete(turn);
            }
            Some("message_stop") => self.messages.on_message_complete(),
            Some("ping") => {}
            // No goal is set.
            Some("goal_state") if event["goal_state"]["goal"].is_null() => {}
            _ => turn.report_unmapped(line),
        }
    }

    fn on_block(&mut self, index: u64, block: &Value, turn: &mut AdapterTurn) {
        match block["type"].as_str() {
            Some("text") => self.messages.start_block(index, BlockKind::Text),
            Some("thinking") => self.messages.start_block(index, BlockKind::Thought),
            Some(kind) if kind.ends_with("tool_use") => self.calls.start_call(index, block, turn),
            // Other blocks are repeated in the complete message.
            _ => {}
        }
    }

    fn on_delta(&mut self, index: u64, line: &Value, turn: &mut AdapterTurn) {
        let delta = &line["event"]["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match delta["type"].as_str() {
            Some("text_delta") if self.is_error_text(text("text")) => {
                self.errors.record_error_text(text("text"));
            }
            Some("text_delta") => {
                self.messages.push_delta(index, BlockKind::Text, text("text"), turn);
            }
            Some("thinking_delta") => {
                self.messages.push_delta(index, BlockKind::Thought, text("thinking"), turn);
            }
            Some("input_json_delta") => self.calls.push_input_delta(index, text("partial_json")),
            // Signatures are only for the provider.
            Some("signature_delta") => {}
            _ => turn.report_unmapped(line),
        }
    }

    /// Whether Qwen reports a provider's error as text of the agent.
    fn is_error_text(&self, text: &str) -> bool {
        self.flavor == StreamFlavor::Qwen && text.starts_with("[API Error:")
    }

    fn on_assistant(&mut self, line: &Value, turn: &mut AdapterTurn) {
        let message = &line["message"];
        let id = message["id"].as_str().unwrap_or_default();
        let parent = line["parent_tool_use_id"].as_str();
        if let Some(tokens) = result::parse_tokens(&message["usage"], self.cached_tokens()) {
            // Lines of one message repeat its tokens.
            let unnamed = || format!("#{}", self.usage_by_message.len());
            let key = if id.is_empty() { unnamed() } else { id.to_owned() };
            self.usage_by_message.insert(key, tokens);
        }
        if parent.is_none() {
            self.on_stop_reason(message);
            self.on_usage(&message["usage"]);
            if let Some(model) = message["model"].as_str().filter(|it| *it != "<synthetic>") {
                model.clone_into(&mut self.model);
            }
        }
        let text = |text: &str| serde_json::json!([{"type": "text", "text": text}]);
        let content = message["content"].as_str().map(text);
        let content = content.as_ref().unwrap_or(&message["content"]).as_array();
        let blocks = content.map(Vec::as_slice).unwrap_or_default();
        if parent.is_none() && (line["error"].is_string() || line["is_api_error_message"] == true) {
            self.errors.record_message(line, blocks);
            return;
        }
        for block in blocks {
            self.on_content(id, parent, block, line, turn);
        }
    }

    fn on_content(
        &mut self,
        id: &str,
        parent: Option<&str>,
        block: &Value,
        line: &Value,
        turn: &mut AdapterTurn,
    ) {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match (block["type"].as_str(), parent) {
            (Some("text"), None) if self.is_error_text(text("text")) => {
                self.errors.record_error_text(text("text"));
            }
            (Some("text"), None) => {
                self.messages.push_full(id, BlockKind::Text, text("text"), turn);
            }
            (Some("thinking"), None) => {
                self.messages.push_full(id, BlockKind::Thought, text("thinking"), turn);
            }
            (Some("text"), Some(parent)) if turn.has_tool(parent) => {
                self.calls.add_report(parent, text("text"), turn);
            }
            // The content is encrypted for the provider.
            (Some("redacted_thinking"), _) => {}
            (Some(kind), _) if kind.ends_with("tool_use") => {
                self.calls.finish_call(block, parent, turn);
            }
            (Some(kind), _) if kind.ends_with("tool_result") => {
                self.calls.on_result(block, &Value::Null, turn);
            }
            _ => turn.report_unmapped(line),
        }
    }

    fn on_user(&mut self, line: &Value, turn: &mut AdapterTurn) {
        if line["isReplay"] == true {
            // The prompt, repeated.
            return;
        }
        self.messages.on_message_complete();
        let content = line["message"]["content"].as_array();
        let Some(blocks) = content else { return turn.report_unmapped(line) };
        for block in blocks {
            let text = block["text"].as_str();
            if block["type"].as_str().is_some_and(|kind| kind.ends_with("tool_result")) {
                self.calls.on_result(block, &line["tool_use_result"], turn);
            } else if text.is_some_and(|text| text.starts_with("[Request interrupted by user")) {
                // The outcome of the turn reports this.
            } else if line["parent_tool_use_id"].is_string() && text.is_some() {
                // A sub-agent's prompt is the input of the call that started it.
            } else {
                turn.report_unmapped(line);
            }
        }
    }

    fn on_result(&mut self, line: &Value, turn: &mut AdapterTurn) {
        let main = || result::parse_tokens(&line["usage"], self.cached_tokens());
        let reported = result::tokens_since_last_result(line).or_else(main);
        let summed = result::sum_usage(self.usage_by_message.values());
        let usage = match self.flavor {
            // Qwen counts per session, including requests that do not belong to the turn.
            StreamFlavor::Qwen => summed,
            // The result does not include an interrupted request, although its input was used.
            StreamFlavor::Claude | StreamFlavor::Amp => {
                reported.filter(|it| 0 < it.input).or(summed).or(reported)
            }
        };
        if let Some(usage) = usage {
            turn.record_usage(usage);
        }
        if let Some(dollars) = self.cost_meter.turn_cost(line) {
            turn.record_cost(dollars);
        }
        let used_tokens = self.last_usage.input.saturating_add(self.last_usage.output);
        if let Some(size) =
            result::context_window(line, &self.model).filter(|_| 0 < self.last_usage.input)
        {
            turn.send_context_size(used_tokens, size);
        }
        if result::is_self_initiated(line) {
            return;
        }
        match result::parse_outcome(line, self.stop_reason.as_deref()) {
            Ok(stop) => {
                self.send_missing_text(line, turn);
                turn.complete(stop);
            }
            Err(failure) => turn.fail(failure),
        }
    }

    /// Sends text that only the result contains. The program's own commands respond only there, and
    /// an error that the turn survived is sent as text.
    fn send_missing_text(&mut self, line: &Value, turn: &mut AdapterTurn) {
        let error_text = self.errors.take_error_text();
        let answer = line["result"].as_str().filter(|_| !self.messages.has_text);
        if !turn.is_cancelled() {
            turn.send_text("", answer.or(error_text.as_deref()).unwrap_or_default());
        }
    }

    fn on_usage(&mut self, usage: &Value) {
        if let Some(tokens) =
            result::parse_tokens(usage, self.cached_tokens()).filter(|it| 0 < it.input)
        {
            self.last_usage = tokens;
        }
    }

    fn on_stop_reason(&mut self, from: &Value) {
        if let Some(reason) = from["stop_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    fn cached_tokens(&self) -> CachedTokens {
        match self.flavor {
            StreamFlavor::Claude | StreamFlavor::Amp => CachedTokens::Excluded,
            StreamFlavor::Qwen => CachedTokens::Included,
        }
    }
}
