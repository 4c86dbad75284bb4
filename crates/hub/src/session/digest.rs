//! A digest of a conversation for an agent that has lost it: plain text of limited size, made from events alone.

use crate::limits;
use jackfield_events::{
    AgentMessage, EventBody, SessionEvent, TurnEnded, TurnOutcome, TurnStarted,
};
use jackfield_protocol::Frame;
use serde_json::Value;
use std::{collections::VecDeque, fmt::Write as _};

/// The first prompt, and as many of the latest turns as fit.
#[derive(Debug, Default)]
pub(crate) struct ConversationDigest {
    first: Option<String>,
    turns: VecDeque<DigestTurn>,
    /// Turns that were left out.
    left_out: bool,
}

/// One turn.
#[derive(Debug, Default)]
struct DigestTurn {
    user: Option<String>,
    lines: Vec<Line>,
    end: Option<String>,
}

#[derive(Debug)]
enum Line {
    Said(String),
    Tool { id: String, kind: String, title: String, outcome: String },
}

impl ConversationDigest {
    /// Adds the next event. Events of the turn `running` and later are left out.
    pub(crate) fn take(&mut self, event: &SessionEvent, running: u64) {
        match &event.body {
            EventBody::Prompted(TurnStarted { turn, frame, .. }) if *turn < running => {
                let text = user_text(frame.bytes());
                if self.first.is_none() && *turn == 1 {
                    self.first = Some(text.clone());
                }
                self.turns.push_back(DigestTurn { user: Some(text), ..DigestTurn::default() });
                self.shrink();
            }
            EventBody::Said(AgentMessage { turn, frame, .. }) if *turn < running => {
                self.take_said(frame.bytes());
            }
            EventBody::Ended(TurnEnded { turn, outcome }) if *turn < running => {
                let end = how_it_ended(outcome);
                self.latest().end = Some(end);
            }
            _ => {}
        }
    }

    /// Much time has passed: of everything before, only the first prompt is kept.
    pub(crate) fn skip(&mut self) {
        self.left_out |= !self.turns.is_empty();
        self.turns.clear();
    }

    fn latest(&mut self) -> &mut DigestTurn {
        if self.turns.is_empty() {
            self.turns.push_back(DigestTurn::default());
        }
        self.turns.back_mut().expect("put there above")
    }

    fn take_said(&mut self, frame: &bytes::Bytes) {
        let Ok(frame) = Frame::parse(frame.clone()) else { return };
        let kind = frame.update().unwrap_or_default().into_owned();
        if !["agent_message_chunk", "tool_call", "tool_call_update"].contains(&kind.as_str()) {
            return;
        }
        let params = frame.params_value();
        let update = &params["update"];
        if kind == "agent_message_chunk" {
            self.latest().append_text(update["content"]["text"].as_str().unwrap_or_default());
        } else {
            self.latest().use_tool(update);
        }
        self.shrink();
    }

    /// Drops the oldest turns until the rest fits. A turn that is too long loses its beginning.
    fn shrink(&mut self) {
        while limits::DIGEST_BYTES_MAX < self.weight() {
            if 1 < self.turns.len() {
                self.turns.pop_front();
                self.left_out = true;
            } else {
                let lines = &mut self.latest().lines;
                if lines.len() < 2 {
                    return;
                }
                lines.remove(0);
            }
        }
    }

    fn weight(&self) -> usize {
        self.turns.iter().map(DigestTurn::weight).sum()
    }

    /// The text, or nothing if there were no turns.
    pub(crate) fn into_text(self) -> Option<String> {
        if self.first.is_none() && self.turns.is_empty() {
            return None;
        }
        let mut text = String::from(HEAD);
        // A first prompt that is among the latest turns is not repeated.
        let has_first = self.turns.front().is_some_and(|it| it.user == self.first);
        if let Some(first) = self.first.filter(|_| !has_first) {
            put(
                &mut text,
                format_args!("The conversation began with this request:\nUser: {first}\n"),
            );
        }
        if self.left_out {
            text.push_str("(What came after it is left out, up to the latest turns.)\n");
        }
        for turn in &self.turns {
            turn.write(&mut text);
        }
        text.push_str(TAIL);
        Some(text)
    }
}

