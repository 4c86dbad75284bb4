//! The lines of a stream in Claude Code's format: who says what, and when the turn is over.

use super::calls::Calls;
use super::result::{self, Bill, Cached};
use super::speech::{Speech, Voice};
use super::trouble::Trouble;
use crate::{Turn, Usage};
use serde_json::Value;
use std::collections::BTreeMap;

/// System lines that only repeat what calls, results and notifications say.
const REPEATED: [&str; 6] = [
    "permission_denied",
    "thinking_tokens",
    "task_started",
    "task_progress",
    "task_updated",
    "background_tasks_changed",
];

/// Whose stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    Claude,
    Amp,
    Qwen,
}

pub(super) struct Talk {
    flavor: Flavor,
    speech: Speech,
    pub(super) calls: Calls,
    bill: Bill,
    /// The permission mode that the client knows of; none where it knows of no modes.
    pub(super) mode: Option<String>,
    /// Descriptions of slash commands.
    pub(super) described: BTreeMap<String, String>,
    commands_told: Vec<(String, String)>,
    /// Tokens of this turn's messages, for programs whose result does not tell the turn's.
    used: BTreeMap<String, Usage>,
    /// Tokens of the last request of the main agent, and its model.
    last: Usage,
    model: String,
    stop_reason: Option<String>,
    pub(super) trouble: Trouble,
}

impl Talk {
    pub(super) fn new(flavor: Flavor) -> Talk {
        Talk {
            flavor,
            speech: Speech::default(),
            calls: Calls::default(),
            bill: Bill::default(),
            mode: None,
            described: BTreeMap::new(),
            commands_told: Vec::new(),
            used: BTreeMap::new(),
            last: Usage::default(),
            model: String::new(),
            stop_reason: None,
            trouble: Trouble::default(),
        }
    }

    /// A program was started.
    pub(super) fn open(&mut self, cwd: &str, mode: Option<&str>, resumed: bool) {
        cwd.clone_into(&mut self.calls.cwd);
        self.mode = mode.filter(|_| self.flavor == Flavor::Claude).map(str::to_owned);
        self.bill.open(resumed);
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.speech = Speech::default();
        self.calls.begin();
        self.used.clear();
        self.last = Usage::default();
        self.stop_reason = None;
        self.trouble = Trouble::default();
    }

    pub(super) fn on_line(&mut self, line: &Value, turn: &mut Turn) {
        match line["type"].as_str() {
            Some("system") => self.on_system(line, turn),
            Some("stream_event") => self.on_event(line, turn),
            Some("assistant") => self.on_assistant(line, turn),
            Some("user") => self.on_user(line, turn),
            Some("result") => self.on_result(line, turn),
            Some("rate_limit_event") if line["rate_limit_info"]["status"] == "rejected" => {
                turn.notice("the plan's limit is reached");
            }
            // They only say that it is still there.
            Some("keep_alive" | "tool_progress") => {}
            _ => turn.unmapped(line),
        }
    }

    fn on_system(&mut self, line: &Value, turn: &mut Turn) {
        match line["subtype"].as_str() {
            Some("init") => self.on_init(line, turn),
            Some("status") => {
                self.on_mode(&line["permissionMode"], turn);
                if line["status"] == "compacting" {
                    turn.notice("compacting the conversation");
                }
            }
            Some("compact_boundary") => turn.notice("the conversation was compacted"),
            Some("api_retry") => {
                self.speech.cut();
                self.calls.cut(turn);
                turn.notice(&self.trouble.on_retry(line));
            }
            Some("retry") => {
                self.speech.restart();
                self.calls.cut(turn);
                turn.notice(&self.trouble.on_retry(&line["data"]));
            }
            Some("task_notification") => self.on_task_end(line, turn),
            Some(word) if REPEATED.contains(&word) => {}
            _ => turn.unmapped(line),
        }
    }

