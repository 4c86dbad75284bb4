//! Chat Completions.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{Asked, CACHED_TOKENS, CREATED, Dialect, PROMPT_TOKENS, halves},
    problem::openai_error,
    reply::Reply,
    script::Script,
    talk::{Talk, Tool, text_of},
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "chat",
    serves: |path| path.ends_with("/chat/completions"),
    streams: |asked| asked.body["stream"] == true,
    read,
    whole,
    stream,
    error: openai_error,
    retry_after: &[429],
    count: |_, _| None,
};

fn read(body: &Value) -> Talk {
    let mut talk = Talk::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => talk.add_user(&text),
            Some("tool" | "function") => talk.add_tool_answer(text),
            _ => {}
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        if let Some(name) = function["name"].as_str() {
            talk.tools.push(Tool::function(name, &function["parameters"]));
        }
    }
    let format = &body["response_format"];
    if matches!(format["type"].as_str(), Some("json_object" | "json_schema")) {
        talk.schema = Some(format["json_schema"]["schema"].clone());
    }
    talk
}

fn whole(asked: &Asked<'_>, script: &Script) -> Value {
    let mut message = json!({"role": "assistant", "content": script.chunks.concat()});
    if !script.thoughts.is_empty() {
        message["reasoning_content"] = json!(script.thoughts.concat());
    }
    if !script.calls.is_empty() {
        message["tool_calls"] = tool_calls(asked, script).collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(script)});
    json!({
        "id": format!("chatcmpl-{}", asked.id), "object": "chat.completion", "created": CREATED,
        "model": asked.model(), "choices": [choice], "usage": usage(script),
    })
}

fn stream(asked: &Asked<'_>, script: &Script, reply: &mut Reply<'_>) -> io::Result<()> {
    let event = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{}", asked.id), "object": "chat.completion.chunk",
            "created": CREATED, "model": asked.model(), "choices": choices,
        })
    };
    let delta = |delta: Value| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    reply.event(&delta(json!({"role": "assistant", "content": ""})))?;
    for thought in &script.thoughts {
        reply.event(&delta(json!({"reasoning_content": thought})))?;
    }
    reply.say(script, |chunk| delta(json!({"content": chunk})))?;
    for mut call in tool_calls(asked, script) {
        // Arguments come in pieces, as from real servers.
        let arguments = call["function"]["arguments"].take();
        let index = call["index"].clone();
        call["function"]["arguments"] = json!("");
        reply.event(&delta(json!({"tool_calls": [call]})))?;
        for piece in halves(arguments.as_str().unwrap_or_default()) {
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

fn tool_calls(asked: &Asked<'_>, script: &Script) -> impl Iterator<Item = Value> {
    let id = asked.id;
    script.calls.iter().enumerate().map(move |(index, call)| {
        let arguments = call.arguments.to_string();
        let function = json!({"name": call.name, "arguments": arguments});
        let id = format!("call-{id}-{index}");
        json!({"index": index, "id": id, "type": "function", "function": function})
    })
}

fn finish_reason(script: &Script) -> &'static str {
    if script.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(script: &Script) -> Value {
    let completion = script.chunks.len();
    json!({
        "prompt_tokens": PROMPT_TOKENS, "completion_tokens": completion,
        "total_tokens": PROMPT_TOKENS + completion,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    })
}
