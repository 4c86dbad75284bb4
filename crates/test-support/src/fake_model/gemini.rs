//! Gemini.

use std::io;

use serde_json::{Value, json};

use super::{
    dialect::{Asked, CACHED_TOKENS, Dialect, PROMPT_TOKENS},
    problem::Problem,
    reply::Reply,
    script::Script,
    talk::{Talk, Tool, text_of},
};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "gemini",
    serves: |path| path.ends_with(":generateContent") || path.ends_with(STREAMED),
    streams: |asked| {
        asked.path.ends_with(STREAMED) && asked.query.split('&').any(|it| it == "alt=sse")
    },
    read,
    whole,
    stream,
    error,
    // It says so in the body.
    retry_after: &[],
    count: |path, tokens| path.ends_with(":countTokens").then(|| json!({"totalTokens": tokens})),
};

const STREAMED: &str = ":streamGenerateContent";

fn read(body: &Value) -> Talk {
    let mut talk = Talk::default();
    for content in body["contents"].as_array().into_iter().flatten() {
        if content["role"] == "model" {
            continue;
        }
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        let mut answers = parts.iter().filter_map(|it| it.get("functionResponse"));
        match answers.next_back() {
            Some(answer) => talk.add_tool_answer(answer["response"].to_string()),
            None => talk.add_user(&text_of(&content["parts"])),
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
            let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
            if let Some(name) = function["name"].as_str() {
                talk.tools.push(Tool::function(name, schema));
            }
        }
    }
    let config = &body["generationConfig"];
    if config["responseMimeType"] == "application/json" {
        let schema = config.get("responseJsonSchema").or(config.get("responseSchema"));
        talk.schema = Some(schema.cloned().unwrap_or(Value::Null));
    }
    talk
}

fn whole(asked: &Asked<'_>, script: &Script) -> Value {
    let thoughts = script.thoughts.concat();
    let mut parts = Vec::new();
    if !thoughts.is_empty() {
        parts.push(json!({"text": thoughts, "thought": true}));
    }
    parts.push(json!({"text": script.chunks.concat()}));
    parts.extend(function_calls(script));
    let answer = last(asked, script, &json!(parts));
    // A stream whose client wants no events is a list.
    if asked.path.ends_with(STREAMED) { json!([answer]) } else { answer }
}

fn stream(asked: &Asked<'_>, script: &Script, reply: &mut Reply<'_>) -> io::Result<()> {
    for thought in &script.thoughts {
        reply.event(&piece(asked, &json!([{"text": thought, "thought": true}])))?;
    }
    reply.say(script, |chunk| piece(asked, &json!([{"text": chunk}])))?;
    // A call comes whole, and several in one event.
    let calls: Vec<Value> = function_calls(script).collect();
    if !calls.is_empty() {
        reply.event(&piece(asked, &json!(calls)))?;
    }
    reply.event(&last(asked, script, &json!([{"text": ""}])))
}

fn error(_: &Asked<'_>, problem: &Problem) -> Value {
    let mut error = json!({
        "code": problem.status, "message": problem.message, "status": problem.rpc_status,
    });
    if problem.status == 429 {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        error["details"] = json!([{"@type": kind, "retryDelay": "1s"}]);
    }
    json!({"error": error})
}

fn function_calls(script: &Script) -> impl Iterator<Item = Value> {
    let call = |name: &str, args: &Value| json!({"functionCall": {"name": name, "args": args}});
    script.calls.iter().map(move |it| call(&it.name, &it.arguments))
}

fn piece(asked: &Asked<'_>, parts: &Value) -> Value {
    let candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    json!({"candidates": [candidate], "modelVersion": asked.model(), "responseId": asked.id})
}

/// The piece that ends an answer.
fn last(asked: &Asked<'_>, script: &Script, parts: &Value) -> Value {
    let mut piece = piece(asked, parts);
    piece["candidates"][0]["finishReason"] = json!("STOP");
    let completion = script.chunks.len();
    piece["usageMetadata"] = json!({
        "promptTokenCount": PROMPT_TOKENS, "candidatesTokenCount": completion,
        "totalTokenCount": PROMPT_TOKENS + completion, "cachedContentTokenCount": CACHED_TOKENS,
    });
    piece
}
