//! Agent events of each adapter: every kind of output line, followed from the program to the event.

use crate::{adapters::CliRecording, recorded::load_recordings};
use serde_json::{Value, json};

fn has_type(kind: &str) -> impl Fn(&Value) -> bool {
    let kind = kind.to_owned();
    move |line| line["type"] == kind
}

mod claude {
    use super::*;

    #[test]
    fn stream_becomes_status_text_and_usage() {
        let recording = CliRecording::load("claude", "plain");
        let text = |it: &Value| it["event"]["delta"]["type"] == "text_delta";
        assert!(recording.has_status("initializing") && recording.has_status("running"));
        assert!(recording.has_status("streaming"));
        assert_eq!(
            recording.joined_deltas("text_delta"),
            recording.joined_texts(text, "/event/delta/text")
        );
        assert!(!recording.joined_deltas("text_delta").is_empty());
        let lines = recording.json_lines();
        let result = lines.iter().find(|it| it["type"] == "result").unwrap();
        assert_eq!(recording.usage()["output_tokens"], result["usage"]["output_tokens"]);
        let read = &result["usage"]["cache_read_input_tokens"];
        assert_eq!(&recording.usage()["cached_read_tokens"], read);
        assert_eq!(recording.events_of_type("usage")[0]["costUsd"], result["total_cost_usd"]);
    }

    #[test]
    fn thoughts_become_one_thinking_start_and_deltas() {
        let recording = CliRecording::load("claude", "think");
        let thought = |it: &Value| it["event"]["delta"]["type"] == "thinking_delta";
        assert_eq!(recording.events_of_type("thinking_start").len(), 1);
        assert_eq!(
            recording.joined_deltas("thinking_delta"),
            recording.joined_texts(thought, "/event/delta/thinking")
        );
        assert!(!recording.joined_deltas("thinking_delta").is_empty());
    }

    #[test]
    fn tools_become_tool_use_and_tool_result() {
        let recording = CliRecording::load("claude", "tool");
        let (used, result) =
            (recording.events_of_type("tool_use")[0], recording.events_of_type("tool_result")[0]);
        assert_eq!(
            (&used["name"], &used["input"]["command"]),
            (&json!("Bash"), &json!("echo hello-from-tool"))
        );
        assert_eq!(result["toolUseId"], used["id"]);
        assert_eq!(
            (&result["content"], &result["isError"]),
            (&json!("hello-from-tool"), &json!(false))
        );
        assert_eq!(recording.events_of_type("tool_use").len(), 1, "the final message repeats it");
    }
}

mod codex {
    use super::*;

    #[test]
    fn thread_started_and_turn_started_become_status() {
        let recording = CliRecording::load("codex", "plain");
        assert!(recording.json_lines().iter().any(has_type("thread.started")));
        assert!(recording.json_lines().iter().any(has_type("turn.started")));
        assert!(recording.has_status("initializing") && recording.has_status("running"));
    }

    #[test]
    fn agent_message_is_text_and_command_is_a_tool() {
        let recording = CliRecording::load("codex", "known-model-tool");
        let message = |it: &Value| it["item"]["type"] == "agent_message";
        assert_eq!(
            recording.joined_deltas("text_delta"),
            recording.joined_texts(message, "/item/text")
        );
        assert_eq!(recording.events_of_type("tool_use")[0]["name"], "Bash");
        assert_eq!(recording.events_of_type("tool_result")[0]["content"], "hello-from-tool\n");
    }

    #[test]
    fn usage_of_turn_completed_is_reported() {
        let recording = CliRecording::load("codex", "plain");
        let lines = recording.json_lines();
        let usage = &lines.iter().find(|it| it["type"] == "turn.completed").unwrap()["usage"];
        assert_eq!(recording.usage()["input_tokens"], usage["input_tokens"]);
        assert_eq!(recording.usage()["output_tokens"], usage["output_tokens"]);
        assert_eq!(recording.usage()["cached_read_tokens"], usage["cached_input_tokens"]);
        assert_eq!(recording.usage()["thought_tokens"], usage["reasoning_output_tokens"]);
    }

    #[test]
    fn failed_turn_is_an_error() {
        let recording = CliRecording::load("codex", "err401");
        let message = recording.events_of_type("error")[0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("401 Unauthorized"), "{message}");
    }
}

mod gemini {
    use super::*;

    #[test]
    fn init_is_initializing_and_assistant_message_is_text() {
        let recording = CliRecording::load("gemini", "plain");
        let assistant = |it: &Value| it["type"] == "message" && it["role"] == "assistant";
        assert!(
            recording.json_lines().iter().any(has_type("init"))
                && recording.has_status("initializing")
        );
        assert_eq!(
            recording.joined_deltas("text_delta"),
            recording.joined_texts(assistant, "/content")
        );
        assert!(!recording.joined_deltas("text_delta").is_empty());
    }

    #[test]
    fn stats_of_the_result_are_usage() {
        let recording = CliRecording::load("gemini", "plain");
        let lines = recording.json_lines();
        let stats = &lines.iter().find(|it| it["type"] == "result").unwrap()["stats"];
        assert_eq!(recording.usage()["input_tokens"], stats["input_tokens"]);
        assert_eq!(recording.usage()["output_tokens"], stats["output_tokens"]);
        assert_eq!(recording.usage()["cached_read_tokens"], stats["cached"]);
    }
}

