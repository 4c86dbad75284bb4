//! What a client heard of one turn.

use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Turn {
    id: u64,
    /// Where it begins in what the client heard.
    pub(super) from: usize,
    /// How often the agent asked for permission.
    pub(super) asks: usize,
    /// The agent's text.
    pub(super) text: String,
    pub(super) tools: BTreeMap<String, Tool>,
    /// The answer to the prompt.
    pub(super) answer: Option<Value>,
}

/// A tool call, as its updates add up.
#[derive(Debug, Default)]
pub(super) struct Tool {
    pub(super) status: String,
    /// Everything said of it.
    pub(super) said: String,
}

impl Turn {
    pub(super) fn new(id: u64, from: usize) -> Turn {
        let (text, tools) = (String::new(), BTreeMap::new());
        Turn { id, from, asks: 0, text, tools, answer: None }
    }

    pub(super) fn is_answer(&self, message: &Value) -> bool {
        message.get("method").is_none() && message["id"] == self.id
    }

    pub(super) fn hear(&mut self, message: &Value) {
        let Some(update) = message.pointer("/params/update") else { return };
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                self.text += update.pointer("/content/text").and_then(Value::as_str).unwrap_or("");
            }
            Some("tool_call" | "tool_call_update") => {
                let id = update["toolCallId"].as_str().unwrap_or_default();
                let tool = self.tools.entry(id.to_owned()).or_default();
                if let Some(status) = update["status"].as_str() {
                    status.clone_into(&mut tool.status);
                }
                for part in ["content", "rawOutput", "_meta"] {
                    tool.said += &update[part].to_string();
                }
            }
            _ => {}
        }
    }

    /// Why it stopped, or `error`.
    pub(super) fn stop(&self) -> &str {
        let answer = self.answer.as_ref().expect("the turn is over");
        answer.pointer("/result/stopReason").and_then(Value::as_str).unwrap_or("error")
    }

    /// How many messages of the user the model saw.
    pub(super) fn count(&self) -> Option<u32> {
        let (_, rest) = self.text.split_once("I see ")?;
        rest.split(' ').next()?.parse().ok()
    }
}