    /// The end of a task whose call is still open is told by its result.
    fn on_task_end(&self, line: &Value, turn: &mut Turn) {
        let told = if line["data"].is_object() { &line["data"] } else { line };
        if told["tool_use_id"].as_str().is_some_and(|id| self.calls.is_open(id)) {
            return;
        }
        let status = told["status"].as_str().unwrap_or("ended");
        let summary = told["summary"].as_str().map(|it| format!(": {it}")).unwrap_or_default();
        turn.notice(&format!("a task in the background {status}{summary}"));
    }

    /// Comes again with every turn.
    fn on_init(&mut self, line: &Value, turn: &mut Turn) {
        if let Some(id) = line["session_id"].as_str() {
            turn.native(id);
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
            .map(|name| (name.to_owned(), self.described.get(name).cloned().unwrap_or_default()))
            .collect();
        if commands != self.commands_told {
            turn.commands(&commands);
            self.commands_told = commands;
        }
    }

    fn on_mode(&mut self, mode: &Value, turn: &mut Turn) {
        if let (Some(mode), Some(known)) = (mode.as_str(), &mut self.mode)
            && mode != known
        {
            turn.mode(mode);
            mode.clone_into(known);
        }
    }

    fn on_event(&mut self, line: &Value, turn: &mut Turn) {
        if line["parent_tool_use_id"].is_string() {
            // A sub-agent's messages come finished as well.
            return;
        }
        let event = &line["event"];
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str() {
            Some("message_start") => {
                let message = &event["message"];
                self.trouble.on_answer();
                self.speech.message(message["id"].as_str().unwrap_or_default());
                self.on_usage(&message["usage"]);
            }
            Some("content_block_start") => self.on_block(index, &event["content_block"], turn),
            Some("content_block_delta") => self.on_delta(index, line, turn),
            Some("content_block_stop") => {
                self.speech.stop(index);
                self.calls.stop(index, turn);
            }
            Some("message_delta") => {
                self.on_stop_reason(&event["delta"]);
                if let Some(output) = event["usage"]["output_tokens"].as_u64() {
                    self.last.output = output;
                }
            }
            Some("message_stop") if line["abandoned_blocks"].is_object() => {
                self.speech.cut();
                self.calls.cut(turn);
            }
            Some("message_stop") => self.speech.arrived(),
            Some("ping") => {}
            // No goal is no news.
            Some("goal_state") if event["goal_state"]["goal"].is_null() => {}
            _ => turn.unmapped(line),
        }
    }

    fn on_block(&mut self, index: u64, block: &Value, turn: &mut Turn) {
        match block["type"].as_str() {
            Some("text") => self.speech.start(index, Voice::Text),
            Some("thinking") => self.speech.start(index, Voice::Thought),
            Some(kind) if kind.ends_with("tool_use") => self.calls.start(index, block, turn),
            // Whatever it is, it comes again in the finished message.
            _ => {}
        }
    }

    fn on_delta(&mut self, index: u64, line: &Value, turn: &mut Turn) {
        let delta = &line["event"]["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match delta["type"].as_str() {
            Some("text_delta") if self.is_complaint(text("text")) => {
                self.trouble.complain(text("text"));
            }
            Some("text_delta") => self.speech.piece(index, Voice::Text, text("text"), turn),
            Some("thinking_delta") => {
                self.speech.piece(index, Voice::Thought, text("thinking"), turn);
            }
            Some("input_json_delta") => self.calls.piece(index, text("partial_json")),
            // For the provider, not for people.
            Some("signature_delta") => {}
            _ => turn.unmapped(line),
        }
    }

    /// Qwen lets the agent speak its provider's errors.
    fn is_complaint(&self, text: &str) -> bool {
        self.flavor == Flavor::Qwen && text.starts_with("[API Error:")
    }

    fn on_assistant(&mut self, line: &Value, turn: &mut Turn) {
        let message = &line["message"];
        let id = message["id"].as_str().unwrap_or_default();
        let parent = line["parent_tool_use_id"].as_str();
        if let Some(used) = result::tokens(&message["usage"], self.cached()) {
            // Lines of one message repeat its tokens.
            let unnamed = || format!("#{}", self.used.len());
            let key = if id.is_empty() { unnamed() } else { id.to_owned() };
            self.used.insert(key, used);
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
            self.trouble.on_message(line, blocks);
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
        turn: &mut Turn,
    ) {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match (block["type"].as_str(), parent) {
            (Some("text"), None) if self.is_complaint(text("text")) => {
                self.trouble.complain(text("text"));
            }
            (Some("text"), None) => self.speech.whole(id, Voice::Text, text("text"), turn),
            (Some("thinking"), None) => {
                self.speech.whole(id, Voice::Thought, text("thinking"), turn);
            }
            (Some("text"), Some(parent)) if turn.knows_tool(parent) => {
                self.calls.report(parent, text("text"), turn);
            }
            // Encrypted: nobody but the provider can read it.
            (Some("redacted_thinking"), _) => {}
            (Some(kind), _) if kind.ends_with("tool_use") => self.calls.whole(block, parent, turn),
            (Some(kind), _) if kind.ends_with("tool_result") => {
                self.calls.result(block, &Value::Null, turn);
            }
            _ => turn.unmapped(line),
        }
    }

    fn on_user(&mut self, line: &Value, turn: &mut Turn) {
        if line["isReplay"] == true {
            // Our own prompt.
            return;
        }
        self.speech.arrived();
        let content = line["message"]["content"].as_array();
        let Some(blocks) = content else { return turn.unmapped(line) };
        for block in blocks {
            let text = block["text"].as_str();
            if block["type"].as_str().is_some_and(|kind| kind.ends_with("tool_result")) {
                self.calls.result(block, &line["tool_use_result"], turn);
            } else if text.is_some_and(|text| text.starts_with("[Request interrupted by user")) {
                // The outcome says it.
            } else if line["parent_tool_use_id"].is_string() && text.is_some() {
                // A sub-agent's prompt is the input of the call that started it.
            } else {
                turn.unmapped(line);
            }
        }
    }

    fn on_result(&mut self, line: &Value, turn: &mut Turn) {
        let main = || result::tokens(&line["usage"], self.cached());
        let told = result::spent(line).or_else(main);
        let summed = result::sum(self.used.values());
        let usage = match self.flavor {
            // Qwen counts the session, and requests that are none of the turn's.
            Flavor::Qwen => summed,
            // Nothing is told of a request that was interrupted, though its input went in.
            Flavor::Claude | Flavor::Amp => told.filter(|it| 0 < it.input).or(summed).or(told),
        };
        if let Some(usage) = usage {
            turn.usage(usage);
        }
        if let Some(dollars) = self.bill.turn(line) {
            turn.cost(dollars);
        }
        let used = self.last.input.saturating_add(self.last.output);
        if let Some(size) = result::window(line, &self.model).filter(|_| 0 < self.last.input) {
            turn.context(used, size);
        }
        if result::is_foreign(line) {
            return;
        }
        match result::outcome(line, self.stop_reason.as_deref()) {
            Ok(stop) => {
                self.say_the_rest(line, turn);
                turn.done(stop);
            }
            Err(failure) => turn.fail(failure),
        }
    }

    /// Commands of the program itself answer only here, and a complaint after which all went well
    /// is not a failure.
    fn say_the_rest(&mut self, line: &Value, turn: &mut Turn) {
        let complaint = self.trouble.take_complaint();
        let answer = line["result"].as_str().filter(|_| !self.speech.has_text);
        if !turn.is_cancelled() {
            turn.text("", answer.or(complaint.as_deref()).unwrap_or_default());
        }
    }

    fn on_usage(&mut self, usage: &Value) {
        if let Some(used) = result::tokens(usage, self.cached()).filter(|used| 0 < used.input) {
            self.last = used;
        }
    }

    fn on_stop_reason(&mut self, from: &Value) {
        if let Some(reason) = from["stop_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    fn cached(&self) -> Cached {
        match self.flavor {
            Flavor::Claude | Flavor::Amp => Cached::Beside,
            Flavor::Qwen => Cached::Within,
        }
    }
}
