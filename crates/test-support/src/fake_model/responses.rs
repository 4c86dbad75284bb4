//! The `OpenAI` Responses API.

use std::{cell::Cell, io};

use serde_json::{Value, json};

use super::{
    dialect::{CACHED_TOKENS, CREATED, Dialect, DialectRequest, PROMPT_TOKENS, split_in_half},
    model_request::{ModelRequest, OfferedTool, ToolInput, text_of},
    provider_error::openai_error,
    reply::StreamedReply,
    script::ReplyScript,
    tools::ToolCall,
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "responses",
    serves: |path| path.ends_with("/responses"),
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
    if let Some(text) = body["input"].as_str() {
        model_request.add_user(text);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or("message") {
            "message" if item["role"] == "user" => {
                let text = text_of(&item["content"]);
                // codex sends this file as a user message.
                if !text.trim_start().starts_with("# AGENTS.md") {
                    model_request.add_user(&text);
                }
            }
            // codex offers its tools here to models it knows.
            "additional_tools" => add_tools(&item["tools"], None, &mut model_request),
            kind if kind.ends_with("_output") => {
                let output = &item["output"];
                let text = text_of(output);
                model_request.add_tool_answer(if output.is_object() {
                    output.to_string()
                } else {
                    text
                });
            }
            _ => {}
        }
    }
    add_tools(&body["tools"], None, &mut model_request);
    let format = &body["text"]["format"];
    model_request.schema = (format["type"] == "json_schema").then(|| format["schema"].clone());
    model_request
}

fn add_tools(tools: &Value, namespace: Option<&str>, model_request: &mut ModelRequest) {
    for tool in tools.as_array().into_iter().flatten() {
        let name = tool["name"].as_str();
        if tool["tools"].is_array() {
            add_tools(&tool["tools"], name, model_request);
            continue;
        }
        let Some(name) = name else { continue };
        let mut offered = OfferedTool::function(name, &tool["parameters"]);
        offered.namespace = namespace.map(str::to_owned);
        if tool["type"] == "custom" {
            let is_code = name == "exec";
            offered.form = if is_code { ToolInput::Code } else { ToolInput::Patch };
        }
        model_request.tools.push(offered);
    }
}

fn whole(request: &DialectRequest<'_>, script: &ReplyScript) -> Value {
    completed(request, script, &items(request, script))
}

fn stream(
    request: &DialectRequest<'_>,
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
) -> io::Result<()> {
    let number = Cell::new(0);
    let event = |kind: &str, fields: Value| {
        let head = json!({"type": kind, "sequence_number": number.replace(number.get() + 1)});
        with(head, fields)
    };
    let begun = json!({"response": response(request)});
    reply.event(&event("response.created", begun.clone()))?;
    reply.event(&event("response.in_progress", begun))?;
    let items = items(request, script);
    for (index, item) in items.iter().enumerate() {
        let empty = json!({"output_index": index, "item": emptied(item)});
        reply.event(&event("response.output_item.added", empty))?;
        let place = json!({"item_id": item["id"], "output_index": index});
        // The events that fill the item.
        let piece = |kind: &str, fields: Value| event(kind, with(place.clone(), fields));
        match item["type"].as_str() {
            Some("reasoning") => stream_thoughts(script, reply, piece)?,
            Some("message") => stream_text(script, reply, piece)?,
            Some("function_call") => {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                let kind = "response.function_call_arguments";
                stream_input(kind, "arguments", arguments, reply, piece)?;
            }
            _ => {
                let input = item["input"].as_str().unwrap_or_default();
                stream_input("response.custom_tool_call_input", "input", input, reply, piece)?;
            }
        }
        let full = json!({"output_index": index, "item": item});
        reply.event(&event("response.output_item.done", full))?;
    }
    let response = completed(request, script, &items);
    reply.event(&event("response.completed", json!({"response": response})))
}

