//! A model behind the agent, talked to: what reaches the model, and what the editor hears of it.

use super::{Desk, must_be_sound};
use jackfield_test_support::{
    fake_model::FakeModel,
    scripted_model::{Reply, ScriptedModel},
};
use serde_json::{Value, json};

#[test]
fn a_conversation_goes_on_from_turn_to_turn() {
    let mut desk = Desk::new(FakeModel::start(), &[]);
    let (one, two) = (desk.open(), desk.open());
    assert_eq!(desk.turn(&one, "Hello").0, "Hello from the fake model.");
    for count in 2..=4 {
        let (said, stop) = desk.turn(&one, "COUNT");
        assert_eq!(said, format!("I see {count} user messages."));
        assert_eq!(stop, "end_turn");
    }
    assert_eq!(desk.turn(&two, "COUNT").0, "I see 1 user messages.", "sessions are apart");
    let asked: Vec<Value> =
        desk.model.log().into_iter().filter(|it| it["dialect"] == "chat").collect();
    assert_eq!(asked.len(), 5);
    assert!(asked.iter().all(|it| it["testKey"] == true && it["stream"] == true), "{asked:?}");
}

#[test]
fn a_request_has_what_the_environment_says() {
    let model = ScriptedModel::start([Reply::say("Yes."), Reply::say("No.")]);
    let variables = [
        ("OPENAI_MODEL", "some-model"),
        ("OPENAI_SYSTEM_PROMPT", "Be brief."),
        ("OPENAI_MAX_TOKENS", "77"),
        ("OPENAI_TEMPERATURE", "0.5"),
        ("OPENAI_TOOLS", "0"),
    ];
    let mut desk = Desk::new(model, &variables);
    let session = desk.open();
    desk.turn(&session, "Are you there?");
    desk.turn(&session, "And now?");
    let asked = desk.model.asked();
    assert_eq!(asked[0].target, "/v1/chat/completions");
    assert_eq!(asked[0].header("authorization"), Some("Bearer test-key"));
    let mut messages = vec![
        json!({ "role": "system", "content": "Be brief." }),
        json!({ "role": "user", "content": "Are you there?" }),
    ];
    let body = |messages: &[Value]| {
        json!({
            "model": "some-model", "messages": messages, "stream": true,
            "stream_options": { "include_usage": true }, "max_tokens": 77, "temperature": 0.5,
        })
    };
    assert_eq!(asked[0].body, body(&messages));
    messages.push(json!({ "role": "assistant", "content": "Yes." }));
    messages.push(json!({ "role": "user", "content": "And now?" }));
    assert_eq!(asked[1].body, body(&messages));
}

