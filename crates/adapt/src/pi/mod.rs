//! `pi --mode rpc`: one program for the whole session, commands and answers to dialogs on its stdin.
//! The events are those of `--mode json`, where nothing is answered.

mod dialog;
mod message;

use crate::calls::{Calls, End};
use crate::tally::{Tally, count};
use crate::{
    Answer, Block, Can, Dialect, Failure, Life, Prompt, Setting, Start, Status, Stop, Tool, Turn,
    Usage, kinds, provider,
};
use dialog::Dialogs;
use jackfield_agents::Exit;
use message::Messages;
use serde_json::{Value, json};

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Pi::default())
}

#[derive(Default)]
struct Pi {
    calls: Calls,
    messages: Messages,
    dialogs: Dialogs,
    tally: Tally,
    /// The session's id, until the first answer of a model has made it one that can be resumed.
    session: Option<String>,
    /// Whether it is at work.
    works: bool,
    /// How the last answer of the model ended.
    stop: Option<Result<Stop, Failure>>,
    prompts: u64,
}

impl Dialect for Pi {
    fn life(&self) -> Life {
        Life::Session
    }

    fn can(&self) -> Can {
        Can { images: true, mcp: false }
    }

    fn open(&mut self, start: &Start<'_>, turn: &mut Turn) {
        *self = Pi { calls: Calls::at(start.cwd), ..Pi::default() };
        turn.write(&json!({"id": "state", "type": "get_state"}));
    }

    fn prompt(&mut self, prompt: &Prompt, turn: &mut Turn) {
        self.calls = Calls::at(self.calls.cwd());
        self.messages = Messages::default();
        self.tally = Tally::default();
        self.stop = None;
        self.prompts += 1;
        let id = format!("prompt-{}", self.prompts);
        let mut command = json!({"id": id, "type": "prompt", "message": prompt.text()});
        let images: Vec<Value> = prompt.blocks.iter().filter_map(image).collect();
        if !images.is_empty() {
            command["images"] = Value::Array(images);
        }
        turn.write(&command);
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        match event["type"].as_str() {
            Some("session") => self.session = event["id"].as_str().map(str::to_owned),
            Some("response") => self.on_response(&event, turn),
            Some("agent_start") => self.works = true,
            Some("agent_end" | "agent_settled") => self.on_agent_end(&event, turn),
            Some("message_start" | "message_update" | "message_end") => {
                self.on_message(&event, turn);
            }
            Some("turn_end") => self.on_turn_end(&event["message"], turn),
            // A call between turns would have nobody to see to its end.
            Some("tool_execution_start" | "tool_execution_update" | "tool_execution_end")
                if event["toolCallId"].is_string() && turn.is_running() =>
            {
                self.on_tool(&event, turn);
            }
            Some("extension_ui_request") => self.dialogs.on_request(&event, turn),
            Some(kind) => self.on_other(kind, &event, turn),
            None => turn.unmapped(&event),
        }
    }

    fn cancel(&mut self, turn: &mut Turn) -> bool {
        self.dialogs.dismiss(turn);
        turn.write(&json!({"id": "abort", "type": "abort"}));
        true
    }

    fn answer(&mut self, key: &str, answer: Answer<'_>, turn: &mut Turn) {
        self.dialogs.on_answer(key, answer, turn);
    }

    fn set(&mut self, setting: Setting<'_>, turn: &mut Turn) -> bool {
        let command = match setting {
            Setting::Reasoning(level) if level != "default" => {
                Some(json!({"id": "set", "type": "set_thinking_level", "level": level}))
            }
            Setting::Model(model) => model.split_once('/').map(|(provider, model)| {
                json!({"id": "set", "type": "set_model", "provider": provider, "modelId": model})
            }),
            _ => None,
        };
        if let Some(command) = &command {
            turn.write(command);
        }
        command.is_some()
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        self.works = false;
        let failure = provider::failure_of_exit(exit, turn);
        turn.fail(failure);
    }
}

fn image(block: &Block) -> Option<Value> {
    match block {
        Block::Image { mime, data } => {
            Some(json!({"type": "image", "data": data, "mimeType": mime}))
        }
        _ => None,
    }
}

impl Pi {
    fn on_response(&mut self, event: &Value, turn: &mut Turn) {
        let words = event["error"].as_str().unwrap_or("no reason given");
        let id = event["id"].as_str().unwrap_or_default();
        match (event["success"] == true, event["command"].as_str()) {
            (true, Some("get_state")) => {
                let names = ["sessionId", "sessionFile"];
                self.session = kinds::text_of(&event["data"], &names).map(str::to_owned);
            }
            // Nothing was there to be aborted, so nothing will end.
            (true, Some("abort")) if !self.works && turn.is_cancelled() => {
                turn.done(Stop::Cancelled);
            }
            (false, _) if id.starts_with("prompt-") => {
                turn.fail(provider::failure(&format!("prompt rejected: {words}"), None));
            }
            (false, command) => {
                turn.notice(&format!("`{}` failed: {words}", command.unwrap_or("a command")));
            }
            // Accepted is not finished.
            (true, _) => {}
        }
    }