const HEAD: &str = "[This is not from the user. The conversation below took place in an earlier \
session of yours that can no longer be opened. It is a digest of the record that Jackfield kept; \
take it as what was said and done so far.]\n\n";
const TAIL: &str = "\n[End of the digest. The user's own message follows.]";

impl DigestTurn {
    fn append_text(&mut self, text: &str) {
        if let Some(Line::Said(said)) = self.lines.last_mut() {
            said.push_str(text);
            keep_end(said);
        } else if !text.is_empty() {
            self.lines.push(Line::Said(cut(text).to_owned()));
        }
    }

    /// A tool call is one line, which its updates change.
    fn use_tool(&mut self, update: &Value) {
        let member = |name: &str| update[name].as_str().map(one_line);
        let id = member("toolCallId").unwrap_or_default();
        let known = self.lines.iter_mut().rev().find_map(|line| match line {
            Line::Tool { id: it, kind, title, outcome } if *it == id => {
                Some((kind, title, outcome))
            }
            _ => None,
        });
        let (new_kind, new_title) = (member("kind"), member("title"));
        let new_outcome = member("status");
        if let Some((kind, title, outcome)) = known {
            *kind = new_kind.unwrap_or_else(|| std::mem::take(kind));
            *title = new_title.unwrap_or_else(|| std::mem::take(title));
            *outcome = new_outcome.unwrap_or_else(|| std::mem::take(outcome));
        } else {
            let (kind, title) = (new_kind.unwrap_or_default(), new_title.unwrap_or_default());
            self.lines.push(Line::Tool {
                id,
                kind,
                title,
                outcome: new_outcome.unwrap_or_default(),
            });
        }
    }

    fn weight(&self) -> usize {
        let lines = self.lines.iter().map(|line| match line {
            Line::Said(text) => text.len() + 8,
            Line::Tool { id, kind, title, outcome } => {
                id.len() + kind.len() + title.len() + outcome.len() + 16
            }
        });
        64 + self.user.as_ref().map_or(0, String::len) + lines.sum::<usize>()
    }

    fn write(&self, text: &mut String) {
        if let Some(user) = &self.user {
            put(text, format_args!("\nUser: {user}\n"));
        }
        for line in &self.lines {
            match line {
                Line::Said(said) => put(text, format_args!("You: {said}\n")),
                Line::Tool { kind, title, outcome, .. } => {
                    let kind = if kind.is_empty() { "other" } else { kind };
                    let outcome = if outcome.is_empty() { "outcome unknown" } else { outcome };
                    put(text, format_args!("Tool ({kind}): {title}: {outcome}\n"));
                }
            }
        }
        let end = self.end.as_deref().unwrap_or("not recorded");
        if end != "end_turn" {
            put(text, format_args!("(The turn's end: {end})\n"));
        }
    }
}

fn put(text: &mut String, args: std::fmt::Arguments<'_>) {
    text.write_fmt(args).expect("a text grows");
}

/// The text blocks of a prompt; other blocks are only named.
fn user_text(frame: &[u8]) -> String {
    let frame: Value = serde_json::from_slice(frame).unwrap_or_default();
    let blocks = frame["params"]["prompt"].as_array().cloned().unwrap_or_default();
    let block = |it: &Value| match it["type"].as_str() {
        Some("text") => it["text"].as_str().unwrap_or_default().to_owned(),
        Some("resource_link") => format!("[{}]", it["uri"].as_str().unwrap_or("a file")),
        Some("resource") => {
            format!("[{}]", it["resource"]["uri"].as_str().unwrap_or("a file"))
        }
        other => format!("[{}]", other.unwrap_or("something")),
    };
    let text: Vec<String> = blocks.iter().map(block).collect();
    cut(&text.join("\n")).to_owned()
}

