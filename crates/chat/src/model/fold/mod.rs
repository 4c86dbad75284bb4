//! Payloads of a stream, one after the other, make deltas and in the end an answer. No I/O.

#[cfg(test)]
mod tests;

use super::{
    Answer, Delta, Finish, Tokens,
    drafts::Drafts,
    text_calls::Screen,
    thinking::{Part, Thinking},
    trouble,
};
use serde_json::Value;

/// What a server says in the middle of its stream instead of going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The status it would have answered with, if it tells.
    pub(crate) status: Option<u16>,
    /// As the server wrote it, unredacted.
    pub(crate) json: String,
}

pub(crate) struct Fold {
    answer: Answer,
    drafts: Drafts,
    thinking: Thinking,
    screen: Screen,
    /// How many payloads were Chat Completions.
    read: usize,
    begun: bool,
    done: bool,
}

impl Fold {
    /// `offered` are the names of the tools the model knows; `mark` begins the ids that the server
    /// forgets to give, and should not have been used before.
    pub(crate) fn new(offered: Vec<String>, mark: &str) -> Fold {
        Fold {
            answer: Answer::default(),
            drafts: Drafts::new(mark),
            thinking: Thinking::default(),
            screen: Screen::new(offered),
            read: 0,
            begun: false,
            done: false,
        }
    }

    /// The data of one event, or a whole body.
    pub(crate) fn push(
        &mut self,
        data: &str,
        heard: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Complaint> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            (self.done, self.begun) = (true, true);
            return Ok(());
        }
        let payload: Value = match serde_json::from_str(data) {
            Ok(payload) => payload,
            Err(why) => {
                tracing::warn!(%why, bytes = data.len(), "a payload of the stream is no JSON");
                return Ok(());
            }
        };
        if let Some(complaint) = complaint(&payload) {
            return Err(complaint);
        }
        self.read += usize::from(payload.get("choices").is_some() || payload["usage"].is_object());
        self.read_usage(&payload["usage"]);
        // We ask for one choice; who sends several has one that is first.
        let first = payload["choices"]
            .as_array()
            .and_then(|it| it.iter().find(|it| it["index"].as_u64().unwrap_or(0) == 0));
        if let Some(choice) = first {
            self.read_choice(choice, heard);
        }
        Ok(())
    }

    /// Something was said, or said to be over: the model has read its prompt.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// `[DONE]` came.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Nothing of what came was Chat Completions.
    pub(crate) fn is_foreign(&self) -> bool {
        self.read == 0 && !self.done
    }

    /// The stream ended: what was held back is told.
    pub(crate) fn finish(mut self, heard: &mut dyn FnMut(Delta<'_>)) -> Answer {
        if let Some(part) = self.thinking.finish() {
            self.tell(part.as_part(), heard);
        }
        let Fold { mut answer, mut drafts, screen, .. } = self;
        let written = screen.finish(&mut |text| {
            answer.text.push_str(text);
            heard(Delta::Text(text));
        });
        // A server that reads calls out of the text may leave them there too.
        if drafts.is_empty() {
            answer.written = !written.calls.is_empty();
            written.calls.iter().for_each(|it| drafts.push(it, heard));
        }
        let calls = drafts.finish(heard);
        let (calls, nameless): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|it| !it.name.is_empty());
        let garbled: Vec<String> = written
            .garbled
            .into_iter()
            .chain(nameless.into_iter().map(|it| it.arguments))
            .collect();
        answer.garbled = (!garbled.is_empty()).then(|| garbled.join("\n"));
        answer.calls = calls;
        answer
    }

    fn read_choice(&mut self, choice: &Value, heard: &mut dyn FnMut(Delta<'_>)) {
        // A whole answer has a message where a stream has deltas.
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let reasoning = [&delta["reasoning_content"], &delta["reasoning"]];
        if let Some(thought) =
            reasoning.iter().filter_map(|it| it.as_str()).find(|it| !it.is_empty())
        {
            self.tell(Part::Thought(thought), heard);
        }
        self.read_content(&delta["content"], false, heard);
        self.read_content(&delta["refusal"], false, heard);
        for entry in delta["tool_calls"].as_array().into_iter().flatten() {
            self.begun = true;
            self.drafts.push(entry, heard);
        }
        if delta["function_call"].is_object() {
            self.begun = true;
            self.drafts.push(&delta["function_call"], heard);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.begun = true;
            self.answer.finish = match reason {
                "length" | "max_tokens" => Finish::Length,
                "content_filter" | "refusal" => Finish::Refusal,
                _ => Finish::Stop,
            };
        }
    }

    /// A string, or parts that are texts or thoughts.
    fn read_content(
        &mut self,
        content: &Value,
        is_thought: bool,
        heard: &mut dyn FnMut(Delta<'_>),
    ) {
        match content {
            Value::String(text) if is_thought => self.tell(Part::Thought(text), heard),
            Value::String(text) => self.read_text(text, heard),
            Value::Array(parts) => {
                for part in parts {
                    self.read_content(part, is_thought, heard);
                }
            }
            Value::Object(part) => {
                let inside = |key: &str| part.get(key).unwrap_or(&Value::Null);
                self.read_content(inside("text"), is_thought, heard);
                self.read_content(inside("thinking"), true, heard);
            }
            _ => {}
        }
    }

    fn read_text(&mut self, text: &str, heard: &mut dyn FnMut(Delta<'_>)) {
        self.begun |= !text.is_empty();
        let mut thinking = std::mem::take(&mut self.thinking);
        thinking.push(text, &mut |part| self.tell(part, heard));
        self.thinking = thinking;
    }

    fn tell(&mut self, part: Part<'_>, heard: &mut dyn FnMut(Delta<'_>)) {
        let Fold { answer, screen, .. } = self;
        match part {
            Part::Thought(thought) if !thought.is_empty() => {
                self.begun = true;
                answer.thought.push_str(thought);
                heard(Delta::Thought(thought));
            }
            Part::Thought(_) => {}
            Part::Text(text) => screen.push(text, &mut |text| {
                answer.text.push_str(text);
                heard(Delta::Text(text));
            }),
        }
    }

    /// Some tell it with each payload: the last one counts.
    fn read_usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let number = |it: &Value| it.as_u64().unwrap_or(0);
        self.answer.tokens = Some(Tokens {
            input: number(&usage["prompt_tokens"]),
            output: number(&usage["completion_tokens"]),
            thought: number(&usage["completion_tokens_details"]["reasoning_tokens"]),
            cached: number(&usage["prompt_tokens_details"]["cached_tokens"]),
        });
    }
}

fn complaint(payload: &Value) -> Option<Complaint> {
    let error = &payload["error"];
    let is_error = error.is_object() || error.is_string() || payload["object"] == "error";
    if !is_error {
        return None;
    }
    let codes = [
        &error["code"],
        &error["status"],
        &error["status_code"],
        &payload["code"],
        &payload["status"],
    ];
    let status = codes.iter().find_map(|it| {
        let number = it.as_u64().or_else(|| it.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|it| (400..600).contains(it))
    });
    if trouble::message(payload).is_none() {
        tracing::warn!("an error in the stream has no message");
    }
    Some(Complaint { status, json: payload.to_string() })
}
