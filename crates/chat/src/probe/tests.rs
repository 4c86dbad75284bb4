//! Tests of the probe: one server for each defect, and what is said about it.

use super::{Calls, Fitness, Probed, probe, with_version};
use crate::Settings;
use jackfield_testkit::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};

const CALLS: [(&str, &str); 2] =
    [("weather", r#"{"city":"Paris"}"#), ("weather", r#"{"city":"Rome"}"#)];

fn words() -> Reply {
    Reply::say("one, two, three, four")
}

fn ask(server: &ScriptedModel, model: Option<&str>) -> Result<Probed, String> {
    let (mut settings, _) = Settings::read(|_| None);
    settings.base_url = server.url();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(probe(&settings, model))
}

/// What is said of a server with these pages that answers so.
fn probed(steps: [Reply; 2], pages: &[(&str, Value)]) -> Probed {
    let server = ScriptedModel::start(steps);
    let window = json!({"data": [{"id": "m", "max_model_len": 65_536, "owned_by": "vllm"}]});
    server.serve_models(&window);
    for (path, page) in pages {
        server.serve(path, Reply::json(page));
    }
    ask(&server, None).unwrap()
}

fn flaw(probed: &Probed) -> (Fitness, &str, &str) {
    let [flaw] = &probed.flaws[..] else { panic!("{probed:?}") };
    (probed.fitness, &flaw.what, &flaw.fix)
}

#[test]
fn a_good_server_is_told_to_be_one() {
    let probed = probed([words(), Reply::calls(&CALLS)], &[]);
    assert_eq!((probed.fitness, probed.flaws.len()), (Fitness::Good, 0));
    assert_eq!((probed.window, probed.window_from), (Some(65_536), Some("/models")));
    assert!(probed.streams && probed.streams_calls && probed.parallel_calls && !probed.thinks);
    assert_eq!((probed.calls, probed.verdict().as_str()), (Calls::Native, "m will do as an agent"));
    assert!(probed.tokens_per_second.is_some());
}

#[test]
fn the_small_window_of_ollama_is_found_although_its_model_has_a_large_one() {
    let loaded = json!({"models": [{"name": "m:latest", "context_length": 4096}]});
    let pages = [("/api/ps", loaded), ("/api/show", json!({"parameters": "num_ctx 131072"}))];
    let probed = probed([words(), Reply::calls(&CALLS)], &pages);
    let fix = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve";
    assert_eq!(flaw(&probed), (Fitness::Unfit, "it sees only 4096 tokens at once", fix));
    assert_eq!(probed.window_from, Some("/api/ps"));
    let verdict = "m will not do as an agent: it sees only 4096 tokens at once";
    assert_eq!(probed.verdict(), verdict);
}

#[test]
fn a_window_that_was_asked_of_ollama_counts_before_it_is_loaded() {
    let shown = json!({"parameters": "stop \"x\"\nnum_ctx                        40960"});
    let pages = [("/api/ps", json!({"models": []})), ("/api/show", shown)];
    let probed = probed([words(), Reply::calls(&CALLS)], &pages);
    assert_eq!((probed.window, probed.window_from), (Some(40_960), Some("/api/show")));
}

#[test]
fn the_window_of_llama_cpp_is_the_one_in_force() {
    let props = json!({"default_generation_settings": {"n_ctx": 16_384}});
    let probed = probed([words(), Reply::calls(&CALLS)], &[("/props", props)]);
    let fix = "llama-server --ctx-size 32768 …";
    assert_eq!(flaw(&probed), (Fitness::Usable, "it sees only 16384 tokens at once", fix));
}

#[test]
fn a_server_without_a_parser_is_told_how_to_get_one() {
    let call = r#"<tool_call>{"name":"weather","arguments":{"city":"Paris"}}</tool_call>"#;
    let text = probed([words(), Reply::say(call)], &[]);
    let fix = "vllm serve m --enable-auto-tool-choice --tool-call-parser hermes";
    let what = "it writes its calls into the text, where we read them";
    assert_eq!((flaw(&text), text.calls), ((Fitness::Usable, what, fix), Calls::Text));
    let garbled = probed([words(), Reply::say("<tool_call>{\"name\": weather}</tool_call>")], &[]);
    assert_eq!((garbled.calls, garbled.fitness), (Calls::Garbled, Fitness::Unfit));
}

#[test]
fn a_server_that_refuses_tools_is_unfit() {
    let server = ScriptedModel::start([
        words(),
        Reply::status(400).body(r#"{"error":{"message":"m does not support tools"}}"#),
        Reply::say("I do not know."),
    ]);
    server.serve_models(&json!({"data": [{"id": "m", "context_length": 65_536}]}));
    let probed = ask(&server, None).unwrap();
    assert_eq!((probed.calls, probed.fitness), (Calls::Refused, Fitness::Unfit));
    assert!(probed.flaws[0].fix.ends_with("OPENAI_TOOLS=0"));
}

#[test]
fn a_model_that_calls_nothing_is_unfit_and_one_call_is_not_several() {
    let none = probed([words(), Reply::say("It is sunny.")], &[]);
    assert_eq!((none.calls, none.fitness), (Calls::None, Fitness::Unfit));
    let one = probed([words(), Reply::calls(&CALLS[..1])], &[]);
    assert!(one.fitness == Fitness::Good && !one.parallel_calls);
}

#[test]
fn an_answer_in_one_piece_and_thoughts_are_noticed() {
    let message = json!({"content": "one, two", "reasoning_content": ""});
    let whole = Reply::json(&json!({"choices": [{"message": message}]}));
    let function = json!({"name": "weather", "arguments": "{}"});
    let message = json!({"reasoning": "hm", "tool_calls": [{"id": "a", "function": function}]});
    let call = Reply::json(&json!({"choices": [{"message": message}]}));
    let probed = probed([whole, call], &[]);
    let fix = "turn off buffering in the proxy before the server";
    assert_eq!(flaw(&probed), (Fitness::Usable, "its answers come in one piece", fix));
    assert!(probed.thinks && !probed.streams_calls && probed.tokens_per_second.is_none());
}

#[test]
fn a_model_is_the_one_named_or_the_first_of_the_list() {
    let server = ScriptedModel::start([words(), Reply::calls(&CALLS)]);
    let probed = ask(&server, Some("mine")).unwrap();
    assert_eq!((probed.model.as_str(), probed.window), ("mine", None));
    assert_eq!(flaw(&probed).2, "OPENAI_CONTEXT_WINDOW=TOKENS jackfield agent");
    assert_eq!(server.asked()[0].body["model"], "mine");
}

#[test]
fn an_address_without_a_path_has_one_added() {
    assert_eq!(with_version("http://h:1/"), "http://h:1/v1");
    assert_eq!(with_version("http://h:1/api/v3/"), "http://h:1/api/v3");
}

#[test]
fn a_server_that_does_not_answer_is_told_as_elsewhere() {
    let server = ScriptedModel::start([]);
    server.serve("/models", Reply::status(401).body("no"));
    let why = ask(&server, None).unwrap_err();
    assert!(why.starts_with("Authentication error (HTTP 401) calling http://127"), "{why}");
}
