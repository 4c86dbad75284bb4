//! The agent with a real model: llama.cpp's server and a very small one, which knows no tools.

use super::Desk;
use jackfield_e2e::RealModel;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn desk(max_tokens: &str) -> Option<Desk<RealModel>> {
    let variables = [
        ("OPENAI_MODEL", RealModel::NAME),
        ("OPENAI_SYSTEM_PROMPT", "You are a helpful assistant."),
        ("OPENAI_TOOLS", "0"),
        ("OPENAI_TEMPERATURE", "0"),
        ("OPENAI_MAX_TOKENS", max_tokens),
    ];
    RealModel::start().map(|model| Desk::new(model, &variables))
}

fn is_chunk(it: &Value) -> bool {
    it["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
}

#[test]
fn a_real_model_is_talked_to_and_what_it_costs_is_told() {
    let Some(mut desk) = desk("40") else { return };
    let session = desk.open();
    let mut inputs = Vec::new();
    for question in ["What is the capital of France?", "Which country did I ask about?"] {
        let before = desk.client.heard.len();
        let id = desk.client.send_prompt(&session, question);
        let result = desk.client.answer(id)["result"].clone();
        assert!(
            matches!(result["stopReason"].as_str(), Some("end_turn" | "max_tokens")),
            "{result}"
        );
        let chunks = desk.client.heard[before..].iter().filter(|it| is_chunk(it)).count();
        assert!(3 < chunks, "it came in {chunks} pieces");
        let usage = &result["usage"];
        assert!(usage["outputTokens"].as_u64().is_some_and(|it| 3 < it), "{result}");
        inputs.push(usage["inputTokens"].as_u64().unwrap());
    }
    assert!(desk.client.text().contains("Paris"), "{}", desk.client.text());
    // The second question comes with the first and its answer.
    assert!(0 < inputs[0] && inputs[0] + 10 < inputs[1], "{inputs:?}");
    let updates = desk.updates(&session);
    let used = updates.iter().rfind(|it| it["sessionUpdate"] == "usage_update").unwrap();
    let (used, size) = (used["used"].as_u64().unwrap(), used["size"].as_u64().unwrap());
    assert!(inputs[1] < used && used < size, "{used} of {size}");
}

#[test]
fn a_real_model_stops_when_it_is_told_to() {
    let Some(mut desk) = desk("2000") else { return };
    let session = desk.open();
    let prompt = desk.client.send_prompt(&session, "Tell me a very long story about a sailor.");
    for _ in 0..3 {
        desk.client.until("a piece", is_chunk);
    }
    let begin = Instant::now();
    desk.cancel(&session);
    let answer = desk.client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    // It has one slot: it answers the next one because it has let go of the first.
    let id = desk.client.send_prompt(&session, "Forget it. What is the capital of France?");
    desk.client.until("a piece", is_chunk);
    desk.cancel(&session);
    let answer = desk.client.answer(id);
    assert_eq!(answer["result"]["stopReason"], json!("cancelled"));
}
