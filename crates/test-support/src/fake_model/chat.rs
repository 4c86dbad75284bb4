//! The Chat Completions API.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{CACHED_TOKENS, CREATED, Dialect, DialectRequest, PROMPT_TOKENS, split_in_half},
    model_request::{ModelRequest, OfferedTool, text_of},
    provider_error::openai_error,
    reply::StreamedReply,
    script::ReplyScript,
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "chat",
    serves: |path| path.ends_with("/chat/completions"),
    streams: |request| request.body["stream"] == true,
    read,
    whole,
    stream,
    error: openai_error,
    retry_after: &[429],
    count: |_, _| None,
};

fn read(body: &Value) -> ModelRequest {
    let mut model_request = ModelRequest::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => model_request.add_user(&text),
            Some("tool" | "function") => model_request.add_tool_answer(text),
            _ => {}
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        if let Some(name) = function["name"].as_str() {
            model_request.tools.push(OfferedTool::function(name, &function["parameters"]));
        }
    }
    let format = &body["response_format"];
    if matches!(format["type"].as_str(), Some("json_object" | "json_schema")) {
        model_request.schema = Some(format["json_schema"]["schema"].clone());
    }
    model_request
}

fn whole(request: &DialectRequest<'_>, script: &ReplyScript) -> Value {
    let mut message = json!({"role": "assistant", "content": script.chunks.concat()});
    if !script.thoughts.is_empty() {
        message["reasoning_content"] = json!(script.thoughts.concat());
    }
    if !script.calls.is_empty() {
        message["tool_calls"] = tool_calls(request, script).collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(script)});
    json!({
        "id": format!("chatcmpl-{}", request.id), "object": "chat.completion", "created": CREATED,
        "model": request.model(), "choices": [choice], "usage": usage(script),
    })
}

fn stream(
    request: &DialectRequest<'_>,
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
) -> io::Result<()> {
    let event = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{}", request.id), "object": "chat.completion.chunk",
            "created": CREATED, "model": request.model(), "choices": choices,
        })
    };
    let delta = |delta: Value| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    reply.event(&delta(json!({"role": "assistant", "content": ""})))?;
    for thought in &script.thoughts {
        reply.event(&delta(json!({"reasoning_content": thought})))?;
    }
    reply.send_chunks(script, |chunk| delta(json!({"content": chunk})))?;
    for mut call in tool_calls(request, script) {
        // Arguments are sent in pieces, as real servers do.
        let arguments = call["function"]["arguments"].take();
        let index = call["index"].clone();
        call["function"]["arguments"] = json!("");
        reply.event(&delta(json!({"tool_calls": [call]})))?;
        for piece in split_in_half(arguments.as_str().unwrap_or_default()) {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            reply.event(&delta(json!({"tool_calls": [piece]})))?;
        }
    }
    let last = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(script)}]);
    reply.event(&event(last))?;
    let mut closing = event(json!([]));
    closing["usage"] = usage(script);
    reply.event(&closing)?;
    reply.text("[DONE]")
}

fn tool_calls(request: &DialectRequest<'_>, script: &ReplyScript) -> impl Iterator<Item = Value> {
    let id = request.id;
    script.calls.iter().enumerate().map(move |(index, call)| {
        let arguments = call.arguments.to_string();
        let function = json!({"name": call.name, "arguments": arguments});
        let id = format!("call-{id}-{index}");
        json!({"index": index, "id": id, "type": "function", "function": function})
    })
}

fn finish_reason(script: &ReplyScript) -> &'static str {
    if script.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(script: &ReplyScript) -> Value {
    let completion = script.chunks.len();
    json!({
        "prompt_tokens": PROMPT_TOKENS, "completion_tokens": completion,
        "total_tokens": PROMPT_TOKENS + completion,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    })
}
