//! Agent events, runtime by runtime: each line that the seed of the runtime adapter maps, from the
//! program's own words to the event.

use crate::{foreign::Followed, recorded::tapes};
use serde_json::{Value, json};

fn is(kind: &str) -> impl Fn(&Value) -> bool {
    let kind = kind.to_owned();
    move |line| line["type"] == kind
}

mod claude {
    use super::*;

    #[test]
    fn its_stream_becomes_status_text_and_usage() {
        let it = Followed::of("claude", "plain");
        let text = |it: &Value| it["event"]["delta"]["type"] == "text_delta";
        assert!(it.has_status("initializing") && it.has_status("running"));
        assert!(it.has_status("streaming"));
        assert_eq!(it.deltas("text_delta"), it.texts(text, "/event/delta/text"));
        assert!(!it.deltas("text_delta").is_empty());
        let lines = it.lines();
        let result = lines.iter().find(|it| it["type"] == "result").unwrap();
        assert_eq!(it.usage()["output_tokens"], result["usage"]["output_tokens"]);
        let read = &result["usage"]["cache_read_input_tokens"];
        assert_eq!(&it.usage()["cached_read_tokens"], read);
        assert_eq!(it.all("usage")[0]["costUsd"], result["total_cost_usd"]);
    }

    #[test]
    fn its_thoughts_become_one_thinking_start_and_deltas() {
        let it = Followed::of("claude", "think");
        let thought = |it: &Value| it["event"]["delta"]["type"] == "thinking_delta";
        assert_eq!(it.all("thinking_start").len(), 1);
        assert_eq!(it.deltas("thinking_delta"), it.texts(thought, "/event/delta/thinking"));
        assert!(!it.deltas("thinking_delta").is_empty());
    }

    #[test]
    fn its_tools_become_tool_use_and_tool_result() {
        let it = Followed::of("claude", "tool");
        let (used, result) = (it.all("tool_use")[0], it.all("tool_result")[0]);
        assert_eq!(
            (&used["name"], &used["input"]["command"]),
            (&json!("Bash"), &json!("echo hello-from-tool"))
        );
        assert_eq!(result["toolUseId"], used["id"]);
        assert_eq!(
            (&result["content"], &result["isError"]),
            (&json!("hello-from-tool"), &json!(false))
        );
        assert_eq!(it.all("tool_use").len(), 1, "the final message repeats it");
    }
}

mod codex {
    use super::*;

    #[test]
    fn thread_started_is_initializing_and_turn_started_is_running() {
        let it = Followed::of("codex", "plain");
        assert!(it.lines().iter().any(is("thread.started")));
        assert!(it.lines().iter().any(is("turn.started")));
        assert!(it.has_status("initializing") && it.has_status("running"));
    }

    #[test]
    fn an_agent_message_is_text_and_a_command_is_a_tool() {
        let it = Followed::of("codex", "known-model-tool");
        let message = |it: &Value| it["item"]["type"] == "agent_message";
        assert_eq!(it.deltas("text_delta"), it.texts(message, "/item/text"));
        assert_eq!(it.all("tool_use")[0]["name"], "Bash");
        assert_eq!(it.all("tool_result")[0]["content"], "hello-from-tool\n");
    }

    #[test]
    fn the_usage_of_turn_completed_is_usage() {
        let it = Followed::of("codex", "plain");
        let lines = it.lines();
        let told = &lines.iter().find(|it| it["type"] == "turn.completed").unwrap()["usage"];
        assert_eq!(it.usage()["input_tokens"], told["input_tokens"]);
        assert_eq!(it.usage()["output_tokens"], told["output_tokens"]);
        assert_eq!(it.usage()["cached_read_tokens"], told["cached_input_tokens"]);
        assert_eq!(it.usage()["thought_tokens"], told["reasoning_output_tokens"]);
    }

    #[test]
    fn a_turn_that_failed_is_an_error() {
        let it = Followed::of("codex", "err401");
        let message = it.all("error")[0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("401 Unauthorized"), "{message}");
    }
}

mod gemini {
    use super::*;

    #[test]
    fn init_is_initializing_and_a_message_of_the_assistant_is_text() {
        let it = Followed::of("gemini", "plain");
        let assistant = |it: &Value| it["type"] == "message" && it["role"] == "assistant";
        assert!(it.lines().iter().any(is("init")) && it.has_status("initializing"));
        assert_eq!(it.deltas("text_delta"), it.texts(assistant, "/content"));
        assert!(!it.deltas("text_delta").is_empty());
    }

    #[test]
    fn the_stats_of_the_result_are_usage() {
        let it = Followed::of("gemini", "plain");
        let lines = it.lines();
        let stats = &lines.iter().find(|it| it["type"] == "result").unwrap()["stats"];
        assert_eq!(it.usage()["input_tokens"], stats["input_tokens"]);
        assert_eq!(it.usage()["output_tokens"], stats["output_tokens"]);
        assert_eq!(it.usage()["cached_read_tokens"], stats["cached"]);
    }
}

mod opencode {
    use super::*;

    #[test]
    fn step_start_is_running_and_text_is_text() {
        let it = Followed::of("opencode", "plain");
        assert!(it.lines().iter().any(is("step_start")) && it.has_status("running"));
        assert_eq!(it.deltas("text_delta"), it.texts(is("text"), "/part/text"));
    }

