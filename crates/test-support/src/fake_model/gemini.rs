//! The Gemini API.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{CACHED_TOKENS, Dialect, DialectRequest, PROMPT_TOKENS},
    model_request::{ModelRequest, OfferedTool, text_of},
    provider_error::ProviderError,
    reply::StreamedReply,
    script::ReplyScript,
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "gemini",
    serves: |path| path.ends_with(":generateContent") || path.ends_with(STREAMED),
    streams: |request| {
        request.path.ends_with(STREAMED) && request.query.split('&').any(|it| it == "alt=sse")
    },
    read,
    whole,
    stream,
    error,
    // The delay is in the body.
    retry_after: &[],
    count: |path, tokens| path.ends_with(":countTokens").then(|| json!({"totalTokens": tokens})),
};

const STREAMED: &str = ":streamGenerateContent";

fn read(body: &Value) -> ModelRequest {
    let mut model_request = ModelRequest::default();
    for content in body["contents"].as_array().into_iter().flatten() {
        if content["role"] == "model" {
            continue;
        }
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        let mut answers = parts.iter().filter_map(|it| it.get("functionResponse"));
        match answers.next_back() {
            Some(answer) => model_request.add_tool_answer(answer["response"].to_string()),
            None => model_request.add_user(&text_of(&content["parts"])),
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
            let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
            if let Some(name) = function["name"].as_str() {
                model_request.tools.push(OfferedTool::function(name, schema));
            }
        }
    }
    let config = &body["generationConfig"];
    if config["responseMimeType"] == "application/json" {
        let schema = config.get("responseJsonSchema").or(config.get("responseSchema"));
        model_request.schema = Some(schema.cloned().unwrap_or(Value::Null));
    }
    model_request
}

fn whole(request: &DialectRequest<'_>, script: &ReplyScript) -> Value {
    let thoughts = script.thoughts.concat();
    let mut parts = Vec::new();
    if !thoughts.is_empty() {
        parts.push(json!({"text": thoughts, "thought": true}));
    }
    parts.push(json!({"text": script.chunks.concat()}));
    parts.extend(function_calls(script));
    let answer = last(request, script, &json!(parts));
    // Without `alt=sse`, a stream is a JSON list.
    if request.path.ends_with(STREAMED) { json!([answer]) } else { answer }
}

fn stream(
    request: &DialectRequest<'_>,
    script: &ReplyScript,
    reply: &mut StreamedReply<'_>,
) -> io::Result<()> {
    for thought in &script.thoughts {
        reply.event(&piece(request, &json!([{"text": thought, "thought": true}])))?;
    }
    reply.send_chunks(script, |chunk| piece(request, &json!([{"text": chunk}])))?;
    // A call is sent in one piece, and several in one event.
    let calls: Vec<Value> = function_calls(script).collect();
    if !calls.is_empty() {
        reply.event(&piece(request, &json!(calls)))?;
    }
    reply.event(&last(request, script, &json!([{"text": ""}])))
}

fn error(_: &DialectRequest<'_>, provider_error: &ProviderError) -> Value {
    let mut error = json!({
        "code": provider_error.status, "message": provider_error.message, "status": provider_error.rpc_status,
    });
    if provider_error.status == 429 {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        error["details"] = json!([{"@type": kind, "retryDelay": "1s"}]);
    }
    json!({"error": error})
}

fn function_calls(script: &ReplyScript) -> impl Iterator<Item = Value> {
    let call = |name: &str, args: &Value| json!({"functionCall": {"name": name, "args": args}});
    script.calls.iter().map(move |it| call(&it.name, &it.arguments))
}

fn piece(request: &DialectRequest<'_>, parts: &Value) -> Value {
    let candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    json!({"candidates": [candidate], "modelVersion": request.model(), "responseId": request.id})
}

/// The piece that ends a response.
fn last(request: &DialectRequest<'_>, script: &ReplyScript, parts: &Value) -> Value {
    let mut piece = piece(request, parts);
    piece["candidates"][0]["finishReason"] = json!("STOP");
    let completion = script.chunks.len();
    piece["usageMetadata"] = json!({
        "promptTokenCount": PROMPT_TOKENS, "candidatesTokenCount": completion,
        "totalTokenCount": PROMPT_TOKENS + completion, "cachedContentTokenCount": CACHED_TOKENS,
    });
    piece
}
