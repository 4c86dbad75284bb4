//! Chat Completions.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    dialect::{Dialect, Problem},
    reply::Reply,
    script::Script,
    talk::{Talk, Tool, text_of},
    tools::sample,
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "chat",
    serves: |path| path.ends_with("/chat/completions"),
    streams: |_, body| body["stream"] == true,
    read,
    whole,
    stream,
    error,
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
            let schema = function["parameters"].clone();
            talk.tools.push(Tool { name: name.to_owned(), schema });
        }
    }
    talk
}

fn whole(body: &Value, script: &Script, id: &str) -> Value {
    let format = &body["response_format"];
    let wants_json = matches!(format["type"].as_str(), Some("json_object" | "json_schema"));
    let text = if wants_json {
        let schema = format["json_schema"]["schema"].clone();
        let schema = if schema.is_null() { json!({"type": "object"}) } else { schema };
        sample(&schema, "").to_string()
    } else {
        script.chunks.concat()
    };
    let mut message = json!({"role": "assistant", "content": text});
    if !script.calls.is_empty() {
        message["tool_calls"] = tool_calls(script, id).collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(script)});
    json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": now(),
        "model": body["model"], "choices": [choice], "usage": usage(script),
    })
}

fn stream(body: &Value, script: &Script, id: &str, reply: &mut Reply<'_>) -> io::Result<()> {
    let event = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk", "created": now(),
            "model": body["model"], "choices": choices,
        })
    };
    let delta = |delta: Value| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    reply.event(&delta(json!({"role": "assistant", "content": ""})))?;
    for thought in &script.thoughts {
        reply.event(&delta(json!({"reasoning_content": thought})))?;
    }
    reply.say(script, |chunk| delta(json!({"content": chunk})))?;
    for mut call in tool_calls(script, id) {
        // Arguments come in pieces, as from real servers.
        let arguments = call["function"]["arguments"].take();
        let (first, second) = halves(arguments.as_str().unwrap_or_default());
        let index = call["index"].clone();
        call["function"]["arguments"] = json!("");
        reply.event(&delta(json!({"tool_calls": [call]})))?;
        for piece in [first, second] {
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

fn error(problem: &Problem) -> Value {
    let error = json!({
        "message": problem.message, "type": problem.kind, "param": null, "code": problem.code,
    });
    json!({"error": error})
}

fn tool_calls(script: &Script, id: &str) -> impl Iterator<Item = Value> {
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
    let (prompt, completion) = (120, script.chunks.len());
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": prompt + completion, "prompt_tokens_details": {"cached_tokens": 20},
    })
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