    #[test]
    fn tool_use_is_a_tool_and_its_completed_state_the_result() {
        let it = Followed::of("opencode", "tool");
        let lines = it.lines();
        let part = &lines.iter().find(|it| it["type"] == "tool_use").unwrap()["part"];
        let (used, result) = (it.all("tool_use")[0], it.all("tool_result")[0]);
        assert_eq!((&used["id"], &used["input"]), (&part["callID"], &part["state"]["input"]));
        assert_eq!(result["content"], part["state"]["output"]);
        assert_eq!(result["isError"], false);
    }

    #[test]
    fn the_tokens_of_step_finish_are_usage() {
        let it = Followed::of("opencode", "tool");
        let tokens = |place: &str| -> u64 {
            let place = format!("/part/tokens/{place}");
            it.lines().iter().filter_map(|it| it.pointer(&place)?.as_u64()).sum()
        };
        assert_eq!(it.usage()["output_tokens"], tokens("output"));
        assert_eq!(it.usage()["cached_read_tokens"], tokens("cache/read"));
        assert_eq!(it.usage()["thought_tokens"], tokens("reasoning"));
    }
}

mod cursor_agent {
    use super::*;

    #[test]
    fn system_init_is_initializing_and_partial_chunks_are_text_once() {
        let it = Followed::of("cursor", "plain");
        let init = |it: &Value| it["type"] == "system" && it["subtype"] == "init";
        let partial = |it: &Value| {
            it["type"] == "assistant"
                && it["timestamp_ms"].is_u64()
                && it["model_call_id"].is_null()
        };
        assert!(it.lines().iter().any(init) && it.has_status("initializing"));
        assert_eq!(it.deltas("text_delta"), it.texts(partial, "/message/content/0/text"));
        let lines = it.lines();
        let whole = lines.iter().rfind(|it| it["type"] == "assistant").unwrap();
        assert_eq!(whole["message"]["content"][0]["text"], it.deltas("text_delta"));
    }

    #[test]
    fn the_usage_of_the_result_is_usage() {
        let it = Followed::of("cursor", "plain");
        let lines = it.lines();
        let usage = &lines.iter().find(|it| it["type"] == "result").unwrap()["usage"];
        assert_eq!(it.usage()["input_tokens"], usage["inputTokens"]);
        assert_eq!(it.usage()["output_tokens"], usage["outputTokens"]);
        assert_eq!(it.usage()["cached_read_tokens"], usage["cacheReadTokens"]);
    }
}

mod plain {
    use super::*;

    #[test]
    fn what_a_program_prints_is_text() {
        let it = Followed::of("fast-agent", "plain");
        let said = it.deltas("text_delta");
        for line in it.printed.lines().map(str::trim).filter(|it| it.starts_with("Hello")) {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert!(said.contains("Hello from the fake model."));
    }
}

mod acp {
    use super::*;

    fn events(agent: &str) -> Vec<Value> {
        let tapes = tapes().into_iter().find(|it| it.0 == agent).unwrap().1;
        tapes.into_iter().find(|it| it.0 == "main").unwrap().1.events()
    }

    fn position(events: &[Value], which: impl Fn(&Value) -> bool) -> usize {
        events.iter().position(which).unwrap()
    }

    #[test]
    fn hermes_and_kimi_name_their_model_after_session_new() {
        for (agent, model) in [("hermes", "custom:fake-model"), ("kimi-code", "fake")] {
            let events = events(agent);
            let told = position(&events, |it| it["label"] == "model");
            assert_eq!(events[told]["model"], model);
            assert!(told < position(&events, |it| it["label"] == "running"));
        }
    }

    #[test]
    fn the_first_text_is_streaming_with_the_time_it_took() {
        for agent in ["hermes", "kimi-code"] {
            let events = events(agent);
            let streaming = position(&events, |it| it["label"] == "streaming");
            assert!(events[streaming]["ttftMs"].as_u64().unwrap() < 10_000);
            assert_eq!(events[streaming + 1]["type"], "text_delta");
        }
    }

    #[test]
    fn thought_chunks_are_thinking_and_message_chunks_are_text() {
        for agent in ["hermes", "kimi-code"] {
            let events = events(agent);
            let start = position(&events, |it| it["type"] == "thinking_start");
            assert_eq!(events[start + 1]["type"], "thinking_delta");
            let thought = events.iter().filter(|it| it["type"] == "thinking_delta");
            let thought: String = thought.map(|it| it["delta"].as_str().unwrap()).collect();
            assert_eq!(thought, "I should think about this first.");
        }
    }

    #[test]
    fn the_usage_of_the_prompts_answer_is_usage() {
        let events = events("hermes");
        let usage = &events[position(&events, |it| it["type"] == "usage")];
        let expected = json!({ "input_tokens": 120, "output_tokens": 5, "cached_read_tokens": 20,
                               "thought_tokens": 0, "total_tokens": 125 });
        assert_eq!(usage["usage"], expected);
        assert_eq!(
            (&usage["stopReason"], &usage["durationMs"]),
            (&json!("end_turn"), &json!(2317))
        );
    }
}