    fn on_message(&mut self, event: &Value, turn: &mut Turn) {
        let message = &event["message"];
        match message["role"].as_str() {
            // The prompt and the results as they were told already.
            Some("user" | "system" | "toolResult") => return,
            Some("assistant") if event["type"] == "message_end" => {
                if let Some(session) = self.session.take() {
                    turn.native(&session);
                }
            }
            _ => {}
        }
        let inner = &event["assistantMessageEvent"];
        match inner["type"].as_str() {
            Some("toolcall_start") if inner["id"].is_string() && turn.is_running() => {
                let title = kinds::text_of(inner, &["toolName"]).unwrap_or("tool");
                let tool = Tool::new().title(title).status(Status::Pending);
                turn.tool(inner["id"].as_str().unwrap_or_default(), tool);
            }
            Some("toolcall_end") if inner["toolCall"]["id"].is_string() && turn.is_running() => {
                let call = &inner["toolCall"];
                let id = call["id"].as_str().unwrap_or_default();
                self.calls.begin(id, call["name"].as_str().unwrap_or(id), &call["arguments"], turn);
            }
            _ => self.messages.on_message(event, turn),
        }
    }

    fn on_turn_end(&mut self, message: &Value, turn: &mut Turn) {
        let usage = &message["usage"];
        if let Some(fresh) = count(usage, &["input"]) {
            let (read, write) = (count(usage, &["cacheRead"]), count(usage, &["cacheWrite"]));
            // It counts cached tokens beside the input.
            let input = fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0));
            let output = count(usage, &["output"]).unwrap_or(0);
            let thought = count(usage, &["reasoning"]);
            let usage_of = Usage { input, output, thought, cached_read: read, cached_write: write };
            self.tally.add(usage_of, usage["cost"]["total"].as_f64(), turn);
        }
        self.stop = Some(match message["stopReason"].as_str() {
            Some("length") => Ok(Stop::MaxTokens),
            Some("aborted") => Ok(Stop::Cancelled),
            Some("error") => {
                let words = message["errorMessage"].as_str().unwrap_or("an error without words");
                Err(provider::failure(words, None))
            }
            _ => Ok(Stop::EndTurn),
        });
    }

    /// Newer versions say whether they will try again, and when they are really done; the older ones
    /// have one end.
    fn on_agent_end(&mut self, event: &Value, turn: &mut Turn) {
        if event["type"] == "agent_end" && event["willRetry"].is_boolean() {
            return;
        }
        self.works = false;
        match self.stop.take() {
            Some(Ok(stop)) => turn.done(stop),
            Some(Err(failure)) => turn.fail(failure),
            None => turn.done(Stop::EndTurn),
        }
    }

    fn on_tool(&mut self, event: &Value, turn: &mut Turn) {
        let id = event["toolCallId"].as_str().unwrap_or_default();
        let name = event["toolName"].as_str().unwrap_or(id);
        match event["type"].as_str() {
            Some("tool_execution_start") => self.calls.begin(id, name, &event["args"], turn),
            Some("tool_execution_update") => {
                self.calls.show(id, &words_of(&event["partialResult"]), turn);
            }
            _ => {
                let (result, failed) = (&event["result"], event["isError"] == true);
                let text = words_of(result);
                self.calls.end(id, End { failed, text: &text, output: &result["details"] }, turn);
            }
        }
    }

    fn on_other(&mut self, kind: &str, event: &Value, turn: &mut Turn) {
        match kind {
            "auto_retry_start" | "summarization_retry_scheduled" => {
                if kind == "auto_retry_start" {
                    self.messages.restart();
                }
                let (attempt, most) = (&event["attempt"], &event["maxAttempts"]);
                let words = event["errorMessage"].as_str().unwrap_or("no reason given");
                let words = provider::failure(words, None).message;
                turn.notice(&format!("attempt {attempt} of {most} follows: {words}"));
            }
            "auto_retry_end" if event["success"] == false => {
                if let Some(words) = event["finalError"].as_str() {
                    self.stop = Some(Err(provider::failure(words, None)));
                }
            }
            "compaction_start" | "auto_compaction_start" => {
                turn.notice("the conversation is made shorter");
            }
            "compaction_end" | "auto_compaction_end" if event["errorMessage"].is_string() => {
                turn.notice(event["errorMessage"].as_str().unwrap_or_default());
            }
            "extension_error" => {
                let words = event["error"].as_str().unwrap_or("no reason given");
                turn.notice(&format!("an extension failed: {words}"));
            }
            // Signs of life.
            "ready" | "turn_start" | "auto_retry_end" => {}
            _ => turn.unmapped(event),
        }
    }
}

/// The texts of a tool's result.
fn words_of(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[cfg(test)]
mod tests;