mod opencode {
    use super::*;

    #[test]
    fn step_start_is_running_and_text_is_text() {
        let recording = CliRecording::load("opencode", "plain");
        assert!(
            recording.json_lines().iter().any(has_type("step_start"))
                && recording.has_status("running")
        );
        assert_eq!(
            recording.joined_deltas("text_delta"),
            recording.joined_texts(has_type("text"), "/part/text")
        );
    }

    #[test]
    fn completed_state_of_a_tool_is_its_result() {
        let recording = CliRecording::load("opencode", "tool");
        let lines = recording.json_lines();
        let part = &lines.iter().find(|it| it["type"] == "tool_use").unwrap()["part"];
        let (used, result) =
            (recording.events_of_type("tool_use")[0], recording.events_of_type("tool_result")[0]);
        assert_eq!((&used["id"], &used["input"]), (&part["callID"], &part["state"]["input"]));
        assert_eq!(result["content"], part["state"]["output"]);
        assert_eq!(result["isError"], false);
    }

    #[test]
    fn tokens_of_step_finish_are_usage() {
        let recording = CliRecording::load("opencode", "tool");
        let tokens = |place: &str| -> u64 {
            let place = format!("/part/tokens/{place}");
            recording.json_lines().iter().filter_map(|it| it.pointer(&place)?.as_u64()).sum()
        };
        assert_eq!(recording.usage()["output_tokens"], tokens("output"));
        assert_eq!(recording.usage()["cached_read_tokens"], tokens("cache/read"));
        assert_eq!(recording.usage()["thought_tokens"], tokens("reasoning"));
    }
}

mod cursor_agent {
    use super::*;

    #[test]
    fn system_init_is_initializing_and_partial_chunks_are_text_once() {
        let recording = CliRecording::load("cursor", "plain");
        let init = |it: &Value| it["type"] == "system" && it["subtype"] == "init";
        let partial = |it: &Value| {
            it["type"] == "assistant"
                && it["timestamp_ms"].is_u64()
                && it["model_call_id"].is_null()
        };
        assert!(recording.json_lines().iter().any(init) && recording.has_status("initializing"));
        assert_eq!(
            recording.joined_deltas("text_delta"),
            recording.joined_texts(partial, "/message/content/0/text")
        );
        let lines = recording.json_lines();
        let whole = lines.iter().rfind(|it| it["type"] == "assistant").unwrap();
        assert_eq!(whole["message"]["content"][0]["text"], recording.joined_deltas("text_delta"));
    }

    #[test]
    fn usage_of_the_result_is_reported() {
        let recording = CliRecording::load("cursor", "plain");
        let lines = recording.json_lines();
        let usage = &lines.iter().find(|it| it["type"] == "result").unwrap()["usage"];
        assert_eq!(recording.usage()["input_tokens"], usage["inputTokens"]);
        assert_eq!(recording.usage()["output_tokens"], usage["outputTokens"]);
        assert_eq!(recording.usage()["cached_read_tokens"], usage["cacheReadTokens"]);
    }
}

mod plain {
    use super::*;

    #[test]
    fn printed_lines_are_text() {
        let recording = CliRecording::load("fast-agent", "plain");
        let text = recording.joined_deltas("text_delta");
        for line in recording.stdout.lines().map(str::trim).filter(|it| it.starts_with("Hello")) {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.contains("Hello from the fake model."));
    }
}

mod acp {
    use super::*;

    fn main_events(agent: &str) -> Vec<Value> {
        let recordings = load_recordings().into_iter().find(|it| it.0 == agent).unwrap().1;
        recordings.into_iter().find(|it| it.0 == "main").unwrap().1.agent_events()
    }

    fn position(events: &[Value], is_match: impl Fn(&Value) -> bool) -> usize {
        events.iter().position(is_match).unwrap()
    }

    #[test]
    fn hermes_and_kimi_report_their_model_after_session_new() {
        for (agent, model) in [("hermes", "custom:fake-model"), ("kimi-code", "fake")] {
            let events = main_events(agent);
            let reported = position(&events, |it| it["label"] == "model");
            assert_eq!(events[reported]["model"], model);
            assert!(reported < position(&events, |it| it["label"] == "running"));
        }
    }

    #[test]
    fn first_text_is_streaming_with_its_latency() {
        for agent in ["hermes", "kimi-code"] {
            let events = main_events(agent);
            let streaming = position(&events, |it| it["label"] == "streaming");
            assert!(events[streaming]["ttftMs"].as_u64().unwrap() < 10_000);
            assert_eq!(events[streaming + 1]["type"], "text_delta");
        }
    }

    #[test]
    fn thought_chunks_are_thinking_and_message_chunks_are_text() {
        for agent in ["hermes", "kimi-code"] {
            let events = main_events(agent);
            let start = position(&events, |it| it["type"] == "thinking_start");
            assert_eq!(events[start + 1]["type"], "thinking_delta");
            let thought = events.iter().filter(|it| it["type"] == "thinking_delta");
            let thought: String = thought.map(|it| it["delta"].as_str().unwrap()).collect();
            assert_eq!(thought, "I should think about this first.");
        }
    }

    #[test]
    fn usage_of_the_prompt_result_is_reported() {
        let events = main_events("hermes");
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
