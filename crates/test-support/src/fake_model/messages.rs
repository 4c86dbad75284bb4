//! Anthropic Messages.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{Asked, CACHED_TOKENS, Dialect, PROMPT_TOKENS, halves},
    problem::Problem,
    reply::Reply,
    script::Script,
    talk::{Talk, Tool, text_of},
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "messages",
    serves: |path| path.ends_with("/messages"),
    streams: |asked| asked.body["stream"] == true,
    read,
    whole,
    stream,
    error,
    retry_after: &[429, 529],
    count: |path, tokens| {
        path.ends_with("/messages/count_tokens").then(|| json!({"input_tokens": tokens}))
    },
};

fn read(body: &Value) -> Talk {
    let mut talk = Talk::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] == "user" {
            read_user(&message["content"], &mut talk);
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if let Some(name) = tool["name"].as_str() {
            talk.tools.push(Tool::function(name, &tool["input_schema"]));
        }
    }
    let format = body["output_config"].get("format").or(body.get("output_format"));
    talk.schema = format.and_then(|it| it.get("schema")).cloned();
    talk
}

/// What tools answered and what the user typed share a message: clients merge neighbours.
fn read_user(content: &Value, talk: &mut Talk) {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let mut answers = blocks.iter().filter(|it| it["type"] == "tool_result");
    if let Some(last) = answers.next_back() {
        talk.add_tool_answer(text_of(&last["content"]));
    }
    // Claude Code says this itself when a turn was cancelled.
    let is_typed = |it: &&str| !it.starts_with("[Request interrupted by user");
    let texts = blocks.iter().filter_map(|it| it["text"].as_str()).chain(content.as_str());
    talk.add_user(&texts.filter(is_typed).collect::<Vec<_>>().join("\n"));
}

fn whole(asked: &Asked<'_>, script: &Script) -> Value {
    let mut content = Vec::new();
    if !script.thoughts.is_empty() {
        let thinking = script.thoughts.concat();
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    content.push(json!({"type": "text", "text": script.chunks.concat()}));
    for (index, call) in script.calls.iter().enumerate() {
        let mut block = tool_use(asked, index, &call.name);
        block["input"] = call.arguments.clone();
        content.push(block);
    }
    let mut message = message(asked, script.chunks.len());
    message["content"] = json!(content);
    message["stop_reason"] = json!(stop_reason(script));
    message
}

fn stream(asked: &Asked<'_>, script: &Script, reply: &mut Reply<'_>) -> io::Result<()> {
    reply.event(&json!({"type": "message_start", "message": message(asked, 1)}))?;
    let mut index = 0;
    if !script.thoughts.is_empty() {
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        reply.event(&start(index, &block))?;
        for thought in &script.thoughts {
            reply.event(&delta(index, &json!({"type": "thinking_delta", "thinking": thought})))?;
        }
        let signature = json!({"type": "signature_delta", "signature": SIGNATURE});
        reply.event(&delta(index, &signature))?;
        reply.event(&stop(index))?;
        index += 1;
    }
    reply.event(&start(index, &json!({"type": "text", "text": ""})))?;
    reply.event(&json!({"type": "ping"}))?;
    reply.say(script, |chunk| delta(index, &json!({"type": "text_delta", "text": chunk})))?;
    reply.event(&stop(index))?;
    for (number, call) in script.calls.iter().enumerate() {
        index += 1;
        reply.event(&start(index, &tool_use(asked, number, &call.name)))?;
        for piece in halves(&call.arguments.to_string()) {
            let piece = json!({"type": "input_json_delta", "partial_json": piece});
            reply.event(&delta(index, &piece))?;
        }
        reply.event(&stop(index))?;
    }
    let last = json!({"stop_reason": stop_reason(script), "stop_sequence": null});
    let usage = json!({"output_tokens": script.chunks.len()});
    reply.event(&json!({"type": "message_delta", "delta": last, "usage": usage}))?;
    reply.event(&json!({"type": "message_stop"}))
}

fn error(asked: &Asked<'_>, problem: &Problem) -> Value {
    let error = json!({"type": problem.kind, "message": problem.message});
    json!({"type": "error", "error": error, "request_id": format!("req_{}", asked.id)})
}

/// Base64, as real ones are.
const SIGNATURE: &str = "ZmFrZQ==";

/// A message that has only begun.
fn message(asked: &Asked<'_>, output_tokens: usize) -> Value {
    json!({
        "id": format!("msg_{}", asked.id), "type": "message", "role": "assistant",
        "model": asked.model(), "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": PROMPT_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": output_tokens,
        },
    })
}

fn tool_use(asked: &Asked<'_>, number: usize, name: &str) -> Value {
    let id = format!("toolu_{}-{number}", asked.id);
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn stop_reason(script: &Script) -> &'static str {
    if script.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}