fn how_it_ended(outcome: &TurnOutcome) -> String {
    let json: Value = serde_json::from_str(outcome.json().as_str()).unwrap_or_default();
    let (member, else_) = match outcome {
        TurnOutcome::Stopped(_) => ("stopReason", "stopped"),
        TurnOutcome::Failed(_) | TurnOutcome::Interrupted(_) => ("message", outcome.name()),
    };
    let text = json[member].as_str().unwrap_or(else_);
    if member == "message" {
        format!("{}: {}", outcome.name(), one_line(text))
    } else {
        text.into()
    }
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// The beginning of a long text.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(limits::DIGEST_PIECE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of a growing text, because the conclusion of an agent matters most.
fn keep_end(text: &mut String) {
    if text.len() <= 2 * limits::DIGEST_PIECE_MAX {
        return;
    }
    let mut from = text.len() - limits::DIGEST_PIECE_MAX;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.replace_range(..from, "[…] ");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seq, Time};
    use jackfield_events::RawJson;
    use serde_json::json;

    fn event(body: EventBody) -> SessionEvent {
        SessionEvent { seq: Seq(1), at: Time(1), body }
    }

    fn prompted(turn: u64, text: &str) -> SessionEvent {
        let prompt = json!([{ "type": "text", "text": text }, { "type": "image", "data": "" }]);
        let frame = json!({ "method": "session/prompt", "params": { "prompt": prompt } });
        let frame = RawJson::trusted(frame.to_string());
        event(EventBody::Prompted(TurnStarted { turn, by: "zed".into(), prompt: None, frame }))
    }

    fn said(turn: u64, update: &Value) -> SessionEvent {
        let params = json!({ "sessionId": "s", "update": update });
        let frame = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        event(EventBody::Said(AgentMessage {
            turn,
            late: false,
            frame: RawJson::trusted(frame.to_string()),
        }))
    }

    fn chunk(turn: u64, text: &str) -> SessionEvent {
        let content = json!({ "type": "text", "text": text });
        said(turn, &json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
    }

    fn ended(turn: u64, outcome: TurnOutcome) -> SessionEvent {
        event(EventBody::Ended(TurnEnded { turn, outcome }))
    }

    fn stopped() -> TurnOutcome {
        TurnOutcome::Stopped(RawJson::trusted(r#"{"stopReason":"end_turn"}"#))
    }

    #[test]
    fn a_digest_tells_words_tools_and_ends_in_order() {
        let mut digest = ConversationDigest::default();
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute",
            "title": "npm test", "status": "pending",
        });
        let done =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed" });
        let error = RawJson::trusted(r#"{"code":1,"message":"too long"}"#);
        let events = [
            prompted(1, "fix it"),
            chunk(1, "I will "),
            chunk(1, "look."),
            said(1, &call),
            said(1, &done),
            ended(1, stopped()),
            prompted(2, "and now?"),
            ended(2, TurnOutcome::Failed(error)),
            prompted(3, "this one runs"),
        ];
        for event in &events {
            digest.take(event, 3);
        }
        let text = digest.into_text().expect("there is something to tell");
        let body = "\nUser: fix it\n[image]\nYou: I will look.\nTool (execute): npm test: failed\n\
            \nUser: and now?\n[image]\n(The turn's end: failed: too long)\n";
        assert_eq!(text, format!("{HEAD}{body}{TAIL}"));
    }

    #[test]
    fn a_long_conversation_keeps_its_beginning_and_its_end_within_the_bound() {
        let mut digest = ConversationDigest::default();
        let long = "é".repeat(3_000);
        for turn in 1..=50 {
            digest.take(&prompted(turn, &format!("request {turn}")), 99);
            (0..5).for_each(|_| digest.take(&chunk(turn, &long), 99));
            digest.take(&ended(turn, stopped()), 99);
        }
        let text = digest.into_text().expect("there is something to tell");
        assert!(
            text.len() < limits::DIGEST_BYTES_MAX + 2 * limits::DIGEST_PIECE_MAX,
            "{}",
            text.len()
        );
        assert!(text.contains("request 1\n") && text.contains("request 50\n"));
        assert!(text.contains("left out") && !text.contains("request 2\n"));
    }

    #[test]
    fn nothing_said_makes_no_digest() {
        assert_eq!(ConversationDigest::default().into_text(), None);
    }
}