fn stream_thoughts(
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
    piece: impl Fn(&str, Value) -> Value,
) -> io::Result<()> {
    let part =
        |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
    let whole = script.thoughts.concat();
    reply.event(&piece("response.reasoning_summary_part.added", part("")))?;
    for thought in &script.thoughts {
        let delta = json!({"summary_index": 0, "delta": thought});
        reply.event(&piece("response.reasoning_summary_text.delta", delta))?;
    }
    let done = json!({"summary_index": 0, "text": whole});
    reply.event(&piece("response.reasoning_summary_text.done", done))?;
    reply.event(&piece("response.reasoning_summary_part.done", part(&whole)))
}

fn stream_text(
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
    piece: impl Fn(&str, Value) -> Value,
) -> io::Result<()> {
    let part = |text: &str| json!({"content_index": 0, "part": output_text(text)});
    let whole = script.chunks.concat();
    reply.event(&piece("response.content_part.added", part("")))?;
    reply.send_chunks(script, |chunk| {
        piece("response.output_text.delta", json!({"content_index": 0, "delta": chunk}))
    })?;
    let done = json!({"content_index": 0, "text": whole});
    reply.event(&piece("response.output_text.done", done))?;
    reply.event(&piece("response.content_part.done", part(&whole)))
}

/// Streams the input of a call; the last event has all of it, in a field of its own.
fn stream_input(
    kind: &str,
    field: &str,
    input: &str,
    reply: &mut StreamedReply<'_>,
    piece: impl Fn(&str, Value) -> Value,
) -> io::Result<()> {
    for half in split_in_half(input) {
        reply.event(&piece(&format!("{kind}.delta"), json!({"delta": half})))?;
    }
    let mut done = json!({});
    done[field] = json!(input);
    reply.event(&piece(&format!("{kind}.done"), done))
}

/// A response without output.
fn response(request: &DialectRequest<'_>) -> Value {
    json!({
        "id": format!("resp_{}", request.id), "object": "response", "created_at": CREATED,
        "status": "in_progress", "model": request.model(), "output": [], "tools": [],
        "parallel_tool_calls": true, "tool_choice": "auto", "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "usage": null,
    })
}

fn completed(request: &DialectRequest<'_>, script: &ReplyScript, items: &[Value]) -> Value {
    let mut response = response(request);
    response["status"] = json!("completed");
    response["output"] = json!(items);
    let completion = script.chunks.len();
    response["usage"] = json!({
        "input_tokens": PROMPT_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": completion, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + completion,
    });
    response
}

/// The complete output items of the response.
fn items(request: &DialectRequest<'_>, script: &ReplyScript) -> Vec<Value> {
    let mut items = Vec::new();
    if !script.thoughts.is_empty() {
        let summary = json!({"type": "summary_text", "text": script.thoughts.concat()});
        let id = format!("rs_{}", request.id);
        items.push(json!({"type": "reasoning", "id": id, "summary": [summary]}));
    }
    items.push(json!({
        "type": "message", "id": format!("msg_{}", request.id), "status": "completed",
        "role": "assistant", "content": [output_text(&script.chunks.concat())],
    }));
    let calls = script.calls.iter().enumerate();
    items.extend(calls.map(|(number, call)| call_item(&format!("{}-{number}", request.id), call)));
    items
}

fn call_item(id: &str, call: &ToolCall) -> Value {
    // Text is passed unchanged, a JSON object as text.
    let mut item = match &call.arguments {
        Value::String(input) => {
            json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "input": input})
        }
        arguments => {
            let arguments = arguments.to_string();
            json!({"type": "function_call", "id": format!("fc_{id}"), "arguments": arguments})
        }
    };
    item["status"] = json!("completed");
    item["call_id"] = json!(format!("call_{id}"));
    item["name"] = json!(call.name);
    if let Some(namespace) = &call.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

/// An item before its content is streamed.
fn emptied(item: &Value) -> Value {
    let mut item = item.clone();
    let blanks = [
        ("status", json!("in_progress")),
        ("summary", json!([])),
        ("content", json!([])),
        ("arguments", json!("")),
        ("input", json!("")),
    ];
    for (field, blank) in blanks {
        if let Some(value) = item.get_mut(field) {
            *value = blank;
        }
    }
    item
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Adds the members of another object.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}