#[test]
fn why_the_model_stopped_is_why_the_turn_stopped() {
    let reasons = [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")];
    let says = |reason| Reply::stream().delta(&json!({ "content": "So far" })).finish(reason);
    let model = ScriptedModel::start(reasons.map(|(reason, _)| says(reason)));
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    for (reason, stop) in reasons {
        assert_eq!(desk.turn(&session, "Go on").1, stop, "{reason}");
    }
}

#[test]
fn what_a_turn_cost_is_told_and_how_full_the_window_is() {
    let model = ScriptedModel::start([Reply::say("Cheap."), Reply::say("Cheap.")]);
    let mut desk = Desk::new(model, &[("OPENAI_CONTEXT_WINDOW", "1000")]);
    let session = desk.open();
    for _ in 0..2 {
        let id = desk.client.send_prompt(&session, "What does it cost?");
        let usage = desk.client.answer(id)["result"]["usage"].clone();
        assert_eq!(usage, json!({ "totalTokens": 15, "inputTokens": 10, "outputTokens": 5 }));
    }
    let updates = desk.updates(&session);
    let used: Vec<_> = updates.iter().filter(|it| it["sessionUpdate"] == "usage_update").collect();
    assert_eq!(used.len(), 2);
    assert!(used.iter().all(|it| it["used"] == 15 && it["size"] == 1000), "{used:?}");
    let is_warning = |it: &&Value| it.to_string().contains("has 1000 tokens, which is too few");
    assert_eq!(updates.iter().filter(is_warning).count(), 1, "once, before the first answer");
}

#[test]
fn cost_that_the_server_reports_is_that_of_the_turn_and_of_the_session() {
    let costs = |dollars: f64| {
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "cost": dollars });
        let payload = json!({ "choices": [], "usage": usage });
        let reply = Reply::stream().delta(&json!({ "content": "Paid." }));
        reply.data(&payload.to_string()).data("[DONE]")
    };
    let model = ScriptedModel::start([costs(0.25), costs(0.5)]);
    let mut desk = Desk::new(model, &[("OPENAI_CONTEXT_WINDOW", "9000")]);
    let session = desk.open();
    for amount in [0.25, 0.5] {
        let id = desk.client.send_prompt(&session, "What does it cost?");
        let meta = desk.client.answer(id)["result"]["_meta"].clone();
        let cost = json!({ "amount": amount, "currency": "USD" });
        assert_eq!(meta, json!({ "jackfield": { "cost": cost } }));
        if desk.model.left() != 0 {
            desk.restart();
            let place = desk.place(&session);
            desk.client.result("session/resume", &place);
        }
    }
    let updates = desk.updates(&session);
    let sums = updates.iter().filter(|it| it["sessionUpdate"] == "usage_update");
    let sums: Vec<Value> = sums.map(|it| it["cost"]["amount"].clone()).collect();
    assert_eq!(sums, [json!(0.75)], "the session of the last process has the whole sum");
}

#[test]
fn thoughts_are_heard_before_the_answer_and_not_told_back() {
    let thinks = |field: &str| {
        let thought = |text: &str| json!({ field: text });
        let reply = Reply::stream().delta(&thought("Let me ")).delta(&thought("see."));
        reply.delta(&json!({ "content": "Done." })).finish("stop")
    };
    let model = ScriptedModel::start([thinks("reasoning_content"), thinks("reasoning")]);
    let mut desk = Desk::new(model, &[]);
    let session = desk.open();
    for _ in 0..2 {
        let before = desk.updates(&session).len();
        assert_eq!(desk.turn(&session, "Think").0, "Done.");
        let updates = desk.updates(&session);
        let chunks = updates[before..].iter().filter(|it| it["content"]["type"] == "text");
        let chunks: Vec<(&str, &str)> = chunks
            .map(|it| {
                (it["sessionUpdate"].as_str().unwrap(), it["content"]["text"].as_str().unwrap())
            })
            .collect();
        let thought = "agent_thought_chunk";
        let heard = [(thought, "Let me "), (thought, "see."), ("agent_message_chunk", "Done.")];
        assert_eq!(chunks, heard);
    }
    let told = desk.model.asked()[1].body["messages"].to_string();
    assert!(told.contains("Done.") && !told.contains("Let me"), "{told}");
}

#[test]
fn an_image_is_a_part_for_a_model_that_sees_and_a_word_for_one_that_does_not() {
    let prompt = json!([
        { "type": "text", "text": "What is this?" },
        { "type": "image", "mimeType": "image/png", "data": "AAAA" },
        { "type": "resource_link", "name": "a.rs", "uri": "file:///a.rs" },
        { "type": "resource", "resource": { "uri": "file:///b", "text": "inside" } },
    ]);
    let words = "[Resource: a.rs] file:///a.rs\n[Resource: file:///b]\ninside";
    let parts = json!([
        { "type": "text", "text": "What is this?" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
        { "type": "text", "text": words },
    ]);
    let text = json!(format!("What is this?\n[Image: image/png]\n{words}"));
    for (name, content) in [("gpt-4o", parts), ("llama3", text)] {
        let model = ScriptedModel::start([Reply::say("A dot.")]);
        let mut desk = Desk::new(model, &[("OPENAI_MODEL", name)]);
        let session = desk.open();
        let params = json!({ "sessionId": session, "prompt": prompt });
        desk.client.result("session/prompt", &params);
        let messages = desk.model.asked()[0].body["messages"].clone();
        must_be_sound(&messages);
        assert_eq!(messages[1]["content"], content, "{name}");
    }
}
