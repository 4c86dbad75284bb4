//! The Anthropic Messages API.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{CACHED_TOKENS, Dialect, DialectRequest, PROMPT_TOKENS, split_in_half},
    model_request::{ModelRequest, OfferedTool, text_of},
    provider_error::ProviderError,
    reply::StreamedReply,
    script::ReplyScript,
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "messages",
    serves: |path| path.ends_with("/messages"),
    streams: |request| request.body["stream"] == true,
    read,
    whole,
    stream,
    error,
    retry_after: &[429, 529],
    count: |path, tokens| {
        path.ends_with("/messages/count_tokens").then(|| json!({"input_tokens": tokens}))
    },
};

fn read(body: &Value) -> ModelRequest {
    let mut model_request = ModelRequest::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] == "user" {
            read_user(&message["content"], &mut model_request);
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if let Some(name) = tool["name"].as_str() {
            model_request.tools.push(OfferedTool::function(name, &tool["input_schema"]));
        }
    }
    let format = body["output_config"].get("format").or(body.get("output_format"));
    model_request.schema = format.and_then(|it| it.get("schema")).cloned();
    model_request
}

/// A message can contain tool results and user text, because clients merge adjacent messages.
fn read_user(content: &Value, model_request: &mut ModelRequest) {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let mut answers = blocks.iter().filter(|it| it["type"] == "tool_result");
    if let Some(last) = answers.next_back() {
        model_request.add_tool_answer(text_of(&last["content"]));
    }
    // Claude Code adds this text itself when a turn was cancelled.
    let is_typed = |it: &&str| !it.starts_with("[Request interrupted by user");
    let texts = blocks.iter().filter_map(|it| it["text"].as_str()).chain(content.as_str());
    model_request.add_user(&texts.filter(is_typed).collect::<Vec<_>>().join("\n"));
}

fn whole(request: &DialectRequest<'_>, script: &ReplyScript) -> Value {
    let mut content = Vec::new();
    if !script.thoughts.is_empty() {
        let thinking = script.thoughts.concat();
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    content.push(json!({"type": "text", "text": script.chunks.concat()}));
    for (index, call) in script.calls.iter().enumerate() {
        let mut block = tool_use(request, index, &call.name);
        block["input"] = call.arguments.clone();
        content.push(block);
    }
    let mut message = message(request, script.chunks.len());
    message["content"] = json!(content);
    message["stop_reason"] = json!(stop_reason(script));
    message
}

fn stream(
    request: &DialectRequest<'_>,
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
) -> io::Result<()> {
    reply.event(&json!({"type": "message_start", "message": message(request, 1)}))?;
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
    reply
        .send_chunks(script, |chunk| delta(index, &json!({"type": "text_delta", "text": chunk})))?;
    reply.event(&stop(index))?;
    for (number, call) in script.calls.iter().enumerate() {
        index += 1;
        reply.event(&start(index, &tool_use(request, number, &call.name)))?;
        for piece in split_in_half(&call.arguments.to_string()) {
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

fn error(request: &DialectRequest<'_>, provider_error: &ProviderError) -> Value {
    let error = json!({"type": provider_error.kind, "message": provider_error.message});
    json!({"type": "error", "error": error, "request_id": format!("req_{}", request.id)})
}

/// Base64, like real signatures.
const SIGNATURE: &str = "ZmFrZQ==";

/// A message without content.
fn message(request: &DialectRequest<'_>, output_tokens: usize) -> Value {
    json!({
        "id": format!("msg_{}", request.id), "type": "message", "role": "assistant",
        "model": request.model(), "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": PROMPT_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": output_tokens,
        },
    })
}

fn tool_use(request: &DialectRequest<'_>, number: usize, name: &str) -> Value {
    let id = format!("toolu_{}-{number}", request.id);
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn stop_reason(script: &ReplyScript) -> &'static str {
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
