//! Tests of the probe: one server for each defect, and the resulting findings.

use super::{ModelFitness, ProbeReport, ToolCallSupport, add_version_path, probe_model_server};
use crate::ChatSettings;
use jackfield_test_support::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};

const CALLS: [(&str, &str); 2] =
    [("weather", r#"{"city":"Paris"}"#), ("weather", r#"{"city":"Rome"}"#)];

fn text_reply() -> Reply {
    Reply::say("one, two, three, four")
}

fn probe(server: &ScriptedModel, model: Option<&str>) -> Result<ProbeReport, String> {
    let (mut settings, _) = ChatSettings::from_variables(|_| None);
    settings.base_url = server.url();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(probe_model_server(&settings, model))
}

/// Returns the report about a server with these replies and pages.
fn report(replies: [Reply; 2], pages: &[(&str, Value)]) -> ProbeReport {
    let server = ScriptedModel::start(replies);
    let window = json!({"data": [{"id": "m", "max_model_len": 65_536, "owned_by": "vllm"}]});
    server.serve_models(&window);
    for (path, page) in pages {
        server.serve(path, Reply::json(page));
    }
    probe(&server, None).unwrap()
}

fn single_finding(report: &ProbeReport) -> (ModelFitness, &str, &str) {
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    (report.fitness, &finding.problem, &finding.fix)
}

#[test]
fn suitable_server_has_no_findings() {
    let report = report([text_reply(), Reply::calls(&CALLS)], &[]);
    assert_eq!((report.fitness, report.findings.len()), (ModelFitness::Good, 0));
    assert_eq!((report.window, report.window_from), (Some(65_536), Some("/models")));
    assert!(
        report.streams_text
            && report.streams_calls
            && report.parallel_calls
            && !report.separates_reasoning
    );
    assert_eq!(
        (report.call_support, report.verdict().as_str()),
        (ToolCallSupport::Native, "m is suitable as an agent")
    );
    assert!(report.tokens_per_second.is_some());
}

#[test]
fn effective_window_of_ollama_wins_over_the_maximum_of_the_model() {
    let loaded = json!({"models": [{"name": "m:latest", "context_length": 4096}]});
    let pages = [("/api/ps", loaded), ("/api/show", json!({"parameters": "num_ctx 131072"}))];
    let report = report([text_reply(), Reply::calls(&CALLS)], &pages);
    let fix = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve";
    assert_eq!(
        single_finding(&report),
        (ModelFitness::Unfit, "its context window has only 4096 tokens", fix)
    );
    assert_eq!(report.window_from, Some("/api/ps"));
    let verdict = "m is not suitable as an agent: its context window has only 4096 tokens";
    assert_eq!(report.verdict(), verdict);
}

#[test]
fn requested_window_of_ollama_is_used_before_the_model_is_loaded() {
    let shown = json!({"parameters": "stop \"x\"\nnum_ctx                        40960"});
    let pages = [("/api/ps", json!({"models": []})), ("/api/show", shown)];
    let report = report([text_reply(), Reply::calls(&CALLS)], &pages);
    assert_eq!((report.window, report.window_from), (Some(40_960), Some("/api/show")));
}

#[test]
fn window_of_llama_cpp_is_the_configured_one() {
    let props = json!({"default_generation_settings": {"n_ctx": 16_384}});
    let report = report([text_reply(), Reply::calls(&CALLS)], &[("/props", props)]);
    let fix = "llama-server --ctx-size 32768 …";
    assert_eq!(
        single_finding(&report),
        (ModelFitness::Usable, "its context window has only 16384 tokens", fix)
    );
}

#[test]
fn server_without_a_call_parser_gets_a_finding_with_a_fix() {
    let call = r#"<tool_call>{"name":"weather","arguments":{"city":"Paris"}}</tool_call>"#;
    let text = report([text_reply(), Reply::say(call)], &[]);
    let fix = "vllm serve m --enable-auto-tool-choice --tool-call-parser hermes";
    let what = "it writes its calls into the text, where we parse them";
    assert_eq!(
        (single_finding(&text), text.call_support),
        ((ModelFitness::Usable, what, fix), ToolCallSupport::Text)
    );
    let garbled =
        report([text_reply(), Reply::say("<tool_call>{\"name\": weather}</tool_call>")], &[]);
    assert_eq!(
        (garbled.call_support, garbled.fitness),
        (ToolCallSupport::Garbled, ModelFitness::Unfit)
    );
}

#[test]
fn server_that_rejects_tools_is_unfit() {
    let server = ScriptedModel::start([
        text_reply(),
        Reply::status(400).body(r#"{"error":{"message":"m does not support tools"}}"#),
        Reply::say("I do not know."),
    ]);
    server.serve_models(&json!({"data": [{"id": "m", "context_length": 65_536}]}));
    let report = probe(&server, None).unwrap();
    assert_eq!(
        (report.call_support, report.fitness),
        (ToolCallSupport::Refused, ModelFitness::Unfit)
    );
    assert!(report.findings[0].fix.ends_with("OPENAI_TOOLS=0"));
}

#[test]
fn model_without_calls_is_unfit_and_one_call_is_not_parallel() {
    let none = report([text_reply(), Reply::say("It is sunny.")], &[]);
    assert_eq!((none.call_support, none.fitness), (ToolCallSupport::None, ModelFitness::Unfit));
    let one = report([text_reply(), Reply::calls(&CALLS[..1])], &[]);
    assert!(one.fitness == ModelFitness::Good && !one.parallel_calls);
}

#[test]
fn missing_streaming_and_separate_reasoning_are_detected() {
    let message = json!({"content": "one, two", "reasoning_content": ""});
    let whole = Reply::json(&json!({"choices": [{"message": message}]}));
    let function = json!({"name": "weather", "arguments": "{}"});
    let message = json!({"reasoning": "hm", "tool_calls": [{"id": "a", "function": function}]});
    let call = Reply::json(&json!({"choices": [{"message": message}]}));
    let report = report([whole, call], &[]);
    let fix = "turn off buffering in the proxy before the server";
    assert_eq!(
        single_finding(&report),
        (ModelFitness::Usable, "its responses are not streamed", fix)
    );
    assert!(
        report.separates_reasoning && !report.streams_calls && report.tokens_per_second.is_none()
    );
}

#[test]
fn named_model_is_probed_even_without_a_model_list() {
    let server = ScriptedModel::start([text_reply(), Reply::calls(&CALLS)]);
    let report = probe(&server, Some("mine")).unwrap();
    assert_eq!((report.model.as_str(), report.window), ("mine", None));
    assert_eq!(single_finding(&report).2, "OPENAI_CONTEXT_WINDOW=TOKENS jackfield agent");
    assert_eq!(server.asked()[0].body["model"], "mine");
}

#[test]
fn url_without_a_path_gets_v1() {
    assert_eq!(add_version_path("http://h:1/"), "http://h:1/v1");
    assert_eq!(add_version_path("http://h:1/api/v3/"), "http://h:1/api/v3");
}

#[test]
fn error_of_the_server_is_returned_as_a_message() {
    let server = ScriptedModel::start([]);
    server.serve("/models", Reply::status(401).body("no"));
    let message = probe(&server, None).unwrap_err();
    assert!(message.starts_with("Authentication error (HTTP 401) calling http://127"), "{message}");
}
