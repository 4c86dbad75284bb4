//! The real model itself, before anything of ours asks it.

use jackfield_e2e::{RealModel, http::Event};
use serde_json::{Value, json};
use std::{fs, path::Path};

#[test]
fn a_real_model_answers_in_pieces_and_ends_with_its_test() {
    let Some(model) = RealModel::start() else { return };
    // Without the first of them it answers with a song.
    let messages = json!([
        { "role": "system", "content": "You are a helpful assistant." },
        { "role": "user", "content": "What is the capital of France?" },
    ]);
    let body = json!({
        "model": RealModel::NAME,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 40,
        "temperature": 0,
    });
    let mut stream = model.web().stream("POST", "/v1/chat/completions", &[], Some(&body));
    let mut events = stream.rest();
    assert_eq!(events.pop().unwrap().data, "[DONE]");
    let chunks: Vec<Value> = events.iter().map(Event::json).collect();
    let pieces = chunks.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    let pieces: Vec<&str> = pieces.collect();
    assert!(3 < pieces.len(), "{pieces:?}");
    assert!(pieces.concat().contains("Paris"), "{pieces:?}");
    let usage = &chunks.last().unwrap()["usage"];
    assert!(usage["completion_tokens"].as_u64().is_some_and(|it| 3 < it), "{usage}");

    let listed = model.web().get("/v1/models").good();
    assert_eq!(listed["data"][0]["id"], RealModel::NAME);
    let process = format!("/proc/{}", model.pid());
    assert!(Path::new(&process).exists());
    drop(model);
    assert!(fs::metadata(process).is_err(), "it is gone");
}
